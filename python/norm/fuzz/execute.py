"""Runs a program on every path and says what is wrong.

    reference    norm-to-reference
    cpu          norm-to-cpu, with random strides, threads and level of LLVM
    gpu-emulated norm-to-nvvm, run by the emulator, which checks every access; refused where
                 something of the program has no kernel
    linalg       norm-lower-to-linalg, then norm-to-cpu's lowering of linalg
    PASSES       optional passes first; compiled where they changed the module, for the
                 reference (the same bits, unless the passes say otherwise) and for cpu
"""

import random
from dataclasses import dataclass, field, replace

import numpy as np

from norm.fuzz.evaluate import REGIMES, DataSet, Evaluation, close, same_bits
from norm.fuzz.server import Dead
from norm.tools import is_sanitized

BITS, PROMISE, REAL = "bits", "promise", "real"
# What norm-to-nvvm says of a program that has no kernel.
NO_KERNEL = ("has no GPU kernel", "cannot be spread over threads", "is no part of the kernel")
# What real arithmetic may move a result by, of what the promise says.
REAL_ULPS = 2048


@dataclass(frozen=True)
class Passes:
    """A pipeline, what it keeps (the bits on the reference, the promise, or real
    arithmetic), and whether it may refuse a program with an error."""

    pipeline: str
    keeps: str = BITS
    may_fail: bool = False

    def of(self, program):
        """The same with what is kept of this program: F11 takes a rounding, on the
        reference, from what is added to a gradient."""
        adds = "norm-fuse-residual" in self.pipeline and any(
            "backward" in node.attributes["case"]["op"] for node in program.norms())
        return replace(self, keeps=PROMISE) if adds and self.keeps == BITS else self


# Optional passes by name.
OPTIONAL = (
    Passes("canonicalize"), Passes("cse"), Passes("norm-simplify"),
    Passes("norm-simplify{fp-policy=real}", REAL), Passes("norm-fuse-residual"),
    Passes("norm-split-gradients", PROMISE), Passes("norm-generalize", PROMISE, True),
    Passes("norm-generalize{parts=2}", PROMISE, True),
    Passes("norm-generalize{parts=3 axis=0}", PROMISE, True),
    Passes("norm-fold-batch-norm", REAL), Passes("norm-fold-affine", REAL),
    Passes("norm-raise"), Passes("norm-lower-to-linalg", PROMISE),
    Passes("norm-configure", PROMISE), Passes("norm-configure{rows=2}", PROMISE, True),
    Passes("norm-configure{columns=4}", PROMISE, True),
    Passes("norm-configure{serial-bytes=0}", PROMISE),
    Passes("convert-elementwise-to-linalg"), Passes("linalg-generalize-named-ops"),
    Passes("linalg-fuse-elementwise-ops"), Passes("loop-invariant-code-motion"),
    Passes("norm-report{file=/dev/null}"), Passes("inline"), Passes("sccp"))
# What rewrites, more often than what is there to be in the way.
WEIGHTS = tuple({"norm-simplify": 5, "norm-simplify{fp-policy=real}": 4, "canonicalize": 3,
                 "norm-fuse-residual": 3}.get(p.pipeline, 1) for p in OPTIONAL)
ORDER = {BITS: 0, PROMISE: 1, REAL: 2}


def known_passes(server):
    """The optional passes that this build has."""
    server.parse("module {}")
    return frozenset(p for p in OPTIONAL
                     if not any(word in server.passes(p.pipeline)[1]
                                for word in ("does not refer to a registered", "no such option")))


TILE = Passes("norm-configure,norm-tile", PROMISE)  # only at the end


def sequence(passes):
    """One `Passes` of several in order."""
    keeps = max((p.keeps for p in passes), key=ORDER.get)
    return Passes(",".join(p.pipeline for p in passes), keeps, any(p.may_fail for p in passes))


@dataclass
class Plan:
    """How one program is run: drawn from its seed, and stored with a failure."""

    data: list = field(default_factory=list)
    strides: str = "any"
    threads: bool = False
    level: int = 0
    linalg: bool = False
    gpu: bool = False
    sequences: list = field(default_factory=list)  # of `Passes`


