// RUN: norm-opt %s --norm-vectorize --split-input-file --verify-diagnostics

#id = affine_map<(d0) -> (d0)>
func.func @index(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %r = scf.forall (%i) in (1) shared_outs(%o = %y) -> (tensor<8xf32>) {
    %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%o : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32):
      // expected-error @below {{cannot vectorize 'linalg.index' in a tile: expected an elementwise op}}
      %n = linalg.index 0 : index
      %m = arith.index_cast %n : index to i32
      %f = arith.sitofp %m : i32 to f32
      %s = arith.addf %a, %f : f32
      linalg.yield %s : f32
    } -> tensor<8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r : tensor<8xf32>
}

// -----

func.func @pad(%a: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %r = scf.forall (%i) in (1) shared_outs(%o = %y) -> (tensor<8x8xf32>) {
    // expected-error @below {{cannot vectorize this op in a tile: expected linalg.generic, a slice or a scalar op}}
    %0 = tensor.pad %a low[0, 0] high[0, 0] {
    ^bb0(%p: index, %q: index):
      %z = arith.constant 0.0 : f32
      tensor.yield %z : f32
    } : tensor<8x8xf32> to tensor<8x8xf32>
    %1 = linalg.exp ins(%0 : tensor<8x8xf32>) outs(%o : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %o[0, 0] [8, 8] [1, 1] : tensor<8x8xf32> into tensor<8x8xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r : tensor<8x8xf32>
}

// -----

#id1 = affine_map<(d0) -> (d0)>
func.func @bits(%x: tensor<8xf32>, %y: tensor<8xi1>) -> tensor<8xi1> {
  %r = scf.forall (%i) in (1) shared_outs(%o = %y) -> (tensor<8xi1>) {
    // expected-error @below {{cannot vectorize this op in a tile: expected elements of whole bytes}}
    %0 = linalg.generic {indexing_maps = [#id1, #id1], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%o : tensor<8xi1>) {
    ^bb0(%a: f32, %b: i1):
      %z = arith.constant 0.0 : f32
      %p = arith.cmpf ogt, %a, %z : f32
      linalg.yield %p : i1
    } -> tensor<8xi1>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0] [8] [1] : tensor<8xi1> into tensor<8xi1>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r : tensor<8xi1>
}
