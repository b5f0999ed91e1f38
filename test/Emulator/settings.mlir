// The environment, diagnostics without locations, and how a program ends.
// RUN: %to_gpu_without_locations %s -o %t
// RUN: %to_gpu %s -o %t.located
// RUN: not %run_emulated -e wrong %t 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not %run_emulated -e wrong %t.located 2>&1 | FileCheck %s --check-prefix=LOCATED
// RUN: env NORM_EMU_CHECK=bounds,races %run_emulated -e wrong %t

// RUN: env NORM_EMU_SEED=many not %run_emulated -e right %t 2>&1 | FileCheck %s --check-prefix=SEED
// RUN: env NORM_EMU_CHECK=-everything not %run_emulated -e right %t 2>&1 | FileCheck %s --check-prefix=CHECKS
// RUN: env NORM_EMU_COUNTERS=xml not %run_emulated -e right %t 2>&1 | FileCheck %s --check-prefix=COUNTERS

// What was printed before a failure is not lost, and the status says so.
// RUN: %python -c "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode != 70)" %run_emulated -e wrong %t 2>&1 | FileCheck %s --check-prefix=STATUS

// RUN: env NORM_EMU_COUNTERS=json:%t.json %run_emulated -e right %t
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: env NORM_EMU_COUNTERS=json:%t.json not %run_emulated -e wrong %t
// RUN: %python -m json.tool %t.json

// TEXT: norm-emu: error: misaligned: thread 0 reads 16 bytes at an address that is not a multiple of 16
// TEXT-NEXT: load <4 x float>
// TEXT-NEXT: norm-emu: note: in kernel 'wrong_kernel', block (0, 0, 0), thread (0, 0, 0)
// TEXT-NEXT: norm-emu: note: the module has no debug locations; run ensure-debug-info-scope-on-llvm-func on it to see lines
// SEED: norm-emu: error: expected a number in NORM_EMU_SEED, got 'many'
// CHECKS: norm-emu: error: unknown check 'everything' in NORM_EMU_CHECK: expected all, none, bounds, alignment, races, uninitialized, blocks or aliasing
// COUNTERS: norm-emu: error: expected text, json, text:FILE or json:FILE in NORM_EMU_COUNTERS, got 'xml'

// STATUS: 42
// STATUS: error: misaligned
func.func private @printI64(i64)
func.func private @printNewline()

func.func @wrong() {
  %c42 = arith.constant 42 : i64
  call @printI64(%c42) : (i64) -> ()
  call @printNewline() : () -> ()
  %c1 = arith.constant 1 : index
  %t0 = gpu.wait async
  %x, %t1 = gpu.alloc async [%t0] () : memref<8xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c1, %ny = %c1, %nz = %c1) {
    %i1 = arith.constant 1 : index
    // LOCATED: settings.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: misaligned
    %v = vector.load %x[%i1] {alignment = 16} : memref<8xf32>, vector<4xf32>
    vector.store %v, %x[%t] : memref<8xf32>, vector<4xf32>
    gpu.terminator
  }
  return
}

// Every lane of a warp at a distance of 32 bytes: a sector each, and banks that
// eight words share. The second access of each is coalesced.
// JSON: "arrays": [
// JSON: "array": "argument 0",
// JSON: "read": {
// JSON-NEXT: "bytes": 128,
// JSON-NEXT: "sectors": 32,
// JSON-NEXT: "warp_accesses": 1
// JSON: "size": 1024,
// JSON: "written": {
// JSON-NEXT: "bytes": 128,
// JSON-NEXT: "sectors": 4,
// JSON-NEXT: "warp_accesses": 1
// JSON: "barriers": 1,
// JSON: "kernel": "right_kernel",
// JSON: "shared": {
// JSON-NEXT: "bank_conflicts": 14,
// JSON-NEXT: "passes": 2,
// JSON-NEXT: "read_bytes": 128,
// JSON-NEXT: "warp_accesses": 2,
// JSON-NEXT: "written_bytes": 128
func.func @right() {
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %t0 = gpu.wait async
  %x, %t1 = gpu.alloc async [%t0] () : memref<256xf32>
  gpu.wait [%t1]
  gpu.launch blocks(%b, %by, %bz) in (%g = %c1, %gy = %c1, %gz = %c1) threads(%t, %ty, %tz) in (%n = %c32, %ny = %c1, %nz = %c1)
      workgroup(%s : memref<256xf32, #gpu.address_space<workgroup>>) {
    %c8 = arith.constant 8 : index
    %far = arith.muli %t, %c8 : index
    %v = memref.load %x[%far] : memref<256xf32>
    memref.store %v, %s[%far] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %w = memref.load %s[%far] : memref<256xf32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%t] : memref<256xf32>
    gpu.terminator
  }
  return
}
