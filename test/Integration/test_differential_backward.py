"""The backward ops: every case of the table, on every path, against the oracle and its
error promise."""

import pytest
from cases import check_case, runs
from table_backward import TABLE


@pytest.mark.parametrize(**runs(TABLE))
def test_case(case, path, case_runner):
    check_case(case, path, case_runner)
