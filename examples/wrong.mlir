func.func @main(%x: tensor<6x4xf32>, %g: tensor<6xf32>) -> tensor<6x4xf32> {
  %y = norm.layer_norm %x scale(%g : tensor<6xf32>) axes [1]
      epsilon inside_sqrt 1.0e-5 : tensor<6x4xf32> -> tensor<6x4xf32>
  return %y : tensor<6x4xf32>
}
