"""The harness of `./dev bench`: what it counts, compares and refuses. Times are no test."""

import ctypes
import sys

import numpy as np
import pytest
from norm.reference import NormSpec, evaluate
from norm.tools import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from harness import channels, page, report, session, suite, timing  # noqa: E402
from harness.buffers import (  # noqa: E402
    Arena,
    Buffers,
    Data,
    block_rows,
    error,
    is_right,
    result_names,
)
from harness.native import Native  # noqa: E402
from harness.peers import Bound, Peer, Prepared, Unsupported, repeat  # noqa: E402
from harness.peers.norm_ import LANES, Norm  # noqa: E402
from harness.suite import Case  # noqa: E402

PLAN = session.Plan(rounds=2, target=1e-5)
ONE_OF_EACH = [Case(family, (5, 3, 24) if family == "qk_norm" else (7, 24))
               for family in suite.FAMILIES]


def text(case):
    return case.name


class NoRoof:
    """Native code that is not compiled."""

    @staticmethod
    def roof(case, buffers, streaming):
        return repeat(lambda: None)


class Oracle(Peer):
    """Writes what the oracle says, changed in one element by `wrong`."""

    def __init__(self, name="oracle", wrong=0.0):
        super().__init__(1, None)
        self.name, self.wrong = name, wrong

    def prepare(self, case, buffers):
        return Prepared(lambda target: self.bind(case, target), "oracle")

    def bind(self, case, target):
        results = dict(target.data.expected)

        def call():
            for name, expected in results.items():
                array = target[name].reshape(-1, case.extent)
                array[...] = np.resize(expected, array.shape)
            array[-1, -1] += self.wrong
        return Bound(repeat(call), target.results)


# ---- the suite ------------------------------------------------------------------


@pytest.mark.parametrize("family, arrays", [
    ("layer_norm", 2), ("rms_norm", 2), ("add_layer_norm", 4), ("add_rms_norm", 4),
    ("layer_norm_backward", 3), ("rms_norm_backward", 3)])
@pytest.mark.parametrize("element, size", [("f32", 4), ("bf16", 2), ("f16", 2)])
def test_bytes_are_those_of_arrays_read_or_written_once(family, arrays, element, size):
    case = Case(family, (10, 7), element)
    assert case.array_bytes == 70 * size
    assert case.least_bytes == arrays * 70 * size


def test_bytes_of_packed_rows_are_those_of_the_slice():
    assert Case("qk_norm", (4, 2, 8), packed=6).least_bytes == 2 * 4 * 2 * 8 * 4


def test_the_suite_has_every_family_and_type():
    standard = suite.standard()
    assert {case.family for case in standard} == set(suite.FAMILIES)
    assert {case.element for case in standard} == {"f32", "bf16"}
    assert any(case.packed for case in standard)
    assert len({case.name for case in standard}) == len(standard)
    for family in suite.FORWARD + suite.RESIDUAL + suite.BACKWARD:
        shapes = {case.shape for case in standard if case.family == family}
        assert {(4096, 4096), (131072, 128), (1, 4096), (1000, 1023)} <= shapes
    full = {case.name for case in suite.full()}
    assert {case.name for case in standard} < full
    assert "rms_norm 512x768 f16" in full


def test_sweeps_have_every_extent():
    extents = [case.extent for case in suite.sweep(("rms_norm",))]
    assert extents == sorted(set(extents))
    assert set(range(1, 65)) | {4088, 4104, 128, 8192, 16384} <= set(extents)
    assert all(case.rows * case.extent <= suite.SWEPT_ELEMENTS for case in suite.sweep())


def test_cases_are_selected_by_text_or_pattern():
    names = [case.name for case in suite.select(suite.standard(), "rms_norm 1x*,1000x4097")]
    assert "rms_norm 1x4096 f32" in names and "layer_norm 1000x4097 f32" in names
    assert "layer_norm 1x4096 f32" not in names


