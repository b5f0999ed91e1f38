// RUN: not norm-opt %s --norm-configure="columns=24" 2>&1 | FileCheck %s
// RUN: not norm-opt %s --norm-configure="rows=65" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not norm-opt %s --norm-configure="serial-bytes=-5" 2>&1 | FileCheck %s --check-prefix=BYTES
// RUN: not norm-opt %s --norm-configure="rows=64 columns=32" 2>&1 | FileCheck %s --check-prefix=PRODUCT

// PRODUCT: error: expected rows * columns <= 1024, got 64 * 32
// BYTES: error: expected serial-bytes and stream-bytes >= 0, got -5 and 4194304
// CHECK: error: expected rows from 0 to 64 and columns 0 or a power of two up to 1024, got rows 0 and columns 24
// ROWS: got rows 65 and columns 0
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
