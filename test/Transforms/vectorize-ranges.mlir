// RUN: norm-opt %s --norm-tile --norm-lower-to-linalg --norm-vectorize --cse --split-input-file | FileCheck %s

// R rows at a time, then row by row; the sweep that writes dx adds its rows to
// the partial sum, which starts at 0, one after the other.
// CHECK-LABEL: func @rms
// CHECK: scf.forall
// CHECK: %[[ZERO:.*]] = linalg.fill ins(%{{.*}}) outs(%{{.*}} : tensor<512xf32>)
// CHECK: %[[WHOLE:.*]]:2 = scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c4 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[ZERO]]) -> (tensor<?x512xf32>, tensor<512xf32>)
// CHECK:   vector.multi_reduction <add>, {{.*}} vector<4x32xf32> to vector<4xf32>
// CHECK:   scf.for %[[J:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SUM:.*]] = %{{.*}}) -> (tensor<?x512xf32>, tensor<512xf32>)
// CHECK:     vector.transfer_write {{.*}} : vector<4x32xf32>, tensor<?x512xf32>
// CHECK:     %[[S0:.*]] = vector.transfer_read %[[SUM]][%[[J]]]{{.*}} vector<32xf32>
// CHECK:     %[[S1:.*]] = math.fma {{.*}}, %[[S0]] : vector<32xf32>
// CHECK:     %[[S2:.*]] = math.fma {{.*}}, %[[S1]]
// CHECK:     %[[S3:.*]] = math.fma {{.*}}, %[[S2]]
// CHECK:     %[[S4:.*]] = math.fma {{.*}}, %[[S3]]
// CHECK:     vector.transfer_write %[[S4]], %[[SUM]][%[[J]]]
// CHECK: } {norm.strategy
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1 iter_args(%{{.*}} = %[[WHOLE]]#0, %{{.*}} = %[[WHOLE]]#1)
// CHECK:   vector.multi_reduction <add>, {{.*}} vector<32xf32> to f32
// CHECK: } {norm.strategy
func.func @rms(%dy: tensor<90x512xf32>, %x: tensor<90x512xf32>) -> (tensor<90x512xf32>, tensor<512xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true, range = 128>}
    : tensor<90x512xf32>, tensor<90x512xf32> -> tensor<90x512xf32> dscale(tensor<512xf32>)
  return %dx, %dg : tensor<90x512xf32>, tensor<512xf32>
}

// -----

// Axes around the rows are walked step by step.
// CHECK-LABEL: func @around
// CHECK: scf.forall
// CHECK: scf.for %[[B:.*]] = %c0 to %{{.*}} step %c1 iter_args
// CHECK:   scf.for %[[S:.*]] = %c0 to %c40{{.*}} step %c4 iter_args
// CHECK:     vector.transfer_read %{{.*}}[%[[B]], %[[S]], %{{.*}}]
func.func @around(%dy: tensor<64x40x300xf32>, %x: tensor<64x40x300xf32>) -> (tensor<64x40x300xf32>, tensor<300xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x axes [2] epsilon none {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true, range = 128>}
    : tensor<64x40x300xf32>, tensor<64x40x300xf32> -> tensor<64x40x300xf32> dscale(tensor<300xf32>)
  return %dx, %dg : tensor<64x40x300xf32>, tensor<300xf32>
}

// -----

// Columns that only run time knows: what whole vectors leave is skipped where
// they leave nothing: the next rows read what a masked store would store.
// CHECK-LABEL: func @any_columns
// CHECK: %[[REST:.*]] = arith.remui %{{.*}}, %c32
// CHECK: %[[WHOLE:.*]] = arith.subi %{{.*}}, %[[REST]]
// CHECK: %[[IS_THERE:.*]] = arith.cmpi ult, %[[WHOLE]], %{{.*}}
// CHECK: %[[IS_LAST:.*]] = arith.andi %{{.*}}, %[[IS_THERE]]
// CHECK: scf.if %[[IS_LAST]] -> (vector<2x32xf32>)
// CHECK: %[[WRITTEN:.*]]:2 = scf.for {{.*}} -> (tensor<?x?xf32>, tensor<?xf32>)
// CHECK-NOT: create_mask
// CHECK: %[[LEFT:.*]] = arith.subi %{{.*}}, %[[WHOLE]]
// CHECK: %[[IS_SOME:.*]] = arith.cmpi ne, %[[LEFT]], %c0
// CHECK: scf.if %[[IS_SOME]] -> (tensor<?x?xf32>, tensor<?xf32>)
// CHECK:   vector.create_mask
// CHECK:   vector.transfer_write
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[WRITTEN]]#0, %[[WRITTEN]]#1
func.func @any_columns(%dy: tensor<?x?xf32>, %x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = true, range = 128>}
    : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32> dscale(tensor<?xf32>)
  return %dx, %dg : tensor<?x?xf32>, tensor<?xf32>
}
