"""Writes .npy files for tests, without NumPy, so that malformed ones can be made.

usage: npy.py PATH DESCR SHAPE VALUE...
  SHAPE is 2x3, 5 or `scalar`; values are Python numbers, the last one repeats;
  `mixed` instead of them is a fixed sequence of different numbers from -5 to 6.
  --order=F        the values as they lie in the file, of an array in Fortran order
  --version=N      the format's version
  --header=TEXT    this header instead
  --cut=N          drop the last N bytes
  --append=N       N more bytes
"""

import struct
import sys

CODES = {"b1": "B", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I",
         "i8": "q", "u8": "Q", "f2": "e", "f4": "f", "f8": "d"}


def main():
    options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
    path, descr, shape, *values = [a for a in sys.argv[1:] if not a.startswith("--")]
    extents = [] if shape == "scalar" else [int(e) for e in shape.split("x")]
    count = 1
    for extent in extents:
        count *= extent
    code = CODES.get(descr[1:], "B")
    if values == ["mixed"]:
        values = [str(i * 7919 % 1009 / 97 - 5) for i in range(count)]
    numbers = [float(v) if code in "efd" else int(v, 0) for v in values] or [0]
    numbers = (numbers + [numbers[-1]] * count)[:count]
    data = struct.pack(f"{'>' if descr[0] == '>' else '<'}{count}{code}", *numbers)

    version = int(options.get("version", 1))
    text = options.get("header") or str({
        "descr": descr, "fortran_order": options.get("order") == "F",
        "shape": tuple(extents)})
    length = "<H" if version == 1 else "<I"
    preamble = 8 + struct.calcsize(length)
    text += " " * (-(preamble + len(text) + 1) % 64) + "\n"
    file = b"\x93NUMPY" + bytes([version, 0]) + struct.pack(length, len(text))
    file += text.encode() + data + bytes(int(options.get("append", 0)))
    with open(path, "wb") as out:
        out.write(file[: len(file) - int(options.get("cut", 0))])


main()
