"""Damaged IR: valid programs and the repository's own tests with tokens deleted, swapped
and replaced, attributes, types and properties changed. Whatever they are, reading them
and running passes over them ends, and says `error:` where it fails."""

import random
import re
from functools import cache

from norm.fuzz.execute import OPTIONAL, Failure, Passes, died
from norm.fuzz.generate import generate
from norm.fuzz.server import Dead
from norm.tools import ROOT

TOKEN = re.compile(r'"[^"\n]*"|[%@#!^]?[\w.$]+(?:#\d+)?(?:(?<=e)[+-]\d+)?|->|[ \t]+|[^\s\w]|\n')
# What crashes MLIR's own parser (22.1): an array attribute of index elements.
UPSTREAM = re.compile(r"array\s*<\s*index")
WORDS = (
    "f16", "bf16", "f32", "f64", "i1", "i64", "index", "f8E4M3FN", "complex<f32>", "none",
    "tensor<f32>", "tensor<*xf32>", "tensor<4xf32>", "tensor<?x0xf32>", "tensor<4x4xi32>",
    "tensor<4xf32, 1 : i64>", "vector<4xf32>", "memref<4xf32>", "0", "1", "-1", "2", "7", "64",
    "-9223372036854775808", "9223372036854775807", "4611686018427387904", "0.0", "-0.0",
    "1.0e-5", "-1.0", "1.0e400", "0x7F800000", "0x7FC00000", "true", "unit", "[]", "[0]",
    "[0, 0]", "[-1]", "[1, 0]", "[99]", "()", "{}", "<", ">", "(", ")", "[", "]", ",", ":", "->",
    "=", "%x", "%arg0", "%0", "inside_sqrt", "outside_sqrt", "max_inside", "none", "axes",
    "affine_axes", "epsilon", "compute", "correction", "groups", "channel_axis", "residual",
    "scale", "shift", "mean", "rstd", "sum", "momentum", "running", "zero_policy zero",
    "affine_in result", "sum_rounding compute", "scale_offset 1.0", "scale_offset 1.0e400",
    "correction 1", "groups 0", "groups -2", "compute i32", "compute f64", "axes []",
    "axes [0, 0]", "epsilon none", "epsilon inside_sqrt -1.0", "about zero")
LATER = tuple(Passes(name) for name in (
    "norm-to-cpu", "norm-to-reference", "norm-to-cpu{threads=false strides=any}",
    "norm-lower-to-reference", "norm-configure,norm-tile,norm-lower-to-linalg,norm-vectorize",
    "norm-vectorize", "norm-map-to-registers", "norm-entry-abi", "norm-tile",
    "norm-split-gradients,norm-configure,norm-tile", "norm-raise{statistics=widen}",
    "norm-generalize{parts=-3}", "norm-generalize{parts=4 axis=1}", "norm-generalize{cut}",
    "norm-generalize{cut parts=2}", "norm-configure{rows=-1}", "norm-configure{columns=3}",
    "norm-separate-destinations", "norm-decompose-concat", "norm-expand-narrowing"))


@cache
def corpus():
    """The modules of the repository's tests, without the large ones."""
    found = []
    for path in sorted((ROOT / "test").rglob("*.mlir")):
        if "Corpus" in path.parts or path.stat().st_size > 60000:
            continue
        for part in path.read_text().split("// -----"):
            lines = [line for line in part.splitlines() if not line.lstrip().startswith("//")]
            text = "\n".join(line.split(" // ")[0] for line in lines).strip()
            if "norm." in text and len(text) < 6000:
                found.append(text + "\n")
    return tuple(found)


def source(rng, server):
    """A valid text, plain or in generic form."""
    text = rng.choice(corpus()) if rng.random() < 0.5 else \
        generate(rng.randrange(1 << 30), norms=1, depth=1).text()
    if rng.random() < 0.35 and server.parse(text)[0]:
        text = server.command("generic")[1]
    return text


