// A dimension that is split into several of unknown extents: upstream cannot
// lower such a view.
// RUN: norm-opt %s --norm-map-to-registers | FileCheck %s
// RUN: norm-opt %s --norm-to-cpu -o /dev/null

// CHECK-LABEL: func @split(
// CHECK-SAME: %[[M:.*]]: memref<?x4xf32>, %[[A:.*]]: index, %[[B:.*]]: index
// CHECK: %[[BASE:.*]], %{{.*}}, %{{.*}}:2, %{{.*}}:2 = memref.extract_strided_metadata %[[M]]
// CHECK: %[[PITCH:.*]] = arith.muli %{{.*}}, %[[B]]
// CHECK: memref.reinterpret_cast %[[BASE]] to offset: [0], sizes: [%[[A]], %[[B]], 4], strides: [%[[PITCH]], 4, 1]
func.func @split(%m: memref<?x4xf32>, %a: index, %b: index) -> f32 {
  %c0 = arith.constant 0 : index
  %e = memref.expand_shape %m [[0, 1], [2]] output_shape [%a, %b, 4] : memref<?x4xf32> into memref<?x?x4xf32>
  %v = memref.load %e[%a, %b, %c0] : memref<?x?x4xf32>
  return %v : f32
}

// One unknown extent is left to upstream.
// CHECK-LABEL: func @one(
// CHECK: memref.expand_shape
func.func @one(%m: memref<?x4xf32>, %a: index) -> f32 {
  %c0 = arith.constant 0 : index
  %e = memref.expand_shape %m [[0, 1], [2]] output_shape [%a, 2, 4] : memref<?x4xf32> into memref<?x2x4xf32>
  %v = memref.load %e[%a, %c0, %c0] : memref<?x2x4xf32>
  return %v : f32
}
