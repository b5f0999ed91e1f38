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

#s = #norm.gpu<threads = 512, accesses = 2, width = 8, columns = 8192, rows = 1, staging = shared>
func.func @too_long(%x: memref<4x131072xf32>, %s: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c8192 = arith.constant 8192 : index
  %n = arith.constant 131072 : index
  %pad = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<8192xf32>
  // expected-error @+1 {{'scf.forall' op keeps 131072 columns of 'f32' in shared memory: expected at most 228352 bytes a block on sm_90, got 524288}}
  scf.forall (%i) in (4) {
    %acc = scf.for %j = %c0 to %n step %c8192 iter_args(%a = %zeros) -> (vector<8192xf32>) {
      %v = vector.transfer_read %x[%i, %j], %pad {in_bounds = [true]} : memref<4x131072xf32>, vector<8192xf32>
      %next = arith.addf %a, %v : vector<8192xf32>
      scf.yield %next : vector<8192xf32>
    }
    %sum = vector.multi_reduction <add>, %acc, %pad [0] : vector<8192xf32> to f32
    %b = vector.broadcast %sum : f32 to vector<8192xf32>
    %least = scf.for %j = %c0 to %n step %c8192 iter_args(%a = %zeros) -> (vector<8192xf32>) {
      %v = vector.transfer_read %x[%i, %j], %pad {in_bounds = [true]} : memref<4x131072xf32>, vector<8192xf32>
      %d = arith.subf %v, %b : vector<8192xf32>
      %next = arith.minimumf %a, %d : vector<8192xf32>
      scf.yield %next : vector<8192xf32>
    }
    %min = vector.multi_reduction <minimumf>, %least, %pad [0] : vector<8192xf32> to f32
    memref.store %min, %s[%i] : memref<4xf32>
  } {norm.strategy = #s}
  return
}

// -----

#s = #norm.gpu<threads = 32, accesses = 1, width = 4, columns = 128, rows = 1, staging = shared>
func.func @unknown_length(%x: memref<4x?xf32>, %s: memref<4xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %pad = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<128xf32>
  scf.forall (%i) in (4) {
    %acc = scf.for %j = %c0 to %n step %c128 iter_args(%a = %zeros) -> (vector<128xf32>) {
      // expected-error @+1 {{'vector.transfer_read' op cannot be kept in shared memory: expected sweeps over columns whose number is static}}
      %v = vector.transfer_read %x[%i, %j], %pad {in_bounds = [true]} : memref<4x?xf32>, vector<128xf32>
      %next = arith.addf %a, %v : vector<128xf32>
      scf.yield %next : vector<128xf32>
    }
    %sum = vector.multi_reduction <add>, %acc, %pad [0] : vector<128xf32> to f32
    %b = vector.broadcast %sum : f32 to vector<128xf32>
    %least = scf.for %j = %c0 to %n step %c128 iter_args(%a = %zeros) -> (vector<128xf32>) {
      %v = vector.transfer_read %x[%i, %j], %pad {in_bounds = [true]} : memref<4x?xf32>, vector<128xf32>
      %d = arith.subf %v, %b : vector<128xf32>
      %next = arith.minimumf %a, %d : vector<128xf32>
      scf.yield %next : vector<128xf32>
    }
    %min = vector.multi_reduction <minimumf>, %least, %pad [0] : vector<128xf32> to f32
    memref.store %min, %s[%i] : memref<4xf32>
  } {norm.strategy = #s}
  return
}

// -----

#s = #norm.gpu<threads = 32, accesses = 1, width = 2, columns = 64, rows = 1, staging = shared>
func.func @other_threads_columns(%x: memref<4x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pad = arith.constant 0.0 : f32
  scf.forall (%i) in (4) {
    %row = memref.alloc() : memref<128xf32, #gpu.address_space<workgroup>>
    %v = vector.transfer_read %x[%i, %c0], %pad {in_bounds = [true]} : memref<4x64xf32>, vector<64xf32>
    // expected-error @+1 {{'vector.transfer_write' op cannot be spread over threads: expected whole chunks of a row in shared memory}}
    vector.transfer_write %v, %row[%c1] {in_bounds = [true]} : vector<64xf32>, memref<128xf32, #gpu.address_space<workgroup>>
  } {norm.strategy = #s}
  return
}

// -----

// Each error stands for a whole program.
// RUN: not norm-opt %s --norm-map-to-threads="chip=hopper" --split-input-file 2>&1 | FileCheck %s --check-prefix=CHIP
// CHIP: error: expected chip to be a name as sm_90, got 'hopper'

// HOST: error: 'memref.copy' op is not part of a norm or of what is computed beside one, and has no GPU kernel
func.func @host(%x: memref<4x64xf32>, %y: memref<4x64xf32>) {
  memref.copy %x, %y : memref<4x64xf32> to memref<4x64xf32>
  return
}
