"""A Python that is not instrumented cannot load an emulator that is."""

from norm.tools import is_sanitized

collect_ignore = ["test_rows.py", "test_neighbours.py", "test_table.py", "test_quantization.py",
                  "test_gpu_cases.py", "test_ends.py"] if is_sanitized() else []
