func.func @main(%x: tensor<4x64xf32>, %g1: tensor<64xf32>, %b1: tensor<64xf32>,
                %g2: tensor<64xf32>, %b2: tensor<64xf32>) -> tensor<4x64xf32> {
  %f1 = math.tanh %x : tensor<4x64xf32>
  %h1 = arith.addf %x, %f1 : tensor<4x64xf32>
  %n1 = norm.layer_norm %h1 scale(%g1 : tensor<64xf32>) shift(%b1 : tensor<64xf32>)
      axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x64xf32> -> tensor<4x64xf32>
  %f2 = math.exp %n1 : tensor<4x64xf32>
  %h2 = arith.addf %n1, %f2 : tensor<4x64xf32>
  %n2 = norm.layer_norm %h2 scale(%g2 : tensor<64xf32>) shift(%b2 : tensor<64xf32>)
      axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x64xf32> -> tensor<4x64xf32>
  return %n2 : tensor<4x64xf32>
}
