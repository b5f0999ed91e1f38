"""norm.moments with a reduced axis in tiles, as upstream's transforms cut it: the tiles'
moments, merged, are those of the whole, far from 0 too."""

import numpy as np
import pytest
from norm.tools import norm_opt, norm_run

HANDLE = "!transform.any_op"
MODULE = """
func.func @main(%x: tensor<4x1000x5xf32>, %k: tensor<4x1000x5xi1>)
    -> (tensor<5xi64>, tensor<5xf32>, tensor<5xf64>) {
  %n, %mean, %m2 = norm.moments %x mask(%k : tensor<4x1000x5xi1>) axes [0, 1] about mean
    : tensor<4x1000x5xf32> -> count(tensor<5xi64>) mean(tensor<5xf32>) m2(tensor<5xf64>)
  return %n, %mean, %m2 : tensor<5xi64>, tensor<5xf32>, tensor<5xf64>
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: HANDLE {transform.readonly}) {
    %op = transform.structured.match ops{["norm.moments"]} in %root : (HANDLE) -> HANDLE
    %r:6 = transform.structured.CUT : (HANDLE) -> (HANDLE, HANDLE, HANDLE, HANDLE, HANDLE, HANDLE)
    transform.yield
  }
}
"""


@pytest.mark.parametrize("cut", [
    "tile_reduction_using_for %op by tile_sizes = [0, 64]",
    "tile_reduction_using_for %op by tile_sizes = [2, 64]",
    "tile_reduction_using_forall %op by num_threads = [2, 7, 0]",
    "tile_reduction_using_forall %op by num_threads = [0, 3, 0]"])
def test_tiles_merge_to_the_whole(cut, tmp_path):
    rng = np.random.default_rng(0)
    x = (1e7 + rng.standard_normal((4, 1000, 5))).astype(np.float32)
    mask = rng.random(x.shape) < 0.3
    mask[:, :, 2] = False
    x[~mask] = np.nan
    text = norm_opt(MODULE.replace("CUT", cut).replace("HANDLE", HANDLE), "--transform-interpreter")
    assert "norm.combine_moments" in text
    # The schedule is the module's last op.
    text = text[:text.index("module attributes")].rstrip() + "\n}\n"
    count, mean, m2 = norm_run(tmp_path, text, [x, mask], ["i64", "f32", "f64"])
    for channel in range(5):
        values = x[:, :, channel][mask[:, :, channel]].astype(np.float64)
        exact = values.mean() if values.size else 0.0
        assert count[channel] == values.size
        assert mean[channel] == np.float32(exact)
        assert m2[channel] == pytest.approx(((values - exact)**2).sum(), rel=1e-6)