@pytest.mark.parametrize("case, expected", [
    (Case("rms_norm", (4096, 4096)), ("ratio", 0.90)),
    (Case("rms_norm", (1000, 4097)), ("ratio", 0.80)),
    (Case("layer_norm", (1048576, 16)), ("ratio", 0.65)),
    (Case("layer_norm", (4096, 4096), "bf16"), ("ratio", 0.70)),
    (Case("layer_norm_backward", (4096, 4096)), ("ratio", 0.80)),
    (Case("layer_norm", (512, 768)), ("ratio_to_best", 1.4))])
def test_targets(case, expected):
    assert suite.target(case, is_in_memory=True) == expected


def test_what_the_caches_hold_has_no_target():
    assert suite.target(Case("rms_norm", (8, 4096)), is_in_memory=False) is None


# ---- times ----------------------------------------------------------------------


def test_ratios_are_of_the_same_round():
    # A machine that is twice as slow in every other round changes no ratio.
    assert timing.ratio([1, 2, 1, 2], [2, 4, 2, 4]) == 0.5
    assert timing.ratio([1, 1, 9], [2, 1, 3]) == 1
    assert timing.fastest({"a": [1, 1, 9], "b": [2, 2, 2]}, ["a", "b"]) == "a"
    assert timing.spread([1, 2, 3, 4], [1, 1, 1, 1]) == (2, 4)


def test_lanes_take_turns_with_the_roofs():
    for number in range(4):
        order = timing.order(number, ["a", "b", "c"], ["plain", "nt"])
        assert sorted(set(order)) == ["a", "b", "c", "nt", "plain"]
        assert order[:2] == ["plain", "nt"] and order.count("a") == 1
    assert timing.order(0, ["a", "b"], ["p"])[1] != timing.order(1, ["a", "b"], ["p"])[1]
    assert timing.order(3, [], ["plain"]) == ["plain"]


def test_sets_of_buffers_are_taken_in_turn():
    calls = []
    loops = [lambda times, i=i: calls.append((i, times)) for i in range(3)]
    _, following = timing.block(loops, 1e-6, start=1)
    assert [i for i, _ in calls] == [(1 + k) % 3 for k in range(len(calls))]
    assert following == 1 + len(calls)
    assert {times for _, times in calls} == {1}


def test_summary_of_a_case():
    case = Case("layer_norm", (4096, 4096))
    times = {"plain": [2, 2, 2], "non-temporal": [1, 1, 1], "norm": [2, 2, 2],
             "slow": [8, 8, 8], "fast": [3, 3, 3]}
    records = {r["lane"]: r for r in session.summarized(case, "warm", times, {})}
    ours = records["norm"]
    assert ours["roof"] == "non-temporal" and ours["ratio"] == 0.5 and ours["ratio_plain"] == 1
    assert ours["best_peer"] == "fast" and ours["ratio_to_best"] == 1.5
    assert report.is_first(ours) and report.misses_target(ours)
    assert records["fast"]["ratio"] == pytest.approx(1 / 3)
    row = report.families(list(records.values()))["layer_norm", "f32"]
    assert (row["first"], row["compared"], row["reached"], row["aimed"]) == (1, 1, 0, 1)


# ---- the check before the times -------------------------------------------------


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=text)
def test_data_repeat_a_block_that_the_oracle_sees(case, monkeypatch):
    monkeypatch.setattr("harness.buffers.BLOCK_ELEMENTS", 72)
    assert block_rows(case) == 3
    data = Data.of(case)
    buffers = Buffers(case, data, Arena())
    Oracle().prepare(case, buffers).bind(buffers).loop(1)
    assert is_right(case, error(case, data, buffers.results()))
    if case.is_backward:
        dy = buffers["dy"].reshape(-1, case.extent).astype(np.float64)
        x = buffers["x"].reshape(-1, case.extent).astype(np.float64)
        mean = buffers["mean"][:, None] if case.is_centred else 0
        exact = (dy * (x - mean) * buffers["rstd"][:, None]).sum(0)
        np.testing.assert_allclose(data.expected["dscale"], exact, rtol=1e-9)
    else:
        kind = NormSpec(kind=case.op, axes=(-1,), epsilon=suite.EPSILON)
        operands = {name: buffers.arrays.get(name) for name in ("residual", "scale", "shift")}
        whole = evaluate(kind, buffers["x"], **operands).y
        np.testing.assert_allclose(buffers["y"], whole, rtol=1e-6)


