// Programs whose neighbours of a norm are hard to fuse, against the reference.
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/Inputs/npy.py %t/x.npy '<f4' 5x37 mixed
// RUN: norm-run %s --entry=compare --input=%t/x.npy --compare=reference --tolerance=0
// RUN: norm-run %s --entry=masked --input=%t/x.npy --compare=reference --tolerance=1e-6
// RUN: norm-run %s --entry=carried --input=%t/x.npy --compare=reference --tolerance=1e-6

#id = affine_map<(a, b) -> (a, b)>
#row = affine_map<(a, b) -> (a)>
func.func @compare(%x: tensor<5x37xf32>) -> tensor<5x37xi1> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<5x37xf32> -> tensor<5x37xf32>
  %e = tensor.empty() : tensor<5x37xi1>
  %q = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<5x37xf32>) outs(%e : tensor<5x37xi1>) {
  ^bb0(%a: f32, %o: i1):
    %z = arith.constant 0.0 : f32
    %p = arith.cmpf ogt, %a, %z : f32
    linalg.yield %p : i1
  } -> tensor<5x37xi1>
  return %q : tensor<5x37xi1>
}

// A mask from x itself selects what is normalized; y and rstd meet again.
func.func @masked(%x: tensor<5x37xf32>) -> tensor<5x37xf32> {
  %e = tensor.empty() : tensor<5x37xi1>
  %f = tensor.empty() : tensor<5x37xf32>
  %m = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<5x37xf32>) outs(%e : tensor<5x37xi1>) {
  ^bb0(%a: f32, %o: i1):
    %z = arith.constant 3.0 : f32
    %p = arith.cmpf ogt, %a, %z : f32
    linalg.yield %p : i1
  } -> tensor<5x37xi1>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%m, %x : tensor<5x37xi1>, tensor<5x37xf32>) outs(%f : tensor<5x37xf32>) {
  ^bb0(%p: i1, %a: f32, %o: f32):
    %z = arith.constant 0.5 : f32
    %v = arith.select %p, %a, %z : f32
    linalg.yield %v : f32
  } -> tensor<5x37xf32>
  %y, %r = norm.rms_norm %s axes [1] epsilon inside_sqrt 1.0e-5 : tensor<5x37xf32> -> tensor<5x37xf32> rstd(tensor<5xf32>)
  %q = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %r : tensor<5x37xf32>, tensor<5xf32>) outs(%f : tensor<5x37xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %v = arith.divf %a, %c : f32
    linalg.yield %v : f32
  } -> tensor<5x37xf32>
  return %q : tensor<5x37xf32>
}

// A loop that carries the normalized value (case B14).
func.func @carried(%x: tensor<5x37xf32>) -> tensor<5x37xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> tensor<5x37xf32> {
    %y = norm.layer_norm %a residual(%x : tensor<5x37xf32>) axes [1] epsilon inside_sqrt 1.0e-2 : tensor<5x37xf32> -> tensor<5x37xf32>
    scf.yield %y : tensor<5x37xf32>
  }
  return %r : tensor<5x37xf32>
}
