// RUN: norm-opt %s -loop-invariant-code-motion | FileCheck %s --check-prefixes=LICM
// RUN: norm-opt %s -canonicalize | FileCheck %s --check-prefixes=DCE
// RUN: norm-opt %s -cse | FileCheck %s --check-prefixes=CSE

// Static shapes cannot disagree: the op may run where it would not have.
// LICM-LABEL: func @static
// LICM: norm.rms_norm
// LICM: scf.for
func.func @static(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>, %g: tensor<8xf32>, %n: index, %init: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> tensor<4x8xf32> {
    %y = norm.rms_norm %x residual(%r : tensor<4x8xf32>) scale(%g : tensor<8xf32>) axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
    %s = arith.addf %acc, %y : tensor<4x8xf32>
    scf.yield %s : tensor<4x8xf32>
  }
  return %z : tensor<4x8xf32>
}

// A dynamic axis that only x has cannot disagree with anything either.
// LICM-LABEL: func @dynamic_batch
// LICM: norm.rms_norm
// LICM: scf.for
func.func @dynamic_batch(%x: tensor<?x8xf32>, %g: tensor<8xf32>, %n: index, %init: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> tensor<?x8xf32> {
    %y = norm.rms_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon none : tensor<?x8xf32> -> tensor<?x8xf32>
    %s = arith.addf %acc, %y : tensor<?x8xf32>
    scf.yield %s : tensor<?x8xf32>
  }
  return %z : tensor<?x8xf32>
}

// A residual or a gain that might not fit x stays in the loop, which may never
// run; so does a result whose type promises an extent.
// LICM-LABEL: func @dynamic
// LICM: scf.for
// LICM: norm.rms_norm
// LICM: norm.layer_norm
// LICM: norm.layer_norm
func.func @dynamic(%x: tensor<?x?xf32>, %r: tensor<?x?xf32>, %g: tensor<8xf32>, %n: index, %init: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> tensor<?x?xf32> {
    %y = norm.rms_norm %x residual(%r : tensor<?x?xf32>) axes [1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32>
    %v = norm.layer_norm %x scale(%g : tensor<8xf32>) axes [1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32>
    %w, %mean = norm.layer_norm %x axes [1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32> mean(tensor<4xf32>)
    %s = arith.addf %acc, %y : tensor<?x?xf32>
    %t = arith.addf %s, %v : tensor<?x?xf32>
    %u = arith.addf %t, %w : tensor<?x?xf32>
    scf.yield %u : tensor<?x?xf32>
  }
  return %z : tensor<?x?xf32>
}

// DCE-LABEL: func @unused
// DCE-NOT: norm.
// DCE: return
func.func @unused(%x: tensor<?x?xf32>, %r: tensor<?x?xf32>) {
  %y, %sum = norm.rms_norm %x residual(%r : tensor<?x?xf32>) axes [1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32> sum(tensor<?x?xf32>)
  return
}

// CSE-LABEL: func @equal
// CSE: %[[Y:.+]] = norm.layer_norm
// CSE-NOT: norm.
// CSE: return %[[Y]], %[[Y]]
func.func @equal(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<?x8xf32> -> tensor<?x8xf32>
  %1 = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 correction 0 : tensor<?x8xf32> -> tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}

// The value of epsilon, its place, the axes and the results asked for all keep
// ops apart.
// CSE-LABEL: func @different
// CSE-COUNT-6: norm.{{layer|rms}}_norm
// CSE: return
func.func @different(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<8x8xf32> -> tensor<8x8xf32>
  %1 = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<8x8xf32> -> tensor<8x8xf32>
  %2 = norm.layer_norm %x axes [1] epsilon outside_sqrt 1.0e-5 : tensor<8x8xf32> -> tensor<8x8xf32>
  %3 = norm.layer_norm %x axes [0] epsilon inside_sqrt 1.0e-5 : tensor<8x8xf32> -> tensor<8x8xf32>
  %4, %mean = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<8x8xf32> -> tensor<8x8xf32> mean(tensor<8xf32>)
  %5 = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<8x8xf32> -> tensor<8x8xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
