func.func @main(%x: tensor<1024x4096xf32>, %g: tensor<4096xf32>) -> tensor<1024x4096xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<4096xf32>) axes [1]
      epsilon inside_sqrt 1.0e-6 : tensor<1024x4096xf32> -> tensor<1024x4096xf32>
  return %y : tensor<1024x4096xf32>
}
