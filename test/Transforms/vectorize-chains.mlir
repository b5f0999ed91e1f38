// RUN: norm-opt %s --norm-tile --norm-lower-to-linalg --norm-vectorize --canonicalize --cse --split-input-file | FileCheck %s

// Chains start from -0, which no first term needs to be added to; the 0 that a
// sum starts from comes last, so a sum of -0 is 0. A maximum starts from none.
// CHECK-LABEL: func @start
// CHECK-DAG: %[[CHAIN:.*]] = arith.constant dense<-0.000000e+00> : vector<2x32xf32>
// CHECK-DAG: %[[START:.*]] = arith.constant dense<0.000000e+00> : vector<2xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[CHAIN]])
// CHECK: vector.multi_reduction <add>, %[[SUM]], %[[START]] [1]
func.func @start(%x: tensor<2x96xf32>) -> tensor<2x96xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none
    {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = false>}
    : tensor<2x96xf32> -> tensor<2x96xf32>
  return %y : tensor<2x96xf32>
}

// -----

// How many levels a tree has only run time knows: one loop over blocks carries
// those that any length needs.
// CHECK-LABEL: func @levels
// CHECK: scf.for {{.*}} step %c1024 iter_args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> (vector<1xf32>, vector<1xf32>, vector<1xf32>, vector<1xf32>)
// CHECK: scf.for {{.*}} step %c32 iter_args
// CHECK: arith.remui %{{.*}}, %c32768
// CHECK: arith.remui %{{.*}}, %c1048576
// CHECK: arith.remui %{{.*}}, %c33554432
// CHECK-NOT: arith.remui
// CHECK-COUNT-3: arith.addf %{{.*}} : vector<1xf32>
func.func @levels(%x: tensor<1x?xf32>) -> tensor<1x?xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none
    {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = false>}
    : tensor<1x?xf32> -> tensor<1x?xf32>
  return %y : tensor<1x?xf32>
}
