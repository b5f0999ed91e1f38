// RUN: norm-opt %s --norm-map-to-threads --split-input-file --verify-diagnostics
// RUN: not norm-opt %s --norm-map-to-threads="stream=true" --split-input-file 2>&1 | FileCheck %s --check-prefix=HOST

#s = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @tensors(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  // expected-error @+1 {{expected a loop over rows of buffers, got one that yields tensors: bufferize first}}
  %0 = scf.forall (%i) in (4) shared_outs(%o = %x) -> (tensor<4x64xf32>) {
    scf.forall.in_parallel {
    }
  } {norm.strategy = #s}
  return %0 : tensor<4x64xf32>
}

// -----

#s = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @steps(%x: memref<4x64xf32>) {
  // expected-error @+1 {{expected a loop over rows from 0 by steps of 1}}
  scf.forall (%i) = (0) to (4) step (2) {
  } {norm.strategy = #s}
  return
}

// -----

#s = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @other_vectors(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (4) {
    // expected-error @+1 {{'vector.transfer_read' op cannot be spread over threads: expected vectors of one row's 64 columns or of one element, got 'vector<32xf32>'}}
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<4x64xf32>, vector<32xf32>
    vector.transfer_write %v, %y[%i, %c0] {in_bounds = [true]} : vector<32xf32>, memref<4x64xf32>
  } {norm.strategy = #s}
  return
}

// -----

#s = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @shuffled(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (4) {
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<4x64xf32>, vector<64xf32>
    // expected-error @+1 {{'vector.interleave' op cannot be spread over threads: expected vectors of one row's 64 columns or of one element, got 'vector<128xf32>'}}
    %w = vector.interleave %v, %v : vector<64xf32> -> vector<128xf32>
  } {norm.strategy = #s}
  return
}

// -----

#s = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @copied(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
  scf.forall (%i) in (4) {
    // expected-error @+1 {{'memref.copy' op cannot be spread over threads}}
    memref.copy %x, %y : memref<4x64xf32> to memref<4x64xf32>
  } {norm.strategy = #s}
  return
}

// -----

#s = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @read_back(%y: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (4) {
    // expected-error @+1 {{'vector.transfer_read' op cannot be spread over threads: expected to read no buffer that the same loop over rows writes}}
    %v = vector.transfer_read %y[%i, %c0], %pad {in_bounds = [true]} : memref<4x64xf32>, vector<64xf32>
    vector.transfer_write %v, %y[%i, %c0] {in_bounds = [true]} : vector<64xf32>, memref<4x64xf32>
  } {norm.strategy = #s}
  return
}

// -----

#s = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = registers>
func.func @narrow_sum(%x: memref<4x64xbf16>, %y: memref<4xbf16>) {
  %c0 = arith.constant 0 : index
  %pad = arith.constant 0.0 : bf16
  scf.forall (%i) in (4) {
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<4x64xbf16>, vector<64xbf16>
    // expected-error @+1 {{'vector.multi_reduction' op cannot be spread over threads: expected a reduction in 32 or 64 bits}}
    %sum = vector.multi_reduction <add>, %v, %pad [0] : vector<64xbf16> to bf16
    memref.store %sum, %y[%i] : memref<4xbf16>
  } {norm.strategy = #s}
  return
}

// -----

// HOST: error: 'memref.copy' op is not part of a norm or of what is computed beside one, and has no GPU kernel
func.func @host(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
  memref.copy %x, %y : memref<4x64xf32> to memref<4x64xf32>
  return
}
