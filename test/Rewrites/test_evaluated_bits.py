"""A norm of constants that the compiler evaluates has the reference's bits."""

import pytest
import rewrites
from table_constant import C35


@pytest.mark.parametrize("example", C35.examples, ids=lambda e: e.name.replace(" ", "-"))
def test_bits_of_the_reference(example, tmp_path):
    _, results = rewrites.signature(example.before)
    ran = []
    for step, passes in (("before", []), ("after", C35.passes_of(example))):
        text = rewrites.optimize(example.before, passes).text
        ran.append(rewrites.execute(tmp_path / step, text, [], results, "reference"))
    rewrites.assert_same_bits(*ran, "C35 on the reference")
