"""A Python that is not instrumented cannot load an emulator that is."""

import re

from norm.tools import build_dir

CACHE = build_dir() / "CMakeCache.txt"
SANITIZED = CACHE.is_file() and re.search(r"^NORM_SANITIZE:\w+=.", CACHE.read_text(), re.M)
collect_ignore = ["test_rows.py", "test_neighbours.py", "test_table.py", "test_quantization.py",
                  "test_gpu_cases.py", "test_ends.py"] if SANITIZED else []
