// RUN: norm-opt %s --norm-configure="target=gpu" | FileCheck %s
// RUN: norm-opt %s --norm-configure="target=gpu chip=sm_80" | FileCheck %s --check-prefix=SM80
// RUN: norm-opt %s --norm-configure="target=gpu" --remarks-filter="norm-configure" 2>&1 | FileCheck %s --check-prefix=REMARK

// Short rows: some to a warp.
// CHECK-LABEL: func @head(
// CHECK: #norm.gpu<threads = 8, accesses = 2, width = 8, columns = 128, rows = 16, staging = registers>
// REMARK: {{.*}}a row of 128 elements in the registers of 8 threads; 16 bytes an access; 16 rows a block and no barrier
func.func @head(%x: tensor<64x128xbf16>) -> tensor<64x128xbf16> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<64x128xbf16> -> tensor<64x128xbf16>
  return %y : tensor<64x128xbf16>
}

// CHECK-LABEL: func @warp(
// CHECK: #norm.gpu<threads = 32, accesses = 6, width = 4, columns = 768, rows = 4, staging = registers, late_reads = true>
// REMARK: {{.*}}a row of 768 elements in the registers of 32 threads; 16 bytes an access; 4 rows a block and no barrier; scale and shift read late, to save registers
func.func @warp(%x: tensor<64x768xf32>) -> tensor<64x768xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<64x768xf32> -> tensor<64x768xf32>
  return %y : tensor<64x768xf32>
}

// Warps enough for 32 registers a thread, and as many as share the row evenly.
// The number of rows decides nothing: a row has the same bits in any batch.
// CHECK-LABEL: func @block(
// CHECK: #norm.gpu<threads = 128, accesses = 8, width = 4, columns = 4096, rows = 1, staging = registers, late_reads = true>
// CHECK: #norm.gpu<threads = 128, accesses = 8, width = 4, columns = 4096, rows = 1, staging = registers, late_reads = true>
// CHECK: #norm.gpu<threads = 160, accesses = 4, width = 8, columns = 5120, rows = 1, staging = registers, late_reads = true>
// REMARK: {{.*}}a row of 5120 elements in the registers of 160 threads; 16 bytes an access; one barrier a reduction; scale
func.func @block(%x: tensor<1x4096xf32>, %w: tensor<?x4096xf32>, %z: tensor<64x5120xbf16>) -> (tensor<1x4096xf32>, tensor<?x4096xf32>, tensor<64x5120xbf16>) {
  %0 = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<1x4096xf32> -> tensor<1x4096xf32>
  %1 = norm.layer_norm %w axes [1] epsilon inside_sqrt 1.0e-6 : tensor<?x4096xf32> -> tensor<?x4096xf32>
  %2 = norm.layer_norm %z axes [1] epsilon inside_sqrt 1.0e-6 : tensor<64x5120xbf16> -> tensor<64x5120xbf16>
  return %0, %1, %2 : tensor<1x4096xf32>, tensor<?x4096xf32>, tensor<64x5120xbf16>
}

// The narrowest type along the row sets V. One that does not divide the row cuts
// a piece, so it is halved, down to half an access; what would be less goes by
// whole accesses and shifts, where it is worth that.
// CHECK-LABEL: func @widths(
// CHECK: width = 8, columns = 1024,
// CHECK: width = 4, columns = 500,
// CHECK: #norm.gpu<threads = 64, accesses = 4, width = 4, columns = 1023, rows = 1, staging = registers, late_reads = true>
// CHECK: #norm.gpu<threads = 64, accesses = 6, width = 2, columns = 768,
// CHECK: width = 1, columns = 255,
// REMARK: {{.*}}a row of 1023 elements in the registers of 64 threads; 16 bytes an access, shifted, as rows start anywhere; one barrier
func.func @widths(%x: tensor<4x1024xf32>, %r: tensor<4x1024xbf16>, %y: tensor<4x500xbf16>, %z: tensor<4x1023xf32>, %d: tensor<4x768xf64>, %s: tensor<4x255xf32>)
    -> (tensor<4x1024xf32>, tensor<4x500xbf16>, tensor<4x1023xf32>, tensor<4x768xf64>, tensor<4x255xf32>) {
  %0 = norm.rms_norm %x residual(%r : tensor<4x1024xbf16>) axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x1024xf32> -> tensor<4x1024xf32>
  %1 = norm.rms_norm %y axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x500xbf16> -> tensor<4x500xbf16>
  %2 = norm.rms_norm %z axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x1023xf32> -> tensor<4x1023xf32>
  %3 = norm.rms_norm %d axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x768xf64> -> tensor<4x768xf64>
  %4 = norm.rms_norm %s axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x255xf32> -> tensor<4x255xf32>
  return %0, %1, %2, %3, %4 : tensor<4x1024xf32>, tensor<4x500xbf16>, tensor<4x1023xf32>, tensor<4x768xf64>, tensor<4x255xf32>
}