def plan_for(program, passes, compiled=True):
    """passes: those there are."""
    rng = random.Random(program.seed ^ 0x5eed)
    plan = Plan(strides=rng.choice(("any", "dispatch", "unit")), threads=rng.random() < 0.2,
                level=rng.choices((0, 1, 2), (94, 2, 4))[0], linalg=rng.random() < 0.3)
    for _ in range(rng.choice((1, 1, 2)) if compiled else 3):
        # Drawn from all, so that a seed means the same on every build.
        chosen = rng.choices(OPTIONAL, WEIGHTS, k=rng.choice((1, 1, 2, 3, 4)))
        chosen = [p for p in chosen if p in passes] + [TILE] * (not compiled and rng.random() < 0.1)
        if chosen:
            plan.sequences.append(sequence(chosen))
    regimes = ["normal", *rng.sample([r for r in REGIMES if r != "normal"], 2)]
    dynamic = [i for i, d in enumerate(program.dims) if d.dynamic]
    for number, regime in enumerate(regimes):
        extents = []
        if number:
            for d in dynamic:
                multiple = program.dims[d].multiple
                extents.append((d, multiple * rng.choice((0, 1, 1, 2, 3, 5, 9))
                                if rng.random() < 0.6 else program.dims[d].extent))
        plan.data.append(DataSet(regime, tuple(extents), rng.random() < 0.15, number))
    # Drawn last: what came before means the same without it.
    plan.gpu = rng.random() < 0.3
    if plan.strides == "unit" and any(d.fortran for d in plan.data):
        plan.strides = "any"
    return plan


@dataclass
class Failure:
    """kind: crash, hang, error, silent, promise, bits, real, shape or roundtrip."""

    kind: str
    where: str  # the path or passes
    text: str
    data: DataSet = None

    def signature(self):
        """What failures of one cause share, as far as can be told."""
        first = next((line for line in self.text.splitlines() if line.strip()), "")
        if self.kind in ("promise", "bits", "real") and ":" in first:
            first = " ".join(w for w in first.split(":")[0].split()
                             if not any(c.isdigit() for c in w))
        else:
            first = "".join("0" if c.isdigit() else c for c in first)[:120]
        return f"{self.kind} {self.where.split(' ')[0]} {first}"


