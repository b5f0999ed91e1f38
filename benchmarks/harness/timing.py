"""Rounds of blocks of calls, taken in turn, and what is made of their times."""

import time
from statistics import median

SETTLE_SECONDS = 0.004  # idle threads of the last lane stop spinning
BATCH_SECONDS = 200e-6  # shorter calls are timed several at once
MOST_SAMPLES = 200


def block(loops, target, start=0):
    """The median seconds of a call over about `target` seconds of calls.

    loops: a function of n a set of buffers, which makes n calls. Sets are taken in
    turn from number `start`; the next number is returned too."""
    clock, sets = time.perf_counter, len(loops)

    def sample(times):
        nonlocal start
        loop = loops[start % sets]
        start += 1
        begin = clock()
        loop(times)
        return (clock() - begin) / times

    sample(1)  # wakes the threads, and the caches if there is one set
    first = sample(1)
    batch = 1 if sets > 1 else max(1, int(BATCH_SECONDS / max(first, 1e-7)))
    if batch > 1:
        first = sample(batch)  # one call was mostly clock
        batch = max(1, int(BATCH_SECONDS / max(first, 1e-8)))
    count = min(MOST_SAMPLES, max(3, int(target / max(first * batch, 1e-8))))
    return median(sample(batch) for _ in range(count)), start


def order(round_number, lanes, roofs):
    """The lanes of one round: the roofs before every second lane, and no lane always
    after the same other."""
    if not lanes:
        return list(roofs)
    shift = round_number % len(lanes)
    turned, found = lanes[shift:] + lanes[:shift], []
    for number, lane in enumerate(turned):
        if number % 2 == 0:
            found += roofs
        found.append(lane)
    return found


def rounds(lanes, roofs, count, target):
    """name -> seconds of a call in each of `count` rounds. lanes, roofs: name -> loops."""
    loops, slots = {**roofs, **lanes}, dict.fromkeys((*roofs, *lanes), 0)
    times = {name: [] for name in loops}
    for number in range(count):
        found = {name: [] for name in loops}
        for name in order(number, list(lanes), list(roofs)):
            time.sleep(SETTLE_SECONDS)
            seconds, slots[name] = block(loops[name], target, slots[name])
            found[name].append(seconds)
        for name, values in found.items():
            times[name].append(median(values))
    return times


def ratio(over, under):
    """The median over rounds of over/under: how many times faster `under` is."""
    return median(a / b for a, b in zip(over, under, strict=True))


def fastest(times, names):
    """The name with the least median time."""
    return min(names, key=lambda name: median(times[name]))


def spread(over, under):
    """The quartiles of the ratios of rounds."""
    ratios = sorted(a / b for a, b in zip(over, under, strict=True))
    return ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
