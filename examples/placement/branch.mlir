func.func @main(%x: tensor<4x64xf32>, %g1: tensor<64xf32>, %g2: tensor<64xf32>)
    -> tensor<4x64xf32> {
  %f1 = math.tanh %x : tensor<4x64xf32>
  %n1 = norm.rms_norm %f1 scale(%g1 : tensor<64xf32>) axes [1]
      epsilon inside_sqrt 1.0e-6 : tensor<4x64xf32> -> tensor<4x64xf32>
  %h1 = arith.addf %x, %n1 : tensor<4x64xf32>
  %f2 = math.exp %h1 : tensor<4x64xf32>
  %n2 = norm.rms_norm %f2 scale(%g2 : tensor<64xf32>) axes [1]
      epsilon inside_sqrt 1.0e-6 : tensor<4x64xf32> -> tensor<4x64xf32>
  %h2 = arith.addf %h1, %n2 : tensor<4x64xf32>
  return %h2 : tensor<4x64xf32>
}
