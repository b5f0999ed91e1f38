// Looks like an RMS norm over the last axis, but divides by 7, not by the extent 8.
#all = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0, 0)>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %zero = arith.constant 0.0 : f32
  %seven = arith.constant 7.0 : f32
  %epsilon = arith.constant 1.0e-6 : f32
  %full = tensor.empty() : tensor<4x8xf32>
  %rows = tensor.empty() : tensor<4x1xf32>
  %square = linalg.generic {indexing_maps = [#all, #all],
                            iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%full : tensor<4x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.mulf %in, %in : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%rows : tensor<4x1xf32>) -> tensor<4x1xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row],
                         iterator_types = ["parallel", "reduction"]}
      ins(%square : tensor<4x8xf32>) outs(%init : tensor<4x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<4x1xf32>
  %factor = linalg.generic {indexing_maps = [#all, #all],
                            iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<4x1xf32>) outs(%rows : tensor<4x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.divf %in, %seven : f32
    %1 = arith.addf %0, %epsilon : f32
    %2 = math.rsqrt %1 : f32
    linalg.yield %2 : f32
  } -> tensor<4x1xf32>
  %y = linalg.generic {indexing_maps = [#all, #row, #all],
                       iterator_types = ["parallel", "parallel"]}
      ins(%x, %factor : tensor<4x8xf32>, tensor<4x1xf32>) outs(%full : tensor<4x8xf32>) {
  ^bb0(%in: f32, %r: f32, %out: f32):
    %0 = arith.mulf %in, %r : f32
    linalg.yield %0 : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
