// Every norm and its gradient on numbers that can be checked by hand.
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/../Tools/Inputs/npy.py %t/x.npy '<f4' 1x2 3 4
// RUN: %python %S/../Tools/Inputs/npy.py %t/dy.npy '<f4' 1x2 1 0
// RUN: %python %S/../Tools/Inputs/npy.py %t/four.npy '<f4' 1x4 1 3 10 50
// RUN: %python %S/../Tools/Inputs/npy.py %t/g4.npy '<f4' 4 1 2 3 4
// RUN: %python %S/../Tools/Inputs/npy.py %t/dy4.npy '<f4' 1x4 1 0 1 1
// RUN: %python %S/../Tools/Inputs/npy.py %t/two.npy '<f4' 2x2 1 3 10 30
// RUN: %python %S/../Tools/Inputs/npy.py %t/old.npy '<f4' 2 1 -1
// RUN: %python %S/../Tools/Inputs/npy.py %t/bf.npy '<u2' 1x4 0x3f80 0x4000 0x4040 0x4110

// r = 1/5; then 1/(5 + 5), where x^ is (0.3, 0.4), its sum with g 0.3 and r
// follows the statistic (5 + 5)/5 times as much as it would with epsilon 0.
// RUN: norm-run %s --target=reference --entry=l2 --input=%t/dy.npy --input=%t/x.npy | FileCheck %s --check-prefix=L2
// L2:      0.6{{[0-9]*}} 0.8
// L2:      0.128{{[0-9]*}} -0.096
// L2:      0.6{{[0-9]*}} 0
// L2:      0.082{{[0-9]*}} -0.024
func.func @l2(%dy: tensor<1x2xf32>, %x: tensor<1x2xf32>)
    -> (tensor<1x2xf32>, tensor<1x2xf32>, tensor<2xf32>, tensor<1x2xf32>) {
  %y = norm.l2_norm %x axes [1] epsilon none : tensor<1x2xf32> -> tensor<1x2xf32>
  %dx, %dg = norm.l2_norm_backward %dy, %x axes [1] epsilon none
      : tensor<1x2xf32>, tensor<1x2xf32> -> tensor<1x2xf32> dscale(tensor<2xf32>)
  %out = norm.l2_norm_backward %dy, %x axes [1] epsilon outside_sqrt 5.0
      : tensor<1x2xf32>, tensor<1x2xf32> -> tensor<1x2xf32>
  return %y, %dx, %dg, %out : tensor<1x2xf32>, tensor<1x2xf32>, tensor<2xf32>, tensor<1x2xf32>
}

// Two groups of two: means 2 and 30, x^ = -1, 1, -1, 1. The gains of the
// channels differ; in two elements there is no gradient.
// RUN: norm-run %s --target=reference --entry=groups --input=%t/dy4.npy --input=%t/four.npy --input=%t/g4.npy | FileCheck %s --check-prefix=GROUPS
// GROUPS:      -1 2 -3 4
// GROUPS-NEXT: result 1: 1x2 of f32
// GROUPS-NEXT:   2 30
// GROUPS-NEXT: result 2: 1x4 of f32
// GROUPS-NEXT:   0 0 0 0
// GROUPS-NEXT: result 3: 4 of f32
// GROUPS-NEXT:   -1 0 -1 1
func.func @groups(%dy: tensor<?x?xf32>, %x: tensor<?x?xf32>, %g: tensor<?xf32>)
    -> (tensor<?x?xf32>, tensor<?x2xf32>, tensor<?x?xf32>, tensor<?xf32>) {
  %y, %m = norm.group_norm %x scale(%g : tensor<?xf32>) groups 2 channel_axis 1 axes [1]
      epsilon none : tensor<?x?xf32> -> tensor<?x?xf32> mean(tensor<?x2xf32>)
  %dx, %dg = norm.group_norm_backward %dy, %x scale(%g : tensor<?xf32>) groups 2 channel_axis 1
      axes [1] epsilon none : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32> dscale(tensor<?xf32>)
  return %y, %m, %dx, %dg : tensor<?x?xf32>, tensor<?x2xf32>, tensor<?x?xf32>, tensor<?xf32>
}

// Means 5.5 and 16.5, squares about them 40.5 and 364.5; a quarter of the new.
// Then the same values as given statistics.
// RUN: norm-run %s --target=reference --entry=batch --input=%t/two.npy --input=%t/old.npy | FileCheck %s --check-prefix=BATCH
// BATCH:      -1 -1
// BATCH-NEXT:   1 1
// BATCH-NEXT: result 1: 2 of f32
// BATCH-NEXT:   2.125 3.375
// BATCH-NEXT: result 2: 2 of f32
// BATCH-NEXT:   10.875 90.375
// BATCH-NEXT: result 3: 2 of f32
// BATCH-NEXT:   5.8125 44.8125
// BATCH-NEXT: result 4: 2x2 of f32
// BATCH-NEXT:   -0.25 {{.*}}
func.func @batch(%x: tensor<2x2xf32>, %old: tensor<2xf32>)
    -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>) {
  %y, %m, %v = norm.batch_norm_training %x running(%old, %old : tensor<2xf32>, tensor<2xf32>)
      axes [0] epsilon none momentum 0.25 : tensor<2x2xf32> -> tensor<2x2xf32>
      running_mean(tensor<2xf32>) running_variance(tensor<2xf32>)
  %a = arith.constant 0.25 : f32
  %z, %n, %w = norm.batch_norm_training %x running(%old, %old : tensor<2xf32>, tensor<2xf32>)
      axes [0] epsilon none momentum(%a : f32) running_correction 0 : tensor<2x2xf32> -> tensor<2x2xf32>
      running_mean(tensor<2xf32>) running_variance(tensor<2xf32>)
  %given = arith.constant dense<[2.0, 3.0]> : tensor<2xf64>
  %var = arith.constant dense<[16.0, 9.0]> : tensor<2xf32>
  %i = norm.batch_norm_inference %x mean(%given : tensor<2xf64>) variance(%var : tensor<2xf32>)
      axes [0] epsilon none : tensor<2x2xf32> -> tensor<2x2xf32>
  return %y, %m, %v, %w, %i : tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>
}

// In bf16 the statistic of 1, 2, 3, 9 is 9.6875, and r 0.3212...: rounded to
// 0.3203125 in the forward op and where the backward op computes it again. The
// mean 3.75 is exact, and -2.75 * r rounds in the forward op only.
// RUN: norm-run %s --target=reference --entry=narrow --input=%t/bf.npy | FileCheck %s --check-prefix=NARROW
// NARROW:      result 0: 1x4 of f32
// NARROW-NEXT:   -0.8828125 -0.5625 -0.240234375 1.6796875
// NARROW-NEXT: result 1: 4 of f32
// NARROW-NEXT:   -0.880859375 -1.12109375 -0.720703125 15.1347656
func.func @narrow(%x: tensor<1x4xbf16>) -> (tensor<1x4xf32>, tensor<4xf32>) {
  %y = norm.layer_norm %x axes [1] epsilon none compute bf16
      : tensor<1x4xbf16> -> tensor<1x4xf32>
  %dx, %dg = norm.layer_norm_backward %x, %x axes [1] epsilon none compute bf16
      : tensor<1x4xbf16>, tensor<1x4xbf16> -> tensor<1x4xf32> dscale(tensor<4xf32>)
  return %y, %dg : tensor<1x4xf32>, tensor<4xf32>
}
