// RUN: norm-opt %s -split-input-file -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func @norm
// CHECK: {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true>}
func.func @norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = norm.layer_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func @loop
// CHECK: scf.forall
// CHECK: {norm.strategy = #norm.cpu<rows = 64, columns = 16, parallel = false>}
func.func @loop() {
  scf.forall (%i) in (4) {
  } {norm.strategy = #norm.cpu<rows = 64, columns = 16, parallel = false>}
  return
}

// -----

func.func @other_op(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'arith.addf' op expected 'norm.strategy' on a norm op or on a loop over its tiles}}
  %0 = arith.addf %x, %x {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true>} : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @kind(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'norm.layer_norm' op expected 'norm.strategy' to be a #norm.cpu or #norm.gpu attribute, got "rows"}}
  %0 = norm.layer_norm %x axes [1] epsilon none {norm.strategy = "rows"} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// expected-error @+1 {{expected rows from 1 to 64, got 0}}
func.func private @rows() attributes {a = #norm.cpu<rows = 0, columns = 32, parallel = true>}

// -----

// expected-error @+1 {{expected rows from 1 to 64, got 65}}
func.func private @rows() attributes {a = #norm.cpu<rows = 65, columns = 32, parallel = true>}

// -----

// expected-error @+1 {{expected columns to be a power of two from 1 to 1024, got 24}}
func.func private @columns() attributes {a = #norm.cpu<rows = 1, columns = 24, parallel = true>}

// -----

// expected-error @+1 {{expected columns to be a power of two from 1 to 1024, got 2048}}
func.func private @columns() attributes {a = #norm.cpu<rows = 1, columns = 2048, parallel = true>}

// -----

// expected-error @+1 {{expected rows * columns to be at most 1024, got 2 * 1024}}
func.func private @product() attributes {a = #norm.cpu<rows = 2, columns = 1024, parallel = true>}

// -----

// expected-error @+1 {{expected range, serial_bytes and stream_bytes of 0 or more, got 0, 0 and -1}}
func.func private @bytes() attributes {a = #norm.cpu<rows = 1, columns = 8, parallel = true, stream_bytes = -1>}

// -----

// expected-error @+1 {{expected prefetch to be 0, 1 or 2, got 3}}
func.func private @prefetch() attributes {a = #norm.cpu<rows = 1, columns = 8, parallel = true, prefetch = 3>}

// -----

// expected-error @+1 {{struct is missing required parameter: columns}}
func.func private @missing() attributes {a = #norm.cpu<rows = 1>}

// -----

// expected-error @+1 {{expected '>'}}
func.func private @epsilon() attributes {a = #norm.epsilon<none 1.0>}

// -----

// CHECK-LABEL: func @gpu
// CHECK: #norm.gpu<threads = 32, accesses = 2, width = 4, columns = 250, rows = 4, staging = registers, late_reads = true>
func.func @gpu(%x: tensor<4x250xf32>) -> tensor<4x250xf32> {
  %0 = norm.layer_norm %x axes [1] epsilon none {norm.strategy = #norm.gpu<threads = 32, accesses = 2, width = 4, columns = 250, rows = 4, staging = registers, late_reads = true>} : tensor<4x250xf32> -> tensor<4x250xf32>
  return %0 : tensor<4x250xf32>
}

// -----

// expected-error @+1 {{expected threads to be 4, 8, 16, 32 or a multiple of 32 up to 1024, got 48}}
func.func private @threads() attributes {a = #norm.gpu<threads = 48, accesses = 1, width = 1, columns = 48, rows = 1, staging = registers>}

// -----

// expected-error @+1 {{expected accesses from 1 to 64, got 65}}
func.func private @accesses() attributes {a = #norm.gpu<threads = 32, accesses = 65, width = 1, columns = 2080, rows = 1, staging = registers>}

// -----

// expected-error @+1 {{expected width to be a power of two from 1 to 16, got 3}}
func.func private @width() attributes {a = #norm.gpu<threads = 32, accesses = 1, width = 3, columns = 96, rows = 1, staging = registers>}

// -----

// expected-error @+1 {{expected columns above 128 and at most 256, which 32 threads cover by 2 accesses of 4, got 128}}
func.func private @columns() attributes {a = #norm.gpu<threads = 32, accesses = 2, width = 4, columns = 128, rows = 1, staging = registers>}

// -----

// expected-error @+1 {{expected columns of 2 or more, got 1}}
func.func private @one_column() attributes {a = #norm.gpu<threads = 32, accesses = 1, width = 1, columns = 1, rows = 1, staging = registers>}

// -----

// expected-error @+1 {{expected rows that make whole warps and a block of up to 1024 threads with 8 threads a row, got 3}}
func.func private @part_of_a_warp() attributes {a = #norm.gpu<threads = 8, accesses = 1, width = 1, columns = 8, rows = 3, staging = registers>}

// -----

// expected-error @+1 {{expected rows that make whole warps and a block of up to 1024 threads with 512 threads a row, got 3}}
func.func private @big_block() attributes {a = #norm.gpu<threads = 512, accesses = 1, width = 1, columns = 512, rows = 3, staging = registers>}

// -----

// expected-error @+1 {{expected columns of whole accesses in all threads, 256, with staging = shared, got 250}}
func.func private @part_in_shared_memory() attributes {a = #norm.gpu<threads = 32, accesses = 2, width = 4, columns = 250, rows = 1, staging = shared>}
