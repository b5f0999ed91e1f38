// The algebra of statistics on numbers that can be checked by hand.
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/../Tools/Inputs/npy.py %t/x.npy '<f4' 2x3 1 3 nan 10 20 60
// RUN: %python %S/../Tools/Inputs/npy.py %t/mask.npy '|b1' 2x3 1 1 0 1 1 1
// RUN: %python %S/../Tools/Inputs/npy.py %t/dy.npy '<f4' 2x3 1 0 nan 1 1 1

// Rows of 2 and 3: means 2 and 30, squares 2 and 1400. Together 5 elements of
// mean (2*2 + 3*30)/5 and squares 1402 + 2*3/5 * 28^2. An empty part with a NaN
// for its mean changes nothing.
// RUN: norm-run %s --target=reference --entry=moments --input=%t/x.npy --input=%t/mask.npy | FileCheck %s --check-prefix=MOMENTS
// MOMENTS:      result 0: 2 of i64
// MOMENTS-NEXT:   2 3
// MOMENTS-NEXT: result 1: 2 of f64
// MOMENTS-NEXT:   2 30
// MOMENTS-NEXT: result 2: 2 of f64
// MOMENTS-NEXT:   2 1400
// MOMENTS-NEXT: result 3: scalar of i64
// MOMENTS-NEXT:   5
// MOMENTS-NEXT: result 4: scalar of f64
// MOMENTS-NEXT:   18.8
// MOMENTS-NEXT: result 5: scalar of f64
// MOMENTS-NEXT:   2342.8
func.func @moments(%x: tensor<2x3xf32>, %mask: tensor<2x3xi1>)
    -> (tensor<2xi64>, tensor<2xf64>, tensor<2xf64>, tensor<i64>, tensor<f64>, tensor<f64>) {
  %n, %mean, %m2 = norm.moments %x mask(%mask : tensor<2x3xi1>) axes [1] about mean
      : tensor<2x3xf32> -> count(tensor<2xi64>) mean(tensor<2xf64>) m2(tensor<2xf64>)
  %zero = arith.constant dense<0> : tensor<1xi64>
  %nan = arith.constant dense<0x7FF8000000000000> : tensor<1xf64>
  %n3 = tensor.concat dim(0) %n, %zero : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>
  %mean3 = tensor.concat dim(0) %mean, %nan : (tensor<2xf64>, tensor<1xf64>) -> tensor<3xf64>
  %m23 = tensor.concat dim(0) %m2, %nan : (tensor<2xf64>, tensor<1xf64>) -> tensor<3xf64>
  %all, %u, %q = norm.combine_moments count(%n3 : tensor<3xi64>) mean(%mean3 : tensor<3xf64>)
      m2(%m23 : tensor<3xf64>) -> count(tensor<i64>) mean(tensor<f64>) m2(tensor<f64>)
  return %n, %mean, %m2, %all, %u, %q
      : tensor<2xi64>, tensor<2xf64>, tensor<2xf64>, tensor<i64>, tensor<f64>, tensor<f64>
}

// Row 0 has x^ = (-1, 1), of which g = (1, 0): sums 1 and -1, and a gradient of
// two elements is 0, as it is where the mask does not hold. In row 1 g is
// constant.
// RUN: norm-run %s --target=reference --entry=gradients --input=%t/dy.npy --input=%t/x.npy --input=%t/mask.npy | FileCheck %s --check-prefix=GRADIENTS
// GRADIENTS:      result 0: 2 of f32
// GRADIENTS-NEXT:   1 3
// GRADIENTS-NEXT: result 1: 2 of f32
// GRADIENTS-NEXT:   -1 {{-?[0-9.]+(e-[0-9]+)?$}}
// GRADIENTS-NEXT: result 2: 3 of f32
// GRADIENTS-NEXT:   2 1 1
// GRADIENTS-NEXT: result 3: 2x3 of f32
// GRADIENTS-NEXT:   0 0 0
func.func @gradients(%dy: tensor<2x3xf32>, %x: tensor<2x3xf32>, %mask: tensor<2x3xi1>)
    -> (tensor<2xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2x3xf32>) {
  %n, %mean, %m2 = norm.moments %x mask(%mask : tensor<2x3xi1>) axes [1] about mean
      : tensor<2x3xf32> -> count(tensor<2xi64>) mean(tensor<2xf64>) m2(tensor<2xf64>)
  %r = norm.rstd %m2 count(%n : tensor<2xi64>) epsilon none compute f32
      : tensor<2xf64> -> tensor<2xf32>
  %sg, %sgx, %db = norm.backward_moments %dy, %x mean(%mean : tensor<2xf64>)
      rstd(%r : tensor<2xf32>) mask(%mask : tensor<2x3xi1>) axes [1]
      : tensor<2x3xf32>, tensor<2x3xf32> -> sum_g(tensor<2xf32>) sum_gx(tensor<2xf32>) dshift(tensor<3xf32>)
  %dx = norm.backward_normalize %dy, %x mean(%mean : tensor<2xf64>) rstd(%r : tensor<2xf32>)
      sum_g(%sg : tensor<2xf32>) sum_gx(%sgx : tensor<2xf32>) count(%n : tensor<2xi64>)
      mask(%mask : tensor<2x3xi1>) axes [1] epsilon none
      : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
  return %sg, %sgx, %db, %dx : tensor<2xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2x3xf32>
}
