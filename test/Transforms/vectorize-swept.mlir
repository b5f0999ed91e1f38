// RUN: norm-opt %s --norm-vectorize --cse --split-input-file | FileCheck %s

// No reduction: rows fill the vector, columns are swept in steps of C with a
// masked rest.
#mn = affine_map<(m, n) -> (m, n)>
#n = affine_map<(m, n) -> (n)>
// CHECK-LABEL: func @rows
// CHECK-NOT: linalg
// CHECK: scf.forall
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c8 iter_args({{.*}}) -> (tensor<2x19xf32>)
// CHECK:   vector.transfer_read {{.*}} vector<2x8xf32>
// CHECK:   vector.transfer_read {{.*}} vector<8xf32>
// CHECK: vector.create_mask %c2, %{{.*}} : vector<2x8xi1>
// CHECK: vector.transfer_write
// CHECK-NOT: iter_args
func.func @rows(%x: tensor<4x19xf32>, %b: tensor<19xf32>, %y: tensor<4x19xf32>) -> tensor<4x19xf32> {
  %r = scf.forall (%i) = (0) to (4) step (2) shared_outs(%o = %y) -> (tensor<4x19xf32>) {
    %t = tensor.extract_slice %x[%i, 0] [2, 19] [1, 1] : tensor<4x19xf32> to tensor<2x19xf32>
    %e = tensor.empty() : tensor<2x19xf32>
    %0 = linalg.generic {indexing_maps = [#mn, #n, #mn], iterator_types = ["parallel", "parallel"]}
        ins(%t, %b : tensor<2x19xf32>, tensor<19xf32>) outs(%e : tensor<2x19xf32>) {
    ^bb0(%a: f32, %c: f32, %d: f32):
      %s = arith.addf %a, %c : f32
      linalg.yield %s : f32
    } -> tensor<2x19xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[%i, 0] [2, 19] [1, 1] : tensor<2x19xf32> into tensor<4x19xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 2, columns = 8, parallel = false>}
  return %r : tensor<4x19xf32>
}

// -----

// Columns that fit one vector, rows swept without being reduced: what has no
// rows is read before the loop, and the output along columns written there.
#nc = affine_map<(n, c) -> (n, c)>
#c = affine_map<(n, c) -> (c)>
#id = affine_map<(c) -> (c)>
// CHECK-LABEL: func @lanes
// CHECK: %[[B:.*]] = vector.transfer_read %{{.*}} : tensor<?xf32>, vector<8xf32>
// CHECK: %[[TWICE:.*]] = arith.addf %[[B]], %[[B]]
// CHECK: vector.transfer_write %[[TWICE]]
// CHECK: scf.for %{{.*}} = %c0 to %c5 step %c1 iter_args({{.*}}) -> (tensor<5x?xf32>)
// CHECK-NEXT: %[[X:.*]] = vector.transfer_read
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[X]], %[[TWICE]]
// CHECK-NEXT: vector.transfer_write %[[Y]]
func.func @lanes(%x: tensor<5x13xf32>, %b: tensor<13xf32>, %y: tensor<5x13xf32>, %z: tensor<13xf32>) -> (tensor<5x13xf32>, tensor<13xf32>) {
  %r:2 = scf.forall (%i) = (0) to (13) step (8) shared_outs(%o = %y, %p = %z) -> (tensor<5x13xf32>, tensor<13xf32>) {
    %w = affine.min affine_map<(d0) -> (8, 13 - d0)>(%i)
    %t = tensor.extract_slice %x[0, %i] [5, %w] [1, 1] : tensor<5x13xf32> to tensor<5x?xf32>
    %u = tensor.extract_slice %b[%i] [%w] [1] : tensor<13xf32> to tensor<?xf32>
    %e = tensor.empty(%w) : tensor<?xf32>
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
        ins(%u : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %d: f32):
      %s = arith.addf %a, %a : f32
      linalg.yield %s : f32
    } -> tensor<?xf32>
    %f = tensor.empty(%w) : tensor<5x?xf32>
    %1 = linalg.generic {indexing_maps = [#nc, #c, #nc], iterator_types = ["parallel", "parallel"]}
        ins(%t, %0 : tensor<5x?xf32>, tensor<?xf32>) outs(%f : tensor<5x?xf32>) {
    ^bb0(%a: f32, %c: f32, %d: f32):
      %s = arith.mulf %a, %c : f32
      linalg.yield %s : f32
    } -> tensor<5x?xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, %i] [5, %w] [1, 1] : tensor<5x?xf32> into tensor<5x13xf32>
      tensor.parallel_insert_slice %0 into %p[%i] [%w] [1] : tensor<?xf32> into tensor<13xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r#0, %r#1 : tensor<5x13xf32>, tensor<13xf32>
}

// -----

// Statistics along a reduced axis that is not the innermost: read once per
// step of it, outside the loop over columns.
#chw = affine_map<(n, c, h) -> (n, c, h)>
#stat = affine_map<(n, c, h) -> (n, c)>
#sum = affine_map<(n, c, h) -> (c)>
// CHECK-LABEL: func @dscale
// CHECK: scf.for %{{.*}} = %c0 to %c3 step %c1
// CHECK:   %[[M:.*]] = vector.transfer_read %{{.*}} : tensor<3x1xf32>, vector<1xf32>
// CHECK:   scf.for %{{.*}} = %c0 to %c16 step %c8
// CHECK:     vector.transfer_read %{{.*}} : tensor<3x1x19xf32>, vector<1x8xf32>
// CHECK:     vector.shape_cast %[[M]]
// CHECK:   vector.transfer_read %{{.*}}, %{{.*}}, %{{.*}} : tensor<3x1x19xf32>, vector<1x8xf32>
// CHECK:   vector.shape_cast %[[M]]
func.func @dscale(%x: tensor<3x5x19xf32>, %m: tensor<3x5xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (5) shared_outs(%o = %y) -> (tensor<5xf32>) {
    %t = tensor.extract_slice %x[0, %i, 0] [3, 1, 19] [1, 1, 1] : tensor<3x5x19xf32> to tensor<3x1x19xf32>
    %u = tensor.extract_slice %m[0, %i] [3, 1] [1, 1] : tensor<3x5xf32> to tensor<3x1xf32>
    %e = tensor.empty() : tensor<1xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1xf32>) -> tensor<1xf32>
    %0 = linalg.generic {indexing_maps = [#chw, #stat, #sum], iterator_types = ["reduction", "parallel", "reduction"]}
        ins(%t, %u : tensor<3x1x19xf32>, tensor<3x1xf32>) outs(%f : tensor<1xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %s = arith.subf %a, %b : f32
      %d = arith.addf %c, %s : f32
      linalg.yield %d : f32
    } -> tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[%i] [1] [1] : tensor<1xf32> into tensor<5xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r : tensor<5xf32>
}

// -----

// A mask is read an element at a time; a rest repeats its last one. Counts add
// up as integers. A statistic may have a unit dimension of its own, and a fill
// stays one.
#rows = affine_map<(m, n) -> (m, n)>
#unit = affine_map<(m, n) -> (m, 0)>
// CHECK-LABEL: func @count
// CHECK: linalg.fill ins(%{{.*}} : i64) outs(%{{.*}} : tensor<1xi64>)
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c4 iter_args({{.*}}) -> (vector<1x4xi64>)
// CHECK-COUNT-4: tensor.extract %{{.*}} : tensor<1x9xi1>
// CHECK: %[[FLAT:.*]] = vector.from_elements {{.*}} : vector<4xi1>
// CHECK: %[[MASK:.*]] = vector.shape_cast %[[FLAT]] : vector<4xi1> to vector<1x4xi1>
// CHECK: arith.extui %[[MASK]] : vector<1x4xi1> to vector<1x4xi64>
// CHECK: arith.addi
// CHECK: arith.minui
// CHECK: arith.select
// CHECK: vector.multi_reduction <add>, {{.*}} : vector<1x4xi64> to vector<1xi64>
// CHECK: vector.transfer_write {{.*}} : vector<1xi64>, tensor<1x1xi64>
func.func @count(%k: tensor<5x9xi1>, %y: tensor<5x1xi64>, %z: tensor<5xi64>) -> (tensor<5x1xi64>, tensor<5xi64>) {
  %zero = arith.constant 0 : i64
  %r:2 = scf.forall (%i) in (5) shared_outs(%o = %y, %p = %z) -> (tensor<5x1xi64>, tensor<5xi64>) {
    %t = tensor.extract_slice %k[%i, 0] [1, 9] [1, 1] : tensor<5x9xi1> to tensor<1x9xi1>
    %e = tensor.empty() : tensor<1x1xi64>
    %f = linalg.fill ins(%zero : i64) outs(%e : tensor<1x1xi64>) -> tensor<1x1xi64>
    %0 = linalg.generic {indexing_maps = [#rows, #unit], iterator_types = ["parallel", "reduction"]}
        ins(%t : tensor<1x9xi1>) outs(%f : tensor<1x1xi64>) {
    ^bb0(%a: i1, %b: i64):
      %c = arith.extui %a : i1 to i64
      %d = arith.addi %b, %c : i64
      linalg.yield %d : i64
    } -> tensor<1x1xi64>
    %g = tensor.empty() : tensor<1xi64>
    %h = linalg.fill ins(%zero : i64) outs(%g : tensor<1xi64>) -> tensor<1xi64>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[%i, 0] [1, 1] [1, 1] : tensor<1x1xi64> into tensor<5x1xi64>
      tensor.parallel_insert_slice %h into %p[%i] [1] [1] : tensor<1xi64> into tensor<5xi64>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 4, parallel = false>}
  return %r#0, %r#1 : tensor<5x1xi64>, tensor<5xi64>
}
