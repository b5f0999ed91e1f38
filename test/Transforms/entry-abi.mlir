// RUN: norm-opt %s --norm-entry-abi | FileCheck %s
// RUN: norm-opt %s --norm-entry-abi="strides=any" | FileCheck %s --check-prefix=PLAIN
// RUN: norm-opt %s --norm-entry-abi="strides=unit" | FileCheck %s --check-prefix=ONE-BODY

// ONE-BODY-LABEL: func.func @two_results(
// ONE-BODY-SAME: memref<?x4xf32, strided<[?, 1], offset: ?>>, %{{.*}}: index,
// ONE-BODY-NOT: @two_results__
// ONE-BODY: return

// CHECK-LABEL: func.func @two_results(
// CHECK-SAME: %[[X:.*]]: memref<?x4xf32, strided<[?, ?], offset: ?>>, %[[N:.*]]: index,
// CHECK-SAME: %[[Y:.*]]: memref<4xf32>, %[[Z:.*]]: memref<?x4xf32>)
// CHECK-SAME: -> index attributes {llvm.emit_c_interface}
// CHECK: memref.extract_strided_metadata %[[X]]
// CHECK: scf.if
// CHECK: %[[UNIT:.*]] = memref.cast %[[X]] : {{.*}} to memref<?x4xf32, strided<[?, 1], offset: ?>>
// CHECK: func.call @two_results__unit(%[[UNIT]], %[[N]], %[[Y]], %[[Z]])
// CHECK: func.call @two_results__strided(%[[X]], %[[N]], %[[Y]], %[[Z]])

// CHECK-LABEL: func.func private @two_results__unit(
// CHECK-SAME: %[[X:.*]]: memref<?x4xf32, strided<[?, 1], offset: ?>>, %[[N:.*]]: index, %[[Y:.*]]: memref<4xf32>, %[[Z:.*]]: memref<?x4xf32>)
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// Arguments are not writable, results are.
// CHECK: %[[T:.*]] = bufferization.to_tensor %[[X]] restrict : memref
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[Y]]
// CHECK: bufferization.materialize_in_destination %[[T]] in restrict writable %[[Z]]
// CHECK: return %[[N]] : index

// Arguments of other strides are copied, and the one body reads the copies.
// CHECK-LABEL: func.func private @two_results__strided(
// CHECK-SAME: %[[X:.*]]: memref<?x4xf32, strided<[?, ?], offset: ?>>, %[[N:.*]]: index, %[[Y:.*]]: memref<4xf32>, %[[Z:.*]]: memref<?x4xf32>)
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK-SAME: norm.copies_arguments
// CHECK: %[[COPY:.*]] = memref.alloc(%{{.*}}) : memref<?x4xf32>
// CHECK: memref.copy %[[X]], %[[COPY]]
// CHECK: %[[UNIT:.*]] = memref.cast %[[COPY]] : memref<?x4xf32> to memref<?x4xf32, strided<[?, 1], offset: ?>>
// CHECK: call @two_results__unit(%[[UNIT]], %[[N]], %[[Y]], %[[Z]])

// PLAIN-LABEL: func.func @two_results(
// PLAIN-SAME: memref<?x4xf32, strided<[?, ?], offset: ?>>
// PLAIN-NEXT: bufferization.to_tensor %{{.*}} restrict
// PLAIN-NOT: two_results__unit
func.func @two_results(%x: tensor<?x4xf32>, %n: index)
    -> (tensor<4xf32>, index, tensor<?x4xf32>) {
  %y = tensor.extract_slice %x[%n, 0] [1, 4] [1, 1]
      : tensor<?x4xf32> to tensor<4xf32>
  return %y, %n, %x : tensor<4xf32>, index, tensor<?x4xf32>
}

// Without strides there is nothing to choose.
// CHECK-LABEL: func.func @scalar(
// CHECK-SAME: %{{.*}}: memref<f32, strided<[], offset: ?>>, %{{.*}}: memref<f32>)
// CHECK-NOT: scf.if
// CHECK: return
func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}