def test_packed_rows_are_a_slice():
    case = Case("qk_norm", (5, 2, 8), packed=6)
    buffers = Buffers(case, Data.of(case), Arena())
    assert buffers.base.shape == (5, 6, 8) and buffers["x"].strides[0] == 6 * 8 * 4
    assert np.shares_memory(buffers.base, buffers["x"])
    assert buffers["y"].flags.c_contiguous and buffers["y"].ctypes.data % 64 == 0


def test_a_wrong_peer_is_reported_and_not_timed():
    case, lines = Case("rms_norm", (7, 24)), []
    peers = [Oracle(), Oracle("off", wrong=1e-2), Oracle("nan", wrong=np.nan)]
    records = session.run_case(case, peers, NoRoof(), PLAN, lines.append)
    wrong = {r["lane"] for r in records if r.get("wrong")}
    assert wrong == {"off", "nan"}
    assert {r["lane"] for r in report.timed_records(records)} == {"plain", "non-temporal", "oracle"}
    assert sum("WRONG" in line for line in lines) == 2


def test_a_peer_that_writes_nothing_is_wrong():
    class Idle(Oracle):
        def bind(self, case, target):
            return Bound(repeat(lambda: None), target.results)
    case = Case("add_layer_norm", (3, 8))
    records = session.run_case(case, [Idle()], NoRoof(), PLAN, lambda line: None)
    assert records[0]["wrong"]


def test_a_peer_that_cannot_is_skipped_with_a_reason():
    class Lacking(Oracle):
        def prepare(self, case, buffers):
            raise Unsupported("no such norm")

    class Broken(Oracle):
        def prepare(self, case, buffers):
            raise RuntimeError("first\nsecond")
    records = session.run_case(Case("rms_norm", (3, 8)), [Lacking("a"), Broken("b")], NoRoof(),
                               PLAN, lambda line: None)
    assert records[0]["skipped"] == "no such norm"
    assert records[1]["failed"] == "RuntimeError: first"


# ---- compiled here --------------------------------------------------------------


@pytest.fixture(scope="module")
def native():
    return Native()


@pytest.mark.parametrize("streaming", [False, True], ids=["plain", "non-temporal"])
@pytest.mark.parametrize("family", ["rms_norm", "add_rms_norm", "rms_norm_backward"])
def test_roofs_move_the_bytes(native, family, streaming):
    case = Case(family, (64, 24))
    buffers = Buffers(case, Data.of(case), Arena())
    native.roof(case, buffers, streaming)(1)
    expected = buffers["x"] + np.float32(0.5) * buffers["dy"] if case.is_backward \
        else buffers["x"]
    np.testing.assert_allclose(buffers[result_names(case)[0]], expected, rtol=1e-6, atol=1e-6)
    if case.has_residual:
        assert (buffers["sum"] == buffers["residual"]).all()


def test_loops_call_with_many_words(native):
    seen = []
    record = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 12)(lambda *words: seen.append(words))
    words = list(range(12))
    native.loop((ctypes.cast(record, ctypes.c_void_p).value, words), keep=record)(3)
    assert seen == [tuple(words)] * 3


def test_our_own_lane_is_right(native):
    case, lanes = Case("layer_norm_backward", (33, 40)), [lane(1, native) for lane in LANES]
    records = {r["lane"]: r for r in session.run_case(case, lanes, native, PLAN, print)}
    for lane in ("norm", "norm.rows", "norm.dynamic"):
        assert records[lane]["microseconds"] > 0
        assert max(records[lane]["errors"].values()) < 1e-5
        # None is a peer of the first.
        assert ("ratio_to_static" in records[lane]) == (lane != "norm")
    assert "best_peer" not in records["norm"]


OF_IMAGES = [channels.ChannelCase(family, (3, 10, 3, 5), layout, groups=5)
             for family, layout in zip(channels.FAMILIES, channels.LAYOUTS * 3, strict=False)]


