// RUN: norm-opt %s --norm-configure --norm-tile --cse --canonicalize --split-input-file | FileCheck %s

// 300 rows are 15 ranges of 20, each with a partial row of every sum; these are
// added up in order, on lanes of columns.
// CHECK-LABEL: func @layer
// CHECK-SAME: %[[DY:.*]]: tensor<300x768xbf16>, %[[X:.*]]: tensor<300x768xbf16>
// CHECK: %[[L:.*]]:3 = scf.forall (%[[P:.*]]) in (15) shared_outs(%[[DX:.*]] = %{{.*}}, %[[G:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (tensor<300x768xbf16>, tensor<15x768xf32>, tensor<15x768xf32>)
// CHECK:   %[[AT:.*]] = affine.apply {{.*}}(%[[P]])
// CHECK:   tensor.extract_slice %[[DY]][%[[AT]], 0] [20, 768] [1, 1]
// CHECK:   %[[T:.*]], %[[TG:.*]], %[[TB:.*]] = norm.layer_norm_backward {{.*}} -> tensor<20x768xbf16> dscale(tensor<768xf32>) dshift(tensor<768xf32>)
// CHECK:   tensor.parallel_insert_slice %[[T]] into %[[DX]][%[[AT]], 0] [20, 768]
// CHECK:   tensor.parallel_insert_slice %[[TG]] into %[[G]][%[[P]], 0] [1, 768]
// CHECK:   tensor.parallel_insert_slice %[[TB]] into %[[B]][%[[P]], 0] [1, 768]
// CHECK: } {norm.strategy = #norm.cpu<rows = {{[0-9]+}}, columns = 32, parallel = true, range = 128
// CHECK: %[[M:.*]]:2 = scf.forall (%[[J:.*]]) = (0) to (768) step (32)
// CHECK:   tensor.extract_slice %[[L]]#1[0, %[[J]]] [15, 32]
// CHECK:   linalg.generic {{.*}} iterator_types = ["reduction", "parallel"]
// CHECK:   arith.truncf {{.*}} : f32 to bf16
// CHECK: } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true>}
// CHECK: return %[[L]]#0, %[[M]]#0, %[[M]]#1
func.func @layer(%dy: tensor<300x768xbf16>, %x: tensor<300x768xbf16>)
    -> (tensor<300x768xbf16>, tensor<768xbf16>, tensor<768xf32>) {
  %dx, %dg, %db = norm.layer_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5
    : tensor<300x768xbf16>, tensor<300x768xbf16> -> tensor<300x768xbf16> dscale(tensor<768xbf16>) dshift(tensor<768xf32>)
  return %dx, %dg, %db : tensor<300x768xbf16>, tensor<768xbf16>, tensor<768xf32>
}

// -----

// Of 64 x 40 rows a range has 3 x 40, the last less; what is read beside the
// gradient and what is done to dx joins the loop.
// CHECK-LABEL: func @around
// CHECK-NOT: arith.addf
// CHECK: scf.forall (%[[P:.*]]) in (22) {{.*}} -> (tensor<22x1x16xf32>, tensor<64x40x16xf32>)
// CHECK:   %[[SIZE:.*]] = affine.min {{.*}}(%[[P]])
// CHECK:   norm.rms_norm_backward {{.*}} : tensor<?x40x16xf32>, tensor<?x40x16xf32> -> tensor<?x40x16xf32> dscale(tensor<16xf32>)
// CHECK: tensor.collapse_shape {{.*}} : tensor<22x1x16xf32> into tensor<22x16xf32>
func.func @around(%dy: tensor<64x40x16xf32>, %x: tensor<64x40x16xf32>)
    -> (tensor<64x40x16xf32>, tensor<16xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x axes [2] epsilon none
    : tensor<64x40x16xf32>, tensor<64x40x16xf32> -> tensor<64x40x16xf32> dscale(tensor<16xf32>)
  %sum = arith.addf %dx, %dy : tensor<64x40x16xf32>
  return %sum, %dg : tensor<64x40x16xf32>, tensor<16xf32>
}

// -----

// Run-time extents are cut in the same way.
// CHECK-LABEL: func @dynamic
// CHECK: %[[ROWS:.*]] = tensor.dim
// CHECK: arith.ceildivui %[[ROWS]], %c16
// CHECK: arith.minui {{.*}}, %c128
// CHECK: scf.forall (%{{.*}}) in (%{{.*}}) {{.*}} -> (tensor<?x?xf32>, tensor<?x?xf32>)
func.func @dynamic(%dy: tensor<?x?xf32>, %x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x axes [1] epsilon none
    : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32> dscale(tensor<?xf32>)
  return %dx, %dg : tensor<?x?xf32>, tensor<?xf32>
}