class Executor:
    """Counts what was done in `compiled`, `calls` and `passed`."""

    def __init__(self, server, passes=None):
        self.server = server
        self.available = known_passes(server) if passes is None else passes
        self.compiled = self.calls = self.passed = self.refused = 0

    # ---- through passes only -------------------------------------------------

    def check_passes(self, program, plan):
        """Parses, verifies, prints and reads the program and what passes make of it."""
        failure = None
        try:
            where = "parse"
            fine, text = self.server.parse(program.text())
            if not fine:
                return refusal(where, text)
            where = "roundtrip"
            fine, text = self.server.roundtrip()
            if not fine:
                return Failure("roundtrip", where, text)
            for passes in plan.sequences:
                where = passes.pipeline
                fine, text = self.server.passes(where)
                self.passed += 1
                if not fine:
                    failure = refusal(where, text, passes)
                    if failure:
                        return failure
                    self.refused += 1
                    continue
                if passes is not plan.sequences[-1]:
                    continue  # it takes longer than the passes
                where = f"{passes.pipeline} roundtrip"
                fine, text = self.server.roundtrip()
                if not fine:
                    return Failure("roundtrip", where, text)
        except Dead as dead:
            return died(where, dead)
        return None

    # ---- compiled --------------------------------------------------------------

    def check(self, program, plan):
        """The first `Failure`, or None."""
        text = program.text()
        try:
            self.where = "parse"
            fine, message = self.server.parse(text)
            if not fine:
                return refusal("parse", message)
            evaluations = [Evaluation(program, data) for data in plan.data]
            printed = self.server.print()
            reference = []
            failure = self._path("reference", program, plan, evaluations, reference,
                                 target="reference")
            failure = failure or self._path("cpu", program, plan, evaluations)
            # An emulator that is instrumented loses sight of its threads' stacks.
            if not failure and plan.gpu and not is_sanitized():
                failure = self._path("gpu-emulated", program, plan, evaluations,
                                     target="gpu-emulated")
            if not failure and plan.linalg:
                failure = self._transformed(
                    Passes("norm-lower-to-linalg", PROMISE), program, plan, evaluations,
                    reference, printed, targets=("linalg",))
            for passes in plan.sequences:
                failure = failure or self._transformed(passes, program, plan, evaluations,
                                                       reference, printed)
            return failure
        except Dead as dead:
            return died(self.where, dead)

    def _transformed(self, passes, program, plan, evaluations, reference, printed,
                     targets=None):
        """Compiles what the passes made of the module, if they changed it: for the
        reference where something is said of its bits, else for cpu, and now and then for
        both."""
        passes = passes.of(program)
        if targets is None:
            targets = ("cpu",) if passes.keeps == PROMISE else ("reference",)
            if program.seed % 4 == 0:
                targets = ("reference", "cpu")
        self.where = passes.pipeline
        fine, text = self.server.passes(passes.pipeline)
        self.passed += 1
        if not fine:
            self.refused += 1
            return refusal(passes.pipeline, text, passes)
        if self.server.print() == printed:
            return None
        lowered = "norm-lower" in passes.pipeline or "norm-tile" in passes.pipeline
        for target in targets:
            if target == "reference" and lowered:
                continue
            failure = self._path(target, program, plan, evaluations, [], target, passes, reference)
            if failure:
                return failure
        return None

    def _path(self, name, program, plan, evaluations, results=None, target="cpu", passes=None,
              reference=None):
        """results: filled with the arrays of each data set."""
        where = f"{passes.pipeline} {name}" if passes else name
        self.where = where
        strides = plan.strides if target != "reference" else "any"
        fine, text = self.server.compile("cpu" if target == "linalg" else target, strides,
                                         plan.threads, plan.level)
        if not fine:
            if target == "gpu-emulated" and any(words in text for words in NO_KERNEL):
                self.refused += 1
                return None
            # A strategy that was forced need not fit.
            forced = passes and ("rows=" in where or "columns=" in where)
            return refusal(where, text, passes if forced and "strategy" in text else None)
        self.compiled += 1
        dtypes = [program.dtype(v) for v in program.returned]
        for number, evaluation in enumerate(evaluations):
            data = evaluation.data
            self.server.inputs(evaluation.inputs)
            shapes = [program.shape(v, evaluation.extents) for v in program.returned]
            # Now and then they are inferred.
            infer = program.seed % 8 == 3 and target == "cpu" and passes is None
            arrays, text = self.server.call(dtypes, () if infer else shapes)
            if arrays is None:
                failure = refusal(where, text)
                failure.data = data
                return failure
            self.calls += 1
            if results is not None:
                results.append(arrays)
            failure = self._judge(where, evaluation, arrays, target, passes,
                                  reference and reference[number])
            if failure:
                failure.data = data
                return failure
        return None

    def _judge(self, where, evaluation, arrays, target, passes, reference):
        if passes and passes.keeps == BITS and target == "reference":
            for i, (one, other) in enumerate(zip(arrays, reference, strict=True)):
                if not same_bits(one, other):
                    return Failure("bits", where, difference(i, one, other))
            return None
        if passes and passes.keeps == REAL:
            if evaluation.data.regime != "normal":
                return None
            problems = evaluation.check(arrays, "linalg", widen_by=REAL_ULPS, real=True)
            if problems:
                return Failure("real", where, "\n".join(problems))
            for i in evaluation.opaque:
                if not close(reference[i], arrays[i]):
                    return Failure("real", where, difference(i, arrays[i], reference[i]))
            return None
        # What is reordered on the way keeps the wider promise.
        reordered = passes is not None and passes.keeps == PROMISE
        kept = "linalg" if reordered or target == "linalg" else \
            "cpu" if target == "gpu-emulated" else target
        problems = evaluation.check(arrays, kept,
                                    widen_by=8 if reordered and target == "reference" else 1)
        return Failure("promise", where, "\n".join(problems)) if problems else None


def difference(number, one, other):
    if one.shape != other.shape:
        return f"result {number}: shape {one.shape}, expected {other.shape}"
    wrong = [(i, one[i], other[i]) for i in list(np.ndindex(one.shape))[:2000]
             if not same_bits(one[i].reshape(1), other[i].reshape(1))]
    return (f"result {number}: {len(wrong)} elements differ, first (index, got, expected) "
            f"{wrong[:3]}")


def refusal(where, text, passes=None):
    """What a refused command means: every one says `error:`; some may be."""
    if "error:" not in text:
        return Failure("silent", where, text)
    if passes is not None and passes.may_fail:
        return None
    return Failure("error", where, text)


def died(where, dead):
    text = str(dead)
    return Failure("hang" if text.startswith("no reply") else "crash", where, text)