@pytest.mark.parametrize("case", OF_IMAGES, ids=text)
def test_images_repeat_a_block_of_channels_that_the_oracle_sees(case, monkeypatch):
    monkeypatch.setattr("harness.channels.BLOCK_ELEMENTS", 1)
    assert case.repeated_channels == (6 if case.is_grouped else 3)
    data = channels.ChannelData.of(case)
    buffers = channels.ChannelBuffers(case, data, Arena())
    whole = buffers.call().reference()
    found = {name: whole[name] for name in data.expected} if case.is_backward else {"y": whole.y}
    for name, values in found.items():
        buffers[name][...] = values
    assert is_right(case, channels.error(case, data, buffers.results()))
    last = buffers[list(found)[0]]
    last[-1, -1, -1, -1] += 1e-2 * np.abs(last).max()
    assert not is_right(case, channels.error(case, data, buffers.results()))


def test_our_own_lane_is_right_on_images(native):
    for case in OF_IMAGES[1:4:2]:
        lanes = [Norm(1, native), Oracle()]
        records = {r["lane"]: r for r in session.run_case(case, lanes, native, PLAN, print)}
        assert records["norm"]["microseconds"] > 0
        assert max(records["norm"]["errors"].values()) < 1e-5
        # A library that was not told about images.
        assert records["oracle"]["skipped"]


def test_the_suite_has_norms_of_images():
    standard = channels.standard()
    assert {case.family for case in standard} == set(channels.FAMILIES)
    assert {case.layout for case in standard} == set(channels.LAYOUTS)
    assert {case.name for case in standard} < {case.name for case in channels.full()}
    case = channels.ChannelCase("bn_train_backward", (16, 64, 112, 112), "nhwc")
    assert case.lies == (16, 112, 112, 64) and case.roof == "triad"
    assert case.least_bytes == 3 * 16 * 112 * 112 * 64 * 4
    assert channels.target(case, is_in_memory=True) == ("ratio", 0.65)


# ---- the page -------------------------------------------------------------------


def test_sections_of_the_page_are_replaced():
    page_text = "a\n<!-- generated: one -->\nold\n<!-- end -->\nb\n"
    assert page.replaced(page_text, "one", r"new \1") == \
        "a\n<!-- generated: one -->\n\nnew \\1\n\n<!-- end -->\nb\n"
    with pytest.raises(ValueError, match="no section"):
        page.replaced(page_text, "two", "")


def test_cases_that_miss_are_listed_with_their_cause():
    case = Case("layer_norm", (4096, 4096))
    times = {"plain": [2, 2], "non-temporal": [1, 1], "norm": [4, 4], "fast": [2, 2]}
    records = session.summarized(case, "warm", times, {})
    listed = page.missed_section(records, {"layer_norm 4096*": "because"})
    assert "| layer_norm 4096x4096 f32 |" in listed and "| 0.50 | because |" in listed
    wrong = [{"case": "c", "lane": "norm", "wrong": True}]
    assert "| c | wrong |" in page.missed_section(wrong, {})
    times["norm"] = [1, 1]
    assert page.missed_section(session.summarized(case, "warm", times, {}), {}) == "None."


def test_a_drop_is_below_both_neighbours():
    def record(extent, ratio):
        return {"lane": "norm", "family": "rms_norm", "regime": "warm", "ratio": ratio,
                "shape": f"8x{extent}", "case": f"rms_norm 8x{extent} f32"}
    records = [record(n, 0.9) for n in (20, 22, 23)] + [record(21, 0.7)]
    assert page.drops(records) == [("rms_norm 8x21 f32", 0.7, 0.9)]
    assert page.drops([record(n, 0.9 - 0.01 * n) for n in range(1, 40)]) == []


def test_rms_norms_slower_than_layer_norms_are_listed():
    def record(family, ratio):
        return {"lane": "norm", "family": family, "regime": "warm", "ratio": ratio,
                "shape": "8x64", "element": "f32", "case": f"{family} 8x64 f32"}
    slow = [record("layer_norm", 0.9), record("rms_norm", 0.8)]
    assert page.slower_rms(slow) == [("rms_norm 8x64 f32", 0.8, 0.9)]
    assert page.slower_rms([record("layer_norm", 0.9), record("rms_norm", 0.85)]) == []
