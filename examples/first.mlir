func.func @main(%x: tensor<2x4xf32>, %g: tensor<4xf32>) -> tensor<2x4xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<4xf32>) axes [-1]
      epsilon inside_sqrt 1.0e-6 : tensor<2x4xf32> -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
