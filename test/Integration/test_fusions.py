"""Additions around norms, one loop nest for each form of fusion.

F1 to F4 and F11 of docs/Placement.md in f32 and bf16: the loops after norm-tile are counted
and no linalg op stays outside; the fused program keeps every bit of the one it came from,
on the CPU and by the reference, and the two agree.
"""

import re

import numpy as np
import pytest
from norm.tools import norm_opt, norm_run
from norm.types import float_type

SHAPE = (2, 6, 40)
FUSE = "--norm-fuse-residual"
# The same tree of sums before and after.
STRATEGY = "--norm-configure=rows=1 columns=8"
RMS = "axes [2] epsilon inside_sqrt 1.0e-6"
MAPS = {"x": "(a, b, c)", "row": "(b, c)", "one": "(0, b, c)", "bias": "(c)"}
SHAPES = {"x": "2x6x40", "row": "6x40", "one": "1x6x40", "bias": "40"}
ARGUMENTS = (("x", "x"), ("r", "x"), ("f", "x"), ("row", "row"), ("one", "one"), ("bias", "bias"),
             ("g", "bias"), ("h", "bias"))


class Program:
    """A function @main of the arguments above in one element type."""

    def __init__(self, element):
        self.element, self.lines = element, []
        self.kinds = {f"%{name}": shape for name, shape in ARGUMENTS}
        self.full = self.type("x")

    def type(self, shape, element=None):
        return f"tensor<{SHAPES[shape]}x{element or self.element}>"

    def _emit(self, text):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        self.kinds[name] = "x"
        return name

    def generic(self, inputs, code, element=None, source=None):
        element = element or self.element
        kinds = [self.kinds[i] for i in inputs]
        maps = [f"affine_map<(a, b, c) -> {MAPS[k]}>" for k in (*kinds, "x")]
        types = ", ".join(self.type(k, source) for k in kinds)
        scalars = ", ".join(f"%p{n}: {source or self.element}" for n in range(len(inputs)))
        full = self.type("x", element)
        empty = self._emit(f"tensor.empty() : {full}")
        return self._emit(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = "
            f'["parallel", "parallel", "parallel"]}} ins({", ".join(inputs)} : {types}) '
            f"outs({empty} : {full}) {{\n  ^bb0({scalars}, %o: {element}):\n{code}\n"
            f"    linalg.yield %t : {element}\n  }} -> {full}")

    def add(self, a, b):
        return self.generic((a, b), f"    %t = arith.addf %p0, %p1 : {self.element}")

    def add_wide(self, a, b):
        """A sum in f32, and its cast to the element type."""
        wide = self.generic((a, b), "    %a = arith.extf %p0 : bf16 to f32\n"
                            "    %b = arith.extf %p1 : bf16 to f32\n"
                            "    %t = arith.addf %a, %b : f32", "f32")
        return self.generic((wide,), "    %t = arith.truncf %p0 : f32 to bf16", source="f32")

    def exp(self, a):
        return self.generic((a,), f"    %t = math.exp %p0 : {self.element}")

    def norm(self, x, gain="%g", op="rms_norm"):
        return self._emit(f"norm.{op} {x} scale({gain} : {self.type('bias')}) {RMS} : "
                          f"{self.full} -> {self.full}")

    def backward(self, dy, x):
        return self._emit(f"norm.rms_norm_backward {dy}, {x} scale(%g : {self.type('bias')}) "
                          f"{RMS} : {self.full}, {self.full} -> {self.full}")

    def text(self, *results):
        arguments = ", ".join(f"%{name}: {self.type(shape)}" for name, shape in ARGUMENTS)
        types = ", ".join([self.full] * len(results))
        lines = "\n".join(self.lines)
        return (f"func.func @main({arguments}) -> ({types}) {{\n{lines}\n"
                f"  return {', '.join(results)} : {types}\n}}\n")


def sum_unused(p):
    return [p.norm(p.add("%x", "%r"))]


def sum_returned(p):
    s = p.add("%x", "%r")
    return [p.norm(s), s]


def sum_used_before(p):
    """By an op before the norm, and by the return: a second loop, for that op."""
    s = p.add("%x", "%r")
    return [p.exp(s), p.norm(s), s]


def sum_of_two_norms(p):
    s = p.add("%x", "%r")
    return [p.norm(s), p.norm(s, "%h", "layer_norm")]


def producers(p):
    return [p.norm(p.add(p.exp("%x"), p.exp("%r")))]


def bias(p):
    return [p.norm(p.add("%x", "%bias"))]


def bias_stored(p):
    s = p.add("%x", "%bias")
    return [p.norm(s), s]


def bias_and_residual(p):
    s = p.add(p.add("%x", "%bias"), "%r")
    return [p.norm(s), s]


def row(p):
    s = p.add("%x", "%row")
    return [p.norm(s), s]


def row_first(p):
    s = p.add("%row", "%x")
    return [p.norm(s), s]


def row_alone(p):
    return [p.norm(p.add("%x", "%row"))]


def one(p):
    s = p.add("%x", "%one")
    return [p.norm(s), s]


