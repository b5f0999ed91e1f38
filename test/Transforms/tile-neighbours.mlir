// RUN: norm-opt %s --norm-tile --cse --split-input-file | FileCheck %s

// Ops on tensors join as well, with producers of what they read beside the
// norm, wherever these stand.
// CHECK-LABEL: func @gate
// CHECK-NOT: math.exp
// CHECK: scf.forall {{.*}} -> (tensor<6x40xf32>)
// CHECK: norm.rms_norm
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK: } {norm.strategy
// CHECK-NEXT: return
func.func @gate(%x: tensor<6x40xf32>, %g: tensor<6x40xf32>) -> tensor<6x40xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<6x40xf32> -> tensor<6x40xf32>
  %e = math.exp %g : tensor<6x40xf32>
  %z = arith.mulf %y, %e : tensor<6x40xf32>
  return %z : tensor<6x40xf32>
}

// -----

// A largest magnitude of each row, and what divides by it.
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func @amax
// CHECK: scf.forall {{.*}} shared_outs(%[[A:.*]] = %{{.*}}, %[[Z:.*]] = %{{.*}}) -> (tensor<6xf32>, tensor<6x40xf32>)
// CHECK: %[[Y:.*]] = norm.rms_norm
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[M:.*]] = linalg.generic {{.*}}"reduction"{{.*}} ins(%[[Y]] : tensor<2x40xf32>) outs(%[[F]] : tensor<2xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[Y]], %[[M]] : tensor<2x40xf32>, tensor<2xf32>)
// CHECK: } {norm.strategy
// CHECK-NEXT: return
func.func @amax(%x: tensor<6x40xf32>) -> (tensor<6xf32>, tensor<6x40xf32>) {
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<6x40xf32> -> tensor<6x40xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6xf32>) -> tensor<6xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : tensor<6x40xf32>) outs(%f : tensor<6xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = math.absf %a : f32
    %1 = arith.maximumf %0, %acc : f32
    linalg.yield %1 : f32
  } -> tensor<6xf32>
  %e2 = tensor.empty() : tensor<6x40xf32>
  %z = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %m : tensor<6x40xf32>, tensor<6xf32>) outs(%e2 : tensor<6x40xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %0 = arith.divf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<6x40xf32>
  return %m, %z : tensor<6xf32>, tensor<6x40xf32>
}

// -----

// A reduction over other axes than the norm's stays outside.
#id = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
// CHECK-LABEL: func @other_axes
// CHECK: scf.forall
// CHECK-NOT: arith.maximumf
// CHECK: } {norm.strategy
// CHECK: arith.maximumf
func.func @other_axes(%x: tensor<6x40xf32>) -> tensor<40xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<6x40xf32> -> tensor<6x40xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<40xf32>) -> tensor<40xf32>
  %m = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%y : tensor<6x40xf32>) outs(%f : tensor<40xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %1 = arith.maximumf %a, %acc : f32
    linalg.yield %1 : f32
  } -> tensor<40xf32>
  return %m : tensor<40xf32>
}

// -----

// A comparison joins what selects by it; a mask that is a result stays outside.
// CHECK-LABEL: func @select
// CHECK: scf.forall {{.*}} -> (tensor<6x40xf32>)
// CHECK: arith.cmpf
// CHECK-NEXT: arith.select
// CHECK: } {norm.strategy
// CHECK-NEXT: return
func.func @select(%x: tensor<6x40xf32>, %t: tensor<6x40xf32>) -> tensor<6x40xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<6x40xf32> -> tensor<6x40xf32>
  %m = arith.cmpf ogt, %y, %t : tensor<6x40xf32>
  %z = arith.select %m, %y, %t : tensor<6x40xi1>, tensor<6x40xf32>
  return %z : tensor<6x40xf32>
}

// -----

// Halves of a row, one negated, put together the other way round.
// CHECK-LABEL: func @turned
// CHECK: scf.forall {{.*}} shared_outs(%[[Z:.*]] = %{{.*}}) -> (tensor<6x40xf32>)
// CHECK: %[[Y:.*]] = norm.rms_norm
// CHECK-DAG: tensor.extract_slice %[[Y]][0, 20] [2, 20] [1, 1]
// CHECK-DAG: tensor.extract_slice %[[Y]][0, 0] [2, 20] [1, 1]
// CHECK-DAG: tensor.parallel_insert_slice %{{.*}} into %[[Z]][%{{.*}}, 0] [2, 20] [1, 1]
// CHECK-DAG: tensor.parallel_insert_slice %{{.*}} into %[[Z]][%{{.*}}, 20] [2, 20] [1, 1]
// CHECK: } {norm.strategy
// CHECK-NEXT: return
func.func @turned(%x: tensor<6x40xf32>) -> tensor<6x40xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>} : tensor<6x40xf32> -> tensor<6x40xf32>
  %a = tensor.extract_slice %y[0, 0] [6, 20] [1, 1] : tensor<6x40xf32> to tensor<6x20xf32>
  %b = tensor.extract_slice %y[0, 20] [6, 20] [1, 1] : tensor<6x40xf32> to tensor<6x20xf32>
  %n = arith.negf %b : tensor<6x20xf32>
  %z = tensor.concat dim(1) %n, %a : (tensor<6x20xf32>, tensor<6x20xf32>) -> tensor<6x40xf32>
  return %z : tensor<6x40xf32>
}

// -----

// Nothing is not cut into tiles, whatever the strategy says.
// CHECK-LABEL: func @nothing
// CHECK: linalg.mul
// CHECK-NOT: scf.forall
// CHECK: norm.batch_norm_training_backward
// CHECK-NOT: norm.strategy
func.func @nothing(%dy: tensor<0xbf16>, %a: tensor<0xbf16>, %m: tensor<f64>, %v: tensor<f64>) -> tensor<bf16> {
  %e = tensor.empty() : tensor<0xbf16>
  %x = linalg.mul ins(%a, %a : tensor<0xbf16>, tensor<0xbf16>) outs(%e : tensor<0xbf16>) -> tensor<0xbf16>
  %dx, %dshift = norm.batch_norm_training_backward %dy, %x mean(%m : tensor<f64>) variance(%v : tensor<f64>)
      axes [0] epsilon inside_sqrt 1.0e-5 compute f64 {norm.strategy = #norm.cpu<rows = 2, columns = 16, parallel = true, split = true>}
      : tensor<0xbf16>, tensor<0xbf16> -> tensor<0xbf16> dshift(tensor<bf16>)
  return %dshift : tensor<bf16>
}