// PLAIN-LABEL: func.func @shares_memory(
// PLAIN-SAME: %[[X:.*]]: memref<?xf32, strided<[?], offset: ?>> {norm.inplace = 0 : i64}, %[[Y:.*]]: memref<?xf32>)
// PLAIN: %[[COPY:.*]] = memref.alloc(%{{.*}}) : memref<?xf32>
// PLAIN: memref.copy %[[X]], %[[COPY]]
// PLAIN: %[[T:.*]] = bufferization.to_tensor %[[COPY]]
// PLAIN: bufferization.materialize_in_destination %[[T]] in restrict writable %[[Y]]
func.func @shares_memory(%x: tensor<?xf32> {norm.inplace = 0}) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// Dimensions that the body merges are merged by a view where strides allow; else
// the argument is copied. Dimensions that it splits last are split in the
// result's buffer.
// ONE-BODY-LABEL: func.func @merged(
// ONE-BODY-SAME: %[[X:.*]]: memref<?x3x5xf32, strided<[?, ?, 1], offset: ?>>, %[[OUT:.*]]: memref<?x3x5xf32>)
// ONE-BODY: %{{.*}}, %{{.*}}, %{{.*}}:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata %[[X]]
// ONE-BODY: arith.cmpi eq, %[[STRIDES]]#1, %{{.*}} : index
// ONE-BODY: scf.if
// ONE-BODY-NEXT: call @merged__unit(%[[X]], %[[OUT]])
// ONE-BODY: call @merged__strided(%[[X]], %[[OUT]])
// ONE-BODY-LABEL: func.func private @merged__unit(
// ONE-BODY-SAME: %[[X:.*]]: memref<?x3x5xf32, strided<[?, ?, 1], offset: ?>>, %[[OUT:.*]]: memref<?x3x5xf32>)
// ONE-BODY: %[[BASE:.*]], %[[OFFSET:.*]], %[[SIZES:.*]]:3, %[[STRIDES:.*]]:3 = memref.extract_strided_metadata %[[X]]
// ONE-BODY: %[[VIEW:.*]] = memref.reinterpret_cast %[[BASE]] to offset: [%[[OFFSET]]], sizes: [%[[SIZES]]#0, 15], strides: [%[[STRIDES]]#0, 1]
// ONE-BODY: bufferization.to_tensor %[[VIEW]] restrict
// ONE-BODY-NOT: tensor.collapse_shape
// ONE-BODY: %[[FLAT:.*]] = memref.collapse_shape %[[OUT]] {{\[}}[0], [1, 2]]
// ONE-BODY: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[FLAT]]
// ONE-BODY-LABEL: func.func private @merged__strided(
// ONE-BODY: memref.copy
// ONE-BODY: call @merged__unit
// PLAIN-LABEL: func.func private @merged__merged(
// PLAIN: memref.reinterpret_cast {{.*}} strides: [%{{.*}}#0, %{{.*}}#2] : {{.*}} to memref<?x15xf32, strided<[?, ?], offset: ?>>
func.func @merged(%x: tensor<?x3x5xf32>) -> tensor<?x3x5xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3x5xf32>
  %flat = tensor.collapse_shape %x [[0], [1, 2]] : tensor<?x3x5xf32> into tensor<?x15xf32>
  %sum = arith.addf %flat, %flat : tensor<?x15xf32>
  %y = tensor.expand_shape %sum [[0], [1, 2]] output_shape [%n, 3, 5] : tensor<?x15xf32> into tensor<?x3x5xf32>
  return %y : tensor<?x3x5xf32>
}

// CHECK-LABEL: func.func private @internal(%{{.*}}: tensor<4xf32>) -> tensor<4xf32>
// CHECK-NOT: llvm.emit_c_interface
func.func private @internal(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