def damage(rng, text):
    """One to four changes, most of them to a norm op's line."""
    tokens = TOKEN.findall(text)
    if not tokens:
        return text
    # The lines that hold norm ops, and those that hold no op whose parser is known to
    # trust what it reads.
    lines, others, start = [], [], 0
    for i, token in enumerate(tokens):
        if token == "\n" or i == len(tokens) - 1:
            line = tokens[start:i + 1]
            if any("norm." in t for t in line):
                lines.append((start, i + 1))
            elif not any(t.strip('"').startswith(("linalg.", "iterator_types")) for t in line):
                others.append((start, i + 1))
            start = i + 1
    gentle = rng.random() < 0.6
    for _ in range(1 if gentle else rng.choice((1, 2, 2, 3, 4))):
        some = lines if lines and (rng.random() < 0.75 or not others) else others
        if not some:
            return text
        low, high = rng.choice(some)
        places = [i for i in range(low, min(high, len(tokens))) if not tokens[i].isspace()]
        at = rng.choice(places) if places else rng.randrange(len(tokens))
        kind = rng.choice(("delete", "swap", "replace", "replace", "copy", "number", "number",
                           "type", "insert", "span", "cut"))
        if gentle and rng.random() < 0.7:
            kind = rng.choice(("small", "name", "word"))
        if kind in ("small", "name", "word"):
            alike(rng, tokens, low, high, kind)
        elif kind == "number":
            numbers = [i for i in range(low, min(high, len(tokens)))
                       if re.fullmatch(r"\d+|[\d?]+x.*", tokens[i])]
            at = rng.choice(numbers) if numbers else at
            tokens[at] = re.sub(r"^\d+", rng.choice(("0", "1", "2", "3", "?", "5", "64", "100000",
                                                     "4611686018427387904")), tokens[at])
        elif kind == "type":
            types = [i for i in range(low, min(high, len(tokens)))
                     if re.search(r"b?f\d+$|i64$|i1$", tokens[i])]
            at = rng.choice(types) if types else at
            tokens[at] = re.sub(r"(b?f\d+|i64|i1)$", rng.choice(WORDS[:9]), tokens[at])
        elif kind == "delete":
            tokens[at] = ""
        elif kind == "swap":
            other = min(high, len(tokens)) - 1 if rng.random() < 0.3 else \
                min(len(tokens) - 1, at + rng.randrange(1, 6))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == "replace":
            tokens[at] = rng.choice(WORDS) if rng.random() < 0.6 else rng.choice(tokens)
        elif kind == "copy":
            tokens[at] = f"{tokens[at]} {tokens[at]}"
        elif kind == "insert":
            tokens[at] = f"{rng.choice(WORDS)} {tokens[at]}"
        elif kind == "span":
            end = min(len(tokens), at + rng.randrange(1, 8))
            tokens[at:end] = [""] * (end - at)
        elif rng.random() < 0.1:
            return "".join(tokens[:at + 1])
    return "".join(tokens)


KEYWORDS = (
    ("inside_sqrt", "outside_sqrt", "max_inside", "max_outside"), ("mean", "zero", "variance"),
    ("ieee", "zero"), ("result", "compute"), ("stored", "compute"),
    tuple(f"{op}_norm" for op in ("layer", "rms", "l2", "group", "instance")),
    tuple(f"norm.{op}_norm" for op in ("layer", "rms", "l2", "instance")),
    tuple(f"norm.{op}_norm_backward" for op in ("layer", "rms", "l2", "instance")),
    ("add", "sub", "mul", "max"), ("arith.addf", "arith.subf", "arith.mulf", "arith.maximumf"))


def alike(rng, tokens, low, high, kind):
    """Replaces a token by one that may stand there: a small number, a value, a keyword."""
    span = range(low, min(high, len(tokens)))
    if kind == "small":
        places = [i for i in span if re.fullmatch(r"\d+|\d+\.\d+(e[+-]?\d+)?", tokens[i])]
        if places:
            at = rng.choice(places)
            tokens[at] = rng.choice(("0.0", "1.0", "-0.0", "1.0e-30", "2.5")) \
                if "." in tokens[at] else rng.choice(("0", "1", "2", "3"))
    elif kind == "name":
        names = [i for i in range(len(tokens)) if tokens[i].startswith("%")]
        places = [i for i in names if low <= i < high]
        if places:
            tokens[rng.choice(places)] = tokens[rng.choice(names)]
    else:
        places = [i for i in span if any(tokens[i] in group for group in KEYWORDS)]
        if places:
            at = rng.choice(places)
            tokens[at] = rng.choice([w for group in KEYWORDS if tokens[at] in group
                                     for w in group])


def check(server, seed):
    """A damaged text put through the parser, the verifier and passes: the text and its
    `Failure`, or None; and whether the parser took it."""
    rng = random.Random(seed)
    where, text = "source", ""
    try:
        text = damage(rng, source(rng, server))
        if UPSTREAM.search(text):
            return text, None, False
        where = "parse"
        fine, message = server.parse(text)
        if not fine:
            return text, silent(where, message), False
        where = "roundtrip"
        fine, message = server.roundtrip()
        if not fine:
            return text, Failure("roundtrip", where, message), True
        for _ in range(2):
            chosen = rng.choices((*OPTIONAL, *LATER), k=rng.choice((1, 1, 2)))
            where = ",".join(p.pipeline for p in chosen)
            fine, message = server.passes(where)
            if not fine and (failure := silent(where, message)):
                return text, failure, True
        return text, None, True
    except Dead as dead:
        return text, died(where, dead), True


def check_text(server, text):
    """A stored text through the parser and every pass alone; the first `Failure`."""
    where = "parse"
    try:
        fine, message = server.parse(text)
        if not fine:
            return silent(where, message)
        for passes in (*OPTIONAL, *LATER):
            where = passes.pipeline
            fine, message = server.passes(where)
            if not fine and (failure := silent(where, message)):
                return failure
    except Dead as dead:
        return died(where, dead)
    return None


def silent(where, message):
    return None if "error:" in message or "not refer to a registered" in message else \
        Failure("silent", where, message)
