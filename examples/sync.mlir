func.func @norm(%x: tensor<?x2xf32>, %mean: tensor<2xf32>, %variance: tensor<2xf32>)
    -> (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %y, %mean1, %variance1 = norm.batch_norm_training %x
      running(%mean, %variance : tensor<2xf32>, tensor<2xf32>)
      axes [0] epsilon inside_sqrt 1.0e-5 momentum 0.1
      : tensor<?x2xf32> -> tensor<?x2xf32>
        running_mean(tensor<2xf32>) running_variance(tensor<2xf32>)
  return %y, %mean1, %variance1 : tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>
}
