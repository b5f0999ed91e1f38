module {
  func.func @main(%arg0: tensor<2x6x4x4xf32>) -> tensor<2x6x4x4xf32> {
    %cst = arith.constant dense<[[[[-0.257002383]], [[0.330181271]], [[-0.321356237]], [[0.0368103758]], [[-0.169895262]], [[0.111934401]]]]> : tensor<1x6x1x1xf32>
    %cst_0 = arith.constant dense<[[[[0.708129764]], [[1.42979908]], [[1.22310925]], [[1.24233627]], [[1.02629578]], [[0.743658244]]]]> : tensor<1x6x1x1xf32>
    %cst_1 = arith.constant 9.99999974E-6 : f32
    %cst_2 = arith.constant dense<[[[[1.46229887]], [[0.911971331]], [[0.346363187]], [[1.17052937]], [[0.674643278]], [[0.580421329]]]]> : tensor<1x6x1x1xf32>
    %cst_3 = arith.constant dense<[[[[0.121004052]], [[0.251407921]], [[-0.215777293]], [[-0.121003062]], [[-0.178990602]], [[0.054610949]]]]> : tensor<1x6x1x1xf32>
    %0 = tensor.empty() : tensor<1x6x1x1xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_0 : tensor<1x6x1x1xf32>) outs(%0 : tensor<1x6x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = arith.addf %in, %cst_1 : f32
      linalg.yield %8 : f32
    } -> tensor<1x6x1x1xf32>
    %2 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<1x6x1x1xf32>) outs(%0 : tensor<1x6x1x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %8 = math.rsqrt %in : f32
      linalg.yield %8 : f32
    } -> tensor<1x6x1x1xf32>
    %3 = tensor.empty() : tensor<2x6x4x4xf32>
    %4 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (0, d1, 0, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0, %cst : tensor<2x6x4x4xf32>, tensor<1x6x1x1xf32>) outs(%3 : tensor<2x6x4x4xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %8 = arith.subf %in, %in_4 : f32
      linalg.yield %8 : f32
    } -> tensor<2x6x4x4xf32>
    %5 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (0, d1, 0, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4, %2 : tensor<2x6x4x4xf32>, tensor<1x6x1x1xf32>) outs(%3 : tensor<2x6x4x4xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %8 = arith.mulf %in, %in_4 : f32
      linalg.yield %8 : f32
    } -> tensor<2x6x4x4xf32>
    %6 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (0, d1, 0, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5, %cst_2 : tensor<2x6x4x4xf32>, tensor<1x6x1x1xf32>) outs(%3 : tensor<2x6x4x4xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %8 = arith.mulf %in, %in_4 : f32
      linalg.yield %8 : f32
    } -> tensor<2x6x4x4xf32>
    %7 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (0, d1, 0, 0)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%6, %cst_3 : tensor<2x6x4x4xf32>, tensor<1x6x1x1xf32>) outs(%3 : tensor<2x6x4x4xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %8 = arith.addf %in, %in_4 : f32
      linalg.yield %8 : f32
    } -> tensor<2x6x4x4xf32>
    return %7 : tensor<2x6x4x4xf32>
  }
}
