"""Runs many calls at the cost of few processes.

Calls are grouped, one function a group, and groups run in a small pool. When a
group fails, its calls run alone, so that an error belongs to the call it is of.
"""

import itertools
import os
from concurrent.futures import ThreadPoolExecutor

from norm.program import module_text, split_results
from norm.tools import ToolError, norm_opt, norm_run

GROUP_SIZE = 24


def run_calls(directory, calls, path="cpu", threads=None):
    """All calls as one function on one path; a {name: array} per call."""
    module = module_text(calls)
    if path == "linalg":
        module = norm_opt(module, "--norm-lower-to-linalg")
    inputs = [array for call in calls for array in call.inputs()]
    elements = [element for call in calls for _, element in call.result_types()]
    # Plain loops take LLVM longer to optimize than they take to run.
    arrays = norm_run(directory, module, inputs, elements, threads=threads,
                      target="reference" if path == "reference" else "cpu",
                      optimize=0 if path == "linalg" else None)
    return split_results(calls, arrays)


class Runner:
    """Results of cases by (case, path), computed group by group on demand.

    make: case -> Call. Submit everything that will be asked for first."""

    def __init__(self, directory, make, group_size=GROUP_SIZE, workers=None):
        self.directory, self.make, self.group_size = directory, make, group_size
        self.pool = ThreadPoolExecutor(workers or os.cpu_count() or 1)
        self.numbers = itertools.count()
        self.futures = {}

    def submit(self, cases, path):
        cases = list(cases)
        for start in range(0, len(cases), self.group_size):
            group = cases[start:start + self.group_size]
            future = self.pool.submit(self._run_group, group, path)
            for position, case in enumerate(group):
                self.futures[case, path] = future, position

    def _run_group(self, cases, path):
        where = self.directory / f"group{next(self.numbers)}"
        calls = [self.make(case) for case in cases]
        try:
            return run_calls(where, calls, path)
        except ToolError:
            return [self._run_alone(where / str(i), call, path) for i, call in enumerate(calls)]

    def _run_alone(self, where, call, path):
        try:
            return run_calls(where, [call], path)[0]
        except ToolError as error:
            return error

    def results(self, case, path):
        """{name: array}; raises the case's ToolError if it could not run."""
        future, position = self.futures[case, path]
        found = future.result()[position]
        if isinstance(found, Exception):
            raise found
        return found

    def close(self):
        self.pool.shutdown(cancel_futures=True)
