"""A case from start to end: data, lanes that pass the oracle, rounds, records."""

import gc
import os
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from . import buffers as rows
from . import channels, suite, timing
from .buffers import Arena, is_right
from .peers import Unsupported, first_line

ROOFS = {"plain": False, "non-temporal": True}
# This project: its lane, and those of code that knows fewer extents.
OURS, DYNAMIC_ROWS, DYNAMIC = "norm", "norm.rows", "norm.dynamic"
VERSIONS = "norm.versions"
OWN = (OURS, DYNAMIC_ROWS, DYNAMIC, VERSIONS)
# The cold regime goes through this many times the last cache.
CACHES = 4
# Below this many bytes a case has too many sets of buffers to be cold.
LEAST_COLD_BYTES = 1 << 20


@dataclass
class Plan:
    """How often a case is timed: rounds (0: it is only checked), seconds of a block of
    calls, and regimes, of "warm" and "cold"."""

    rounds: int
    target: float
    regimes: tuple = ("warm",)


def made(case, arena, data):
    """One set of arrays of a case."""
    kind = channels.ChannelBuffers if case.is_channels else rows.Buffers
    return kind(case, data, arena)


def cold_bytes():
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text().strip()
        return CACHES * int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}[text[-1]]
    except (OSError, ValueError, KeyError):
        return CACHES * (64 << 20)


def checked(peer, case, data, buffers, log):
    """(Prepared, Bound, record) of a peer. Bound is None where it has no such norm or a
    wrong one, which is reported and not timed."""
    record = {"case": case.name, "lane": peer.name}
    buffers.clear()
    try:
        prepare = peer.prepare_channels if case.is_channels else peer.prepare
        prepared = prepare(case, buffers)
        bound = prepared.bind(buffers)
        bound.loop(1)
        error = channels.error if case.is_channels else rows.error
        errors = error(case, data, bound.results())
    except Unsupported as reason:
        return None, None, {**record, "skipped": str(reason)}
    except Exception as reason:  # of another library
        log(f"  {peer.name}: failed, {first_line(reason)}")
        return None, None, {**record, "failed": first_line(reason)}
    record.update(errors=errors, implementation=prepared.impl, note=prepared.note)
    if not is_right(case, errors):
        text = ", ".join(f"{name} {value:.1e}" for name, value in errors.items())
        log(f"  {peer.name}: WRONG, not timed: {text} ({prepared.impl})")
        return prepared, None, {**record, "wrong": True}
    return prepared, bound, record


def buffer_sets(case, data, arena, first, regime):
    if regime == "warm":
        return [first]
    count = max(2, -(-cold_bytes() // first.nbytes()))
    return [first] + [made(case, arena, data) for _ in range(count - 1)]


def run_case(case, peers, native, plan, log):
    """Records of all lanes of a case."""
    arena = Arena()
    data = (channels.ChannelData if case.is_channels else rows.Data).of(case)
    buffers = made(case, arena, data)
    records, lanes = [], {}
    for peer in peers:
        prepared, bound, record = checked(peer, case, data, buffers, log)
        if bound is None:
            records.append(record)
        else:
            lanes[peer.name] = (prepared, bound, record)
    data.expected.clear()
    known = {name: record for name, (_, _, record) in lanes.items()}
    if not plan.rounds:
        records += known.values()
    for regime in plan.regimes if plan.rounds else ():
        if regime == "warm" or case.least_bytes >= LEAST_COLD_BYTES:
            sets = buffer_sets(case, data, arena, buffers, regime)
            times = timing.rounds(bound_loops(lanes, sets), {
                name: [native.roof(case, other, streaming) for other in sets]
                for name, streaming in ROOFS.items()}, plan.rounds, plan.target)
            records += summarized(case, regime, times, known)
            del sets
    for peer in peers:
        peer.forget()
    del lanes, buffers, arena
    gc.collect()
    return records


def bound_loops(lanes, sets):
    """name -> the loops of a lane over all sets of buffers; the first set is bound."""
    loops = {name: [bound.loop] + [prepared.bind(other).loop for other in sets[1:]]
             for name, (prepared, bound, _) in lanes.items()}
    for all_loops in loops.values():
        for loop in all_loops[1:]:
            loop(1)  # touches what it allocates
    return loops


def summarized(case, regime, times, known):
    """A record of each lane that was timed. times: lane -> seconds in each round; known:
    lane -> what its record already has."""
    roof = timing.fastest(times, ROOFS)
    peers = [name for name in times if name not in (*ROOFS, *OWN)]
    best = timing.fastest(times, peers) if peers else None
    records = []
    for name, seconds in times.items():
        record = dict(known.get(name, {"lane": name}), case=case.name, family=case.family,
                      shape=case.shape_text, element=case.element, packed=case.packed,
                      regime=regime, rounds=len(seconds), load=round(os.getloadavg()[0], 2))
        record.update(
            microseconds=median(seconds) * 1e6, least_microseconds=min(seconds) * 1e6,
            gigabytes_per_second=case.least_bytes / median(seconds) / 1e9,
            roof=roof, ratio=timing.ratio(times[roof], seconds),
            quartiles=timing.spread(times[roof], seconds),
            ratio_plain=timing.ratio(times["plain"], seconds))
        if name in OWN[1:] and OURS in times:
            record["ratio_to_static"] = timing.ratio(times[OURS], seconds)
        if name == OURS:
            # What the caches hold is copied faster through them.
            record["target"] = (channels if case.is_channels else suite).target(
                case, is_in_memory=roof != "plain")
            if best:
                record.update(best_peer=best, ratio_to_best=timing.ratio(times[best], seconds))
        records.append(record)
    return records
