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

// -----

#nc = affine_map<(n, c) -> (n, c)>
#c = affine_map<(n, c) -> (c)>
func.func @long_lanes(%x: tensor<3x20xf32>, %y: tensor<20xf32>) -> tensor<20xf32> {
  %zero = arith.constant 0.0 : f32
  %r = scf.forall (%i) in (1) shared_outs(%o = %y) -> (tensor<20xf32>) {
    %e = tensor.empty() : tensor<20xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<20xf32>) -> tensor<20xf32>
    // expected-error @below {{cannot vectorize this reduction in a tile: expected its results to vary along the rows or columns of one vector only}}
    %0 = linalg.generic {indexing_maps = [#nc, #c], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<3x20xf32>) outs(%f : tensor<20xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<20xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0] [20] [1] : tensor<20xf32> into tensor<20xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r : tensor<20xf32>
}

// -----

#nc = affine_map<(n, c) -> (n, c)>
#first = affine_map<(n, c) -> (n, 0)>
func.func @first_column(%x: tensor<3x20xf32>, %y: tensor<3x20xf32>) -> tensor<3x20xf32> {
  %r = scf.forall (%i) in (1) shared_outs(%o = %y) -> (tensor<3x20xf32>) {
    // expected-error @below {{cannot vectorize this op in a tile: expected dimensions of static extent 1 where an indexing map is constant}}
    %0 = linalg.generic {indexing_maps = [#nc, #first, #nc], iterator_types = ["parallel", "parallel"]} ins(%x, %x : tensor<3x20xf32>, tensor<3x20xf32>) outs(%o : tensor<3x20xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %s = arith.subf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<3x20xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0, 0] [3, 20] [1, 1] : tensor<3x20xf32> into tensor<3x20xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r : tensor<3x20xf32>
}

// -----

#nc = affine_map<(n, c) -> (n, c)>
#n = affine_map<(n, c) -> (n)>
#one = affine_map<(n, c) -> ()>
func.func @two_subsets(%x: tensor<3x20xf32>, %y: tensor<3xf32>, %z: tensor<f32>) -> (tensor<3xf32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %r:2 = scf.forall (%i) in (1) shared_outs(%o = %y, %p = %z) -> (tensor<3xf32>, tensor<f32>) {
    %e = tensor.empty() : tensor<3xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    // expected-error @below {{cannot vectorize this reduction in a tile: expected its results to vary along the rows or columns of one vector only}}
    %0 = linalg.generic {indexing_maps = [#nc, #n], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<3x20xf32>) outs(%f : tensor<3xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<3xf32>
    %g = tensor.empty() : tensor<f32>
    %h = linalg.fill ins(%zero : f32) outs(%g : tensor<f32>) -> tensor<f32>
    %1 = linalg.generic {indexing_maps = [#nc, #one], iterator_types = ["reduction", "reduction"]} ins(%x : tensor<3x20xf32>) outs(%h : tensor<f32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    } -> tensor<f32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0] [3] [1] : tensor<3xf32> into tensor<3xf32>
      tensor.parallel_insert_slice %1 into %p[] [] [] : tensor<f32> into tensor<f32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r#0, %r#1 : tensor<3xf32>, tensor<f32>
}

// -----

#n = affine_map<(n) -> (n)>
func.func @bits_through(%k: tensor<20xi1>, %y: tensor<20xf32>, %z: tensor<20xi1>) -> (tensor<20xf32>, tensor<20xi1>) {
  %r:2 = scf.forall (%i) in (1) shared_outs(%o = %y, %p = %z) -> (tensor<20xf32>, tensor<20xi1>) {
    %0 = linalg.generic {indexing_maps = [#n, #n], iterator_types = ["parallel"]} ins(%k : tensor<20xi1>) outs(%o : tensor<20xf32>) {
    ^bb0(%a: i1, %b: f32):
      %s = arith.uitofp %a : i1 to f32
      linalg.yield %s : f32
    } -> tensor<20xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0] [20] [1] : tensor<20xf32> into tensor<20xf32>
      // expected-error @below {{cannot vectorize this op in a tile: expected elements of whole bytes}}
      tensor.parallel_insert_slice %k into %p[0] [20] [1] : tensor<20xi1> into tensor<20xi1>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r#0, %r#1 : tensor<20xf32>, tensor<20xi1>
}

// -----

// A sum over rows is not complete before the tile is.
#mn = affine_map<(m, n) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
#n = affine_map<(m, n) -> (n)>
#c = affine_map<(n) -> (n)>
func.func @sum_of_rows_read(%x: tensor<8x20xf32>, %y: tensor<8xf32>, %z: tensor<20xf32>) -> (tensor<8xf32>, tensor<20xf32>) {
  %r:2 = scf.forall (%i) in (1) shared_outs(%o = %y, %p = %z) -> (tensor<8xf32>, tensor<20xf32>) {
    %zero = arith.constant 0.0 : f32
    %f = linalg.fill ins(%zero : f32) outs(%o : tensor<8xf32>) -> tensor<8xf32>
    %g = linalg.fill ins(%zero : f32) outs(%p : tensor<20xf32>) -> tensor<20xf32>
    %0 = linalg.generic {indexing_maps = [#mn, #m], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x20xf32>) outs(%f : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %b, %a : f32
      linalg.yield %s : f32
    } -> tensor<8xf32>
    // expected-error @below {{cannot vectorize this op in a tile: expected a sum over rows to leave the tile as it is}}
    %1 = linalg.generic {indexing_maps = [#mn, #n], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<8x20xf32>) outs(%g : tensor<20xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %b, %a : f32
      linalg.yield %s : f32
    } -> tensor<20xf32>
    %2 = linalg.generic {indexing_maps = [#c, #c], iterator_types = ["parallel"]} ins(%1 : tensor<20xf32>) outs(%p : tensor<20xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.negf %a : f32
      linalg.yield %s : f32
    } -> tensor<20xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %0 into %o[0] [8] [1] : tensor<8xf32> into tensor<8xf32>
      tensor.parallel_insert_slice %2 into %p[0] [20] [1] : tensor<20xf32> into tensor<20xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 8, columns = 8, parallel = false>}
  return %r#0, %r#1 : tensor<8xf32>, tensor<20xf32>
}
