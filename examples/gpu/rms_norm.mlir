func.func @main(%x: tensor<?x768xf32>, %g: tensor<768xf32>) -> tensor<?x768xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<768xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<?x768xf32> -> tensor<?x768xf32>
  return %y : tensor<?x768xf32>
}