// Beyond 64 registers in 512 threads, and where the length is not known, a row
// goes by chunks. It stays in the chip's shared memory if all whole chunks do:
// of bf16 twice as long as of f32, and of a sum as long as the sum's type is.
// CHECK-LABEL: func @chunks(
// CHECK: #norm.gpu<threads = 512, accesses = 8, width = 8, columns = 32768, rows = 1, staging = registers, late_reads = true>
// CHECK: #norm.gpu<threads = 512, accesses = 4, width = 4, columns = 8192, rows = 1, staging = shared>
// CHECK: #norm.gpu<threads = 512, accesses = 4, width = 4, columns = 8192, rows = 1, staging = reread>
// CHECK: #norm.gpu<threads = 512, accesses = 2, width = 8, columns = 8192, rows = 1, staging = shared>
// CHECK: #norm.gpu<threads = 512, accesses = 2, width = 8, columns = 8192, rows = 1, staging = reread>
// CHECK: #norm.gpu<threads = 128, accesses = 4, width = 4, columns = 2048, rows = 1, staging = reread>
// REMARK: {{.*}}a row of 49152 elements by chunks, 196608 bytes of it in shared memory; 16 bytes
// REMARK: {{.*}}a row of 65536 elements by chunks, read again from the cache in each sweep, as 262144 bytes do not fit shared memory; 16 bytes
// REMARK: {{.*}}a row of 65536 elements by chunks, 131072 bytes of it in shared memory; 16 bytes
// REMARK: {{.*}}a row of 65536 elements by chunks, read again from the cache in each sweep, as 262144 bytes do not fit shared memory; 16 bytes
// REMARK: {{.*}}rows of a length known at run time, by chunks; 16 bytes
// SM80-LABEL: func @chunks(
// SM80: staging = registers
// SM80: columns = 8192, rows = 1, staging = reread
// SM80: columns = 8192, rows = 1, staging = reread
// SM80: columns = 8192, rows = 1, staging = shared
func.func @chunks(%x: tensor<4x32768xbf16>, %y: tensor<4x49152xf32>, %w: tensor<4x65536xf32>, %h: tensor<4x65536xbf16>, %z: tensor<4x?xf32>)
    -> (tensor<4x32768xbf16>, tensor<4x49152xf32>, tensor<4x65536xf32>, tensor<4x65536xbf16>, tensor<4x65536xbf16>, tensor<4x?xf32>) {
  %0 = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x32768xbf16> -> tensor<4x32768xbf16>
  %1 = norm.rms_norm %y axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x49152xf32> -> tensor<4x49152xf32>
  %2 = norm.rms_norm %w axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x65536xf32> -> tensor<4x65536xf32>
  %3 = norm.rms_norm %h residual(%h : tensor<4x65536xbf16>) axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x65536xbf16> -> tensor<4x65536xbf16>
  %4 = norm.rms_norm %h residual(%h : tensor<4x65536xbf16>) axes [1] epsilon inside_sqrt 1.0e-6 sum_rounding compute : tensor<4x65536xbf16> -> tensor<4x65536xbf16>
  %5 = norm.rms_norm %z axes [1] epsilon inside_sqrt 1.0e-6 : tensor<4x?xf32> -> tensor<4x?xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<4x32768xbf16>, tensor<4x49152xf32>, tensor<4x65536xf32>, tensor<4x65536xbf16>, tensor<4x65536xbf16>, tensor<4x?xf32>
}

// What somebody chose stays.
// CHECK-LABEL: func @chosen(
// CHECK: #norm.gpu<threads = 64, accesses = 3, width = 4, columns = 768, rows = 2, staging = registers>
func.func @chosen(%x: tensor<64x768xf32>) -> tensor<64x768xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-6
      {norm.strategy = #norm.gpu<threads = 64, accesses = 3, width = 4, columns = 768, rows = 2, staging = registers>}
      : tensor<64x768xf32> -> tensor<64x768xf32>
  return %y : tensor<64x768xf32>
}