def one_first(p):
    s = p.add("%one", "%x")
    return [p.norm(s), s]


def post(p):
    return [p.norm(p.add("%x", p.exp("%x")), op="layer_norm")]


def branch(p):
    return [p.add("%x", p.norm("%f"))]


def branch_first(p):
    return [p.add(p.norm("%f"), "%x")]


def sandwich(p):
    h = p.add("%x", p.norm("%f"))
    return [p.norm(h, "%h"), h]


def sandwich_with_work_before(p):
    h = p.add("%x", p.norm(p.exp("%f")))
    return [p.exp(p.norm(h, "%h")), h]


def gradient(p):
    return [p.add(p.backward("%r", "%x"), "%f")]


def gradient_first(p):
    return [p.add("%f", p.backward("%r", "%x"))]


def cast_between(p):
    return [p.norm(p.add_wide("%x", "%r"))]


def cast_between_stored(p):
    s = p.add_wide("%x", "%r")
    return [p.norm(s), s]


def cast_of_a_repeated(p):
    s = p.add_wide("%row", "%x")
    return [p.norm(s), s]


# Whether a norm takes the addition, and the loops that are left.
FORMS = {
    sum_unused: (True, 1), sum_returned: (True, 1), sum_used_before: (True, 1),
    sum_of_two_norms: (True, 2), producers: (True, 1),
    bias: (False, 1), bias_stored: (True, 1), bias_and_residual: (True, 1),
    row: (True, 1), row_first: (True, 1), row_alone: (True, 1), one: (True, 1),
    one_first: (True, 1), post: (True, 1), branch: (False, 1), branch_first: (False, 1),
    sandwich: (True, 1), sandwich_with_work_before: (True, 1),
    gradient: (True, 1), gradient_first: (True, 1),
}
BF16 = {cast_between: (True, 1), cast_between_stored: (True, 1), cast_of_a_repeated: (True, 1)}
# dx is rounded to bf16 before the addition, which stays a consumer in the loop.
ROUNDED = (gradient, gradient_first)
CASES = [(form, element, *found) for element in ("f32", "bf16") for form, found in
         {**FORMS, **(BF16 if element == "bf16" else {})}.items()]


def build(form, element):
    program = Program(element)
    return program.text(*form(program))


def outputs(directory, text, element, count, target):
    rng = np.random.default_rng(0)
    shapes = [[int(n) for n in SHAPES[shape].split("x")] for _, shape in ARGUMENTS]
    inputs = [rng.standard_normal(s).astype(float_type(element).dtype) for s in shapes]
    return norm_run(directory, text, inputs, [element] * count, target=target)


@pytest.mark.parametrize("form,element,takes,loops", CASES,
                         ids=[f"{c[0].__name__}-{c[1]}" for c in CASES])
def test_one_loop_and_the_same_bits(form, element, takes, loops, tmp_path):
    before = build(form, element)
    after = norm_opt(before, FUSE)
    takes = takes and not (element == "bf16" and form in ROUNDED)
    assert bool(re.search(r"residual\(|dsum\(", after)) == takes, after
    tiled = norm_opt(after, "--norm-configure", "--norm-tile", "--canonicalize")
    assert len(re.findall(r"scf\.forall \(", tiled)) == loops, tiled
    assert not re.findall(r"^    %\S+ = linalg\.", tiled, re.M), tiled

    ran, count = {}, len(form(Program(element)))
    for name, text in (("before", before), ("after", after)):
        ran[name] = outputs(tmp_path / f"reference-{name}", text, element, count,
                                            "reference")
        forced = norm_opt(text, STRATEGY)
        ran[f"cpu {name}"] = outputs(tmp_path / f"cpu-{name}", forced, element, count, "cpu")
    for one, other in zip(ran["cpu before"], ran["cpu after"], strict=True):
        assert one.tobytes() == other.tobytes()
    # The reference sums in f64 and rounds each result once: one rounding less in F11.
    exact = form not in ROUNDED
    step = 2.0**-7 if element == "bf16" else 1e-6
    for before_, after_, cpu in zip(ran["before"], ran["after"], ran["cpu after"], strict=True):
        if exact:
            assert before_.tobytes() == after_.tobytes()
        want = after_.astype(np.float64)
        np.testing.assert_allclose(cpu.astype(np.float64), want, rtol=4 * step,
                                   atol=4 * step * np.abs(want).max())


@pytest.mark.parametrize("first,second", [(row, row_first), (one, one_first)])
def test_order_of_a_repeated_operand_does_not_matter(first, second):
    forms = [norm_opt(build(form, "f32"), FUSE, "--canonicalize") for form in (first, second)]
    assert forms[0] == forms[1]


def test_repeated_operand_is_not_written_to_memory():
    text = norm_opt(build(row, "f32"), FUSE, "--norm-to-cpu=strides=unit")
    # Two results, allocated by the caller or here; no third buffer of x's size.
    assert len(re.findall(r"llvm\.call @(?:malloc|aligned_alloc)", text)) <= 2, text[:2000]
