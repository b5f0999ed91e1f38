// RUN: norm-opt %s --norm-specialize | FileCheck %s
// RUN: norm-opt %s --norm-specialize --canonicalize | FileCheck %s --check-prefix=SAME
// Extents reach what a pipeline makes of the function, too.
// RUN: norm-opt %s --norm-to-cpu | FileCheck %s --check-prefix=CPU
// RUN: norm-opt %s --norm-specialize --inline --norm-lower-to-linalg --norm-entry-abi --canonicalize | FileCheck %s --check-prefix=ABI

// The function itself stays, and its versions know what they are told.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %{{.*}}: tensor<?x?xf32>, %{{.*}}: tensor<?xf32>) -> tensor<?x?xf32> {
// CHECK: norm.rms_norm {{.*}} : tensor<?x?xf32> -> tensor<?x?xf32>
// CHECK-LABEL: func.func @rows__v0(
// CHECK-SAME: %[[X:.*]]: tensor<?x64xf32>, %[[G:.*]]: tensor<64xf32>) -> tensor<?x64xf32>
// CHECK-SAME: attributes {norm.version_of = @rows}
// CHECK-NEXT: %[[Y:.*]] = norm.rms_norm %[[X]] scale(%[[G]] : tensor<64xf32>) {{.*}} : tensor<?x64xf32> -> tensor<?x64xf32>
// CHECK-NEXT: return %[[Y]]
// CHECK-LABEL: func.func @rows__v1(
// CHECK-SAME: %[[X:.*]]: tensor<4x128xf32>, %[[G:.*]]: tensor<128xf32>) -> tensor<4x128xf32>
// CHECK-NEXT: norm.rms_norm %[[X]] scale(%[[G]] : tensor<128xf32>) {{.*}} : tensor<4x128xf32> -> tensor<4x128xf32>
// SAME-LABEL: func.func @rows__v1(
// SAME-NEXT: norm.rms_norm {{.*}} : tensor<4x128xf32> -> tensor<4x128xf32>

// Calls of versions come first, in order; then whatever else has come.
// ABI-LABEL: func.func @rows(
// ABI-SAME: %[[X:.*]]: memref<?x?xf32, strided<[?, ?], offset: ?>>, %[[G:.*]]: memref<?xf32, strided<[?], offset: ?>>, %[[Y:.*]]: memref<?x?xf32>) attributes {llvm.emit_c_interface} {
// ABI-DAG: %[[C64:.*]] = arith.constant 64 : index
// ABI-DAG: %[[N:.*]] = memref.dim %[[X]], %c1
// ABI-DAG: arith.cmpi eq, %[[N]], %[[C64]]
// ABI: scf.if
// ABI: func.call @rows__v0({{.*}}) : (memref<?x64xf32, strided<[?, ?], offset: ?>>, memref<64xf32, strided<[?], offset: ?>>, memref<?x64xf32>)
// ABI: else
// ABI: scf.if
// ABI: func.call @rows__v1({{.*}}) : (memref<4x128xf32, strided<[?, ?], offset: ?>>, {{.*}}, memref<4x128xf32>)
// ABI: else
// ABI: func.call @rows__any(%[[X]], %[[G]], %[[Y]])
// ABI: func.func private @rows__any(
// ABI-NOT: emit_c_interface
// ABI: func.func private @rows__v0(%{{.*}}: memref<?x64xf32, strided<[?, ?], offset: ?>>
// ABI-NOT: emit_c_interface
// ABI-SAME: llvm.linkage = #llvm.linkage<internal>

// One symbol can be called from outside.
// CPU-DAG: llvm.func @rows(
// CPU-DAG: llvm.func internal @rows__any(
// CPU-DAG: llvm.func internal @rows__v0(
// CPU-DAG: llvm.func internal @rows__v1__unit(
// CPU-DAG: llvm.func @_mlir_ciface_rows(
// CPU-NOT: llvm.func @_mlir_ciface_rows__
func.func @rows(%x: tensor<?x?xf32>, %g: tensor<?xf32>) -> tensor<?x?xf32>
    attributes {norm.versions = [[tensor<?x64xf32>, tensor<64xf32>],
                                 [tensor<4x128xf32>, tensor<128xf32>]]} {
  %y = norm.rms_norm %x scale(%g : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// What is told of one argument is known of all that must have its extent, in
// neighbours and in results.
// CHECK-LABEL: func.func @neighbours__v0(
// CHECK-SAME: -> (tensor<?x8xf32>, tensor<?x8xf16>, tensor<?xf32>)
// CHECK: arith.addf {{.*}} : tensor<?x8xf32>
// CHECK: norm.layer_norm {{.*}} scale(%{{.*}} : tensor<8xf32>) {{.*}} : tensor<?x8xf32> -> tensor<?x8xf32> mean(tensor<?xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<?x8xf32>) outs(%{{.*}} : tensor<?x8xf16>)
func.func @neighbours(%x: tensor<?x?xf32>, %r: tensor<?x?xf32>, %g: tensor<?xf32>)
    -> (tensor<?x?xf32>, tensor<?x?xf16>, tensor<?xf32>)
    attributes {norm.versions = [[tensor<?x?xf32>, tensor<?x8xf32>, tensor<?xf32>]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = tensor.dim %x, %c0 : tensor<?x?xf32>
  %columns = tensor.dim %x, %c1 : tensor<?x?xf32>
  %s = arith.addf %x, %r : tensor<?x?xf32>
  %y, %m = norm.layer_norm %s scale(%g : tensor<?xf32>) axes [1] epsilon inside_sqrt 1.0e-6
      : tensor<?x?xf32> -> tensor<?x?xf32> mean(tensor<?xf32>)
  %e = tensor.empty(%rows, %columns) : tensor<?x?xf16>
  %h = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<?x?xf32>) outs(%e : tensor<?x?xf16>) {
  ^bb0(%a: f32, %b: f16):
    %t = arith.truncf %a : f32 to f16
    linalg.yield %t : f16
  } -> tensor<?x?xf16>
  return %s, %h, %m : tensor<?x?xf32>, tensor<?x?xf16>, tensor<?xf32>
}

// A result that may share memory with an argument has its type.
// CHECK-LABEL: func.func @inplace__v0(
// CHECK-SAME: %{{.*}}: tensor<?x16xf32> {norm.inplace = 0 : i64}) -> tensor<?x16xf32>
func.func @inplace(%x: tensor<?x?xf32> {norm.inplace = 0 : i64}) -> tensor<?x?xf32>
    attributes {norm.versions = [[tensor<?x16xf32>]]} {
  %y = call @opaque(%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
func.func private @opaque(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  return %x : tensor<?x?xf32>
}

// What is private has no caller that chooses.
// CHECK-NOT: @hidden__v0
func.func private @hidden(%x: tensor<?xf32>) -> tensor<?xf32>
    attributes {norm.versions = [[tensor<8xf32>]]} {
  return %x : tensor<?xf32>
}
func.func private @declared(%x: tensor<?xf32>) attributes {norm.versions = [[tensor<8xf32>]]}

// Nothing to know: the first version does for all.
// CHECK-LABEL: func.func @scalar__v0(
// ABI-LABEL: func.func @scalar(
// ABI-NOT: scf.if
// ABI: %[[R:.*]] = call @scalar__v0(
// ABI-NEXT: return %[[R]] : index
func.func @scalar(%n: index) -> index attributes {norm.versions = [[index]]} {
  return %n : index
}
