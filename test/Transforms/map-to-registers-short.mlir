// RUN: norm-opt %s --split-input-file --norm-map-to-registers="isa=avx512" --cse | FileCheck %s
// RUN: norm-opt %s --split-input-file --norm-map-to-registers="isa=x86" --cse | FileCheck %s --check-prefix=MERGED

// Three sums of one block of 16 rows: it is exchanged once, row i beside row
// i + 4 and so on, and columns are added in the order of the trees: 0 to 2, 1 to
// 3. The mean of each row is no more than the vector of them.
// CHECK-LABEL: func @layer
// CHECK: vector.transfer_read
// CHECK-COUNT-4: vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 6, 7] :
// CHECK-COUNT-4: vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] :
// CHECK: vector.shuffle {{.*}} [0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29]
// CHECK: vector.shuffle {{.*}} [2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31]
// CHECK: %[[C0:.*]] = vector.shuffle {{.*}} [0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30]
// CHECK: %[[C1:.*]] = vector.shuffle {{.*}} [1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31]
// CHECK: %[[C2:.*]] = vector.shuffle {{.*}} [0, 16,
// CHECK: %[[C3:.*]] = vector.shuffle {{.*}} [1, 17,
// CHECK-NOT: vector.shuffle
// CHECK: %[[EVEN:.*]] = arith.addf %[[C0]], %[[C2]] : vector<16xf32>
// CHECK: %[[ODD:.*]] = arith.addf %[[C1]], %[[C3]] : vector<16xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[EVEN]], %[[ODD]] : vector<16xf32>
// CHECK: %[[MEAN:.*]] = arith.addf %[[SUM]], %{{.*}} : vector<16xf32>
// CHECK: arith.subf %[[C0]], %{{.*}} : vector<16xf32>
// CHECK-NOT: multi_reduction
// CHECK: return
// MERGED-LABEL: func @layer
// MERGED-NOT: arith.subf {{.*}} : vector<16xf32>
// MERGED: return
func.func @layer(%x: memref<64x4xf32>, %s: memref<64xf32>, %q: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  %nothing = arith.constant dense<-0.0> : vector<16x4xf32>
  scf.forall (%i) = (0) to (64) step (16) {
    %a = vector.transfer_read %x[%i, %c0], %z {in_bounds = [true, true]} : memref<64x4xf32>, vector<16x4xf32>
    %m = vector.multi_reduction <add>, %a, %zeros [1] : vector<16x4xf32> to vector<16xf32>
    %n = vector.shape_cast %m : vector<16xf32> to vector<16x1xf32>
    %o = vector.broadcast %n : vector<16x1xf32> to vector<16x4xf32>
    %b = arith.subf %a, %o : vector<16x4xf32>
    %c = math.fma %b, %b, %nothing : vector<16x4xf32>
    %d = vector.multi_reduction <add>, %b, %zeros [1] : vector<16x4xf32> to vector<16xf32>
    %e = vector.multi_reduction <add>, %c, %zeros [1] : vector<16x4xf32> to vector<16xf32>
    vector.transfer_write %d, %s[%i] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
    vector.transfer_write %e, %q[%i] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  } {norm.strategy = #norm.cpu<rows = 16, columns = 4, parallel = true>}
  return
}

// -----

// A column that a mask cuts off is what the mask leaves in its place.
// CHECK-LABEL: func @masked
// CHECK: %[[C1:.*]] = vector.shuffle {{.*}} [1, 17,
// CHECK: %[[C2:.*]] = vector.shuffle {{.*}} [0, 16,
// CHECK: %[[NOTHING:.*]] = arith.constant dense<-0.000000e+00> : vector<16xf32>
// CHECK: arith.addf %{{.*}}, %[[C2]]
// CHECK: arith.addf %[[C1]], %[[NOTHING]]
// CHECK-NOT: arith.select
// CHECK-NOT: multi_reduction
// CHECK: return
func.func @masked(%x: memref<64x3xf32>, %s: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  %nothing = arith.constant dense<-0.0> : vector<16x4xf32>
  %mask = vector.constant_mask [16, 3] : vector<16x4xi1>
  scf.forall (%i) = (0) to (64) step (16) {
    %a = vector.transfer_read %x[%i, %c0], %z, %mask {in_bounds = [true, true]} : memref<64x3xf32>, vector<16x4xf32>
    %k = arith.select %mask, %a, %nothing : vector<16x4xi1>, vector<16x4xf32>
    %m = vector.multi_reduction <add>, %k, %zeros [1] : vector<16x4xf32> to vector<16xf32>
    %n = vector.shape_cast %m : vector<16xf32> to vector<16x1xf32>
    %o = vector.broadcast %n : vector<16x1xf32> to vector<16x4xf32>
    %b = arith.subf %a, %o : vector<16x4xf32>
    %c = math.fma %b, %b, %nothing : vector<16x4xf32>
    %p = arith.select %mask, %b, %nothing : vector<16x4xi1>, vector<16x4xf32>
    %q = arith.select %mask, %c, %nothing : vector<16x4xi1>, vector<16x4xf32>
    %d = vector.multi_reduction <add>, %p, %zeros [1] : vector<16x4xf32> to vector<16xf32>
    %e = vector.multi_reduction <add>, %q, %d [1] : vector<16x4xf32> to vector<16xf32>
    vector.transfer_write %e, %s[%i] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  } {norm.strategy = #norm.cpu<rows = 16, columns = 4, parallel = true>}
  return
}

// -----

// Not for one sum; nor of what several reads make; nor of fewer rows than lanes.
// CHECK-LABEL: func @refused
// CHECK-NOT: vector.shuffle {{.*}} [0, 1, 16, 17, 4,
// CHECK-NOT: vector.shuffle {{.*}} [0, 1, 8, 9, 4,
// CHECK: return
func.func @refused(%x: memref<64x4xf32>, %r: memref<64x4xf32>, %s: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<16xf32>
  %few = arith.constant dense<0.0> : vector<8xf32>
  scf.forall (%i) = (0) to (64) step (16) {
    %a = vector.transfer_read %x[%i, %c0], %z {in_bounds = [true, true]} : memref<64x4xf32>, vector<16x4xf32>
    %d = vector.multi_reduction <add>, %a, %zeros [1] : vector<16x4xf32> to vector<16xf32>
    vector.transfer_write %d, %s[%i] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  } {norm.strategy = #norm.cpu<rows = 16, columns = 4, parallel = true>}
  scf.forall (%i) = (0) to (64) step (16) {
    %a = vector.transfer_read %x[%i, %c0], %z {in_bounds = [true, true]} : memref<64x4xf32>, vector<16x4xf32>
    %b = vector.transfer_read %r[%i, %c0], %z {in_bounds = [true, true]} : memref<64x4xf32>, vector<16x4xf32>
    %h = arith.addf %a, %b : vector<16x4xf32>
    %d = vector.multi_reduction <add>, %h, %zeros [1] : vector<16x4xf32> to vector<16xf32>
    %e = vector.multi_reduction <add>, %h, %d [1] : vector<16x4xf32> to vector<16xf32>
    %f = vector.multi_reduction <add>, %h, %e [1] : vector<16x4xf32> to vector<16xf32>
    vector.transfer_write %f, %s[%i] {in_bounds = [true]} : vector<16xf32>, memref<64xf32>
  } {norm.strategy = #norm.cpu<rows = 16, columns = 4, parallel = true>}
  scf.forall (%i) = (0) to (64) step (8) {
    %a = vector.transfer_read %x[%i, %c0], %z {in_bounds = [true, true]} : memref<64x4xf32>, vector<8x4xf32>
    %d = vector.multi_reduction <add>, %a, %few [1] : vector<8x4xf32> to vector<8xf32>
    %e = vector.multi_reduction <add>, %a, %d [1] : vector<8x4xf32> to vector<8xf32>
    %f = vector.multi_reduction <add>, %a, %e [1] : vector<8x4xf32> to vector<8xf32>
    vector.transfer_write %f, %s[%i] {in_bounds = [true]} : vector<8xf32>, memref<64xf32>
  } {norm.strategy = #norm.cpu<rows = 8, columns = 4, parallel = true>}
  return
}
