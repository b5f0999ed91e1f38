// RUN: norm-opt %s --norm-configure="target=gpu" --split-input-file --verify-diagnostics
// RUN: not norm-opt %s --norm-configure="target=gpu chip=sm_75" --split-input-file 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: not norm-opt %s --norm-configure="target=gpu chip=hopper" --split-input-file 2>&1 | FileCheck %s --check-prefix=NAME

// OLD: error: expected chip to be sm_80 or a later one that LLVM 22 knows, got 'sm_75'
// NAME: error: expected chip to be sm_80 or a later one that LLVM 22 knows, got 'hopper'
func.func @columns(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'norm.rms_norm' op has no GPU kernel: expected the last axis, 1, to be the only reduced one, got axes [0]}}
  %y = norm.rms_norm %x axes [0] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @two_axes(%x: tensor<4x8x8xf32>) -> tensor<4x8x8xf32> {
  // expected-error @+1 {{'norm.layer_norm' op has no GPU kernel: expected the last axis, 2, to be the only reduced one, got axes [1, 2]}}
  %y = norm.layer_norm %x axes [1, 2] epsilon none : tensor<4x8x8xf32> -> tensor<4x8x8xf32>
  return %y : tensor<4x8x8xf32>
}

// -----

func.func @groups(%x: tensor<4x8x8xf32>) -> tensor<4x8x8xf32> {
  // expected-error @+1 {{'norm.group_norm' op has no GPU kernel: expected no groups}}
  %y = norm.group_norm %x groups 2 channel_axis 1 axes [1, 2] epsilon none : tensor<4x8x8xf32> -> tensor<4x8x8xf32>
  return %y : tensor<4x8x8xf32>
}

// -----

func.func @inference(%x: tensor<4x8xf32>, %m: tensor<8xf32>, %v: tensor<8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'norm.batch_norm_inference' op has no GPU kernel: expected a forward norm with statistics of its own and no running ones}}
  %y = norm.batch_norm_inference %x mean(%m : tensor<8xf32>) variance(%v : tensor<8xf32>) axes [0] epsilon inside_sqrt 1.0e-5 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

func.func @backward(%dy: tensor<4x8xf32>, %x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'norm.layer_norm_backward' op has no GPU kernel: expected a forward norm with statistics of its own and no running ones}}
  %dx = norm.layer_norm_backward %dy, %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %dx : tensor<4x8xf32>
}

// -----

func.func @empty_rows(%x: tensor<4x0xf32>) -> tensor<4x0xf32> {
  // expected-error @+1 {{'norm.rms_norm' op has no GPU kernel: expected rows to have elements, got an extent of 0}}
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4x0xf32> -> tensor<4x0xf32>
  return %y : tensor<4x0xf32>
}
