// Two accesses of one byte of shared memory, one a write, with nothing between
// them that orders the threads.
// RUN: %to_gpu %s -o %t
// RUN: not %run_emulated -e missing_barrier %t 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: %run_emulated -e with_barrier %t | FileCheck %s --check-prefix=VALUES
// RUN: not %run_emulated -e overwritten %t 2>&1 | FileCheck %s --check-prefix=OVERWRITTEN
// RUN: not %run_emulated -e lanes %t 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: %run_emulated -e synchronized_lanes %t | FileCheck %s --check-prefix=VALUES
// RUN: not %run_emulated -e half_synchronized %t 2>&1 | FileCheck %s --check-prefix=HALF

// Whatever the order of threads, it is found.
// RUN: env NORM_EMU_SEED=7 not %run_emulated -e missing_barrier %t 2>&1 | FileCheck %s --check-prefix=SEED
// RUN: env NORM_EMU_SEED=8 not %run_emulated -e overwritten %t 2>&1 | FileCheck %s --check-prefix=SEED
// RUN: env NORM_EMU_CHECK=-races,-uninitialized %run_emulated -e lanes %t

// SEED: error: shared-memory race
// SEED-NEXT: note: in kernel {{.*}} with NORM_EMU_SEED={{[78]}}

module attributes {gpu.container_module} {
  func.func private @printMemrefI32(memref<*xi32>)
  memref.global "private" @out : memref<64xi32> = dense<0>

  gpu.module @device {
    // Each thread reads what the thread 33 after it wrote.
    gpu.func @missing(%y: memref<64xi32>) workgroup(%s: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %c33 = arith.constant 33 : index
      %c64 = arith.constant 64 : index
      %v = arith.index_cast %t : index to i32
      memref.store %v, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
      %o = arith.addi %t, %c33 : index
      %i = arith.remui %o, %c64 : index
      // MISSING: races.mlir:[[#@LINE+4]]:{{[0-9]+}}: error: shared-memory race: thread 31 reads 4 bytes of shared memory that thread 0 wrote with no barrier in between, at offset 0 of shared variable '__wg_missing_0', which has 256 bytes
      // MISSING-NEXT: norm-emu: note: in kernel 'missing', block (0, 0, 0), thread (31, 0, 0)
      // MISSING-NEXT: races.mlir:[[#@LINE-5]]:{{[0-9]+}}: note: thread 0 wrote here
      // MISSING-NOT: {{.}}
      %w = memref.load %s[%i] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %w, %y[%t] : memref<64xi32>
      gpu.return
    }
    gpu.func @barrier(%y: memref<64xi32>) workgroup(%s: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %c33 = arith.constant 33 : index
      %c64 = arith.constant 64 : index
      %v = arith.index_cast %t : index to i32
      memref.store %v, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
      gpu.barrier
      %o = arith.addi %t, %c33 : index
      %i = arith.remui %o, %c64 : index
      %w = memref.load %s[%i] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %w, %y[%t] : memref<64xi32>
      gpu.return
    }
    // The second iteration overwrites what others may still be reading.
    gpu.func @overwritten(%y: memref<64xi32>) workgroup(%s: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c63 = arith.constant 63 : index
      %n = arith.subi %c63, %t : index
      scf.for %k = %c0 to %c2 step %c1 {
        %u = arith.addi %t, %k : index
        %v = arith.index_cast %u : index to i32
        // OVERWRITTEN: error: shared-memory race: thread {{[0-9]+}} {{reads|writes}} 4 bytes of shared memory that thread {{[0-9]+}} {{read|wrote}}
        memref.store %v, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
        gpu.barrier
        %w = memref.load %s[%n] : memref<64xi32, #gpu.address_space<workgroup>>
        memref.store %w, %y[%t] : memref<64xi32>
      }
      gpu.return
    }
    // Lanes of a warp are not in step: each reads its neighbour.
    gpu.func @lanes(%y: memref<64xi32>) workgroup(%s: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %c1 = arith.constant 1 : index
      %v = arith.index_cast %t : index to i32
      // LANES: error: shared-memory race: thread {{[0-9]+}} {{reads|writes}} 4 bytes of shared memory that thread {{[0-9]+}} {{read|wrote}} with no barrier in between
      memref.store %v, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
      %i = arith.xori %t, %c1 : index
      %w = memref.load %s[%i] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %w, %y[%t] : memref<64xi32>
      gpu.return
    }
    gpu.func @synchronized(%y: memref<64xi32>) workgroup(%s: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %c1 = arith.constant 1 : index
      %all = arith.constant -1 : i32
      %v = arith.index_cast %t : index to i32
      memref.store %v, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
      nvvm.bar.warp.sync %all : i32
      %i = arith.xori %t, %c1 : index
      %w = memref.load %s[%i] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %w, %y[%t] : memref<64xi32>
      gpu.return
    }
    // Each half of a warp synchronizes by itself, and then reads the other half.
    gpu.func @half(%y: memref<64xi32>) workgroup(%s: memref<64xi32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %c16 = arith.constant 16 : index
      %low = arith.constant 65535 : i32
      %high = arith.constant -65536 : i32
      %v = arith.index_cast %t : index to i32
      memref.store %v, %s[%t] : memref<64xi32, #gpu.address_space<workgroup>>
      %bit = arith.andi %t, %c16 : index
      %isHigh = arith.cmpi eq, %bit, %c16 : index
      %mask = arith.select %isHigh, %high, %low : i32
      nvvm.bar.warp.sync %mask : i32
      %i = arith.xori %t, %c16 : index
      // HALF: races.mlir:[[#@LINE+1]]:{{[0-9]+}}: error: shared-memory race: thread {{[0-9]+}} reads 4 bytes of shared memory that thread {{[0-9]+}} wrote with no barrier
      %w = memref.load %s[%i] : memref<64xi32, #gpu.address_space<workgroup>>
      memref.store %w, %y[%t] : memref<64xi32>
      gpu.return
    }
  }

  func.func private @array() -> memref<64xi32> {
    %y = memref.get_global @out : memref<64xi32>
    %u = memref.cast %y : memref<64xi32> to memref<*xi32>
    gpu.host_register %u : memref<*xi32>
    return %y : memref<64xi32>
  }
  // VALUES: {{33, 34, 35,|1, 0, 3, 2,}}
  func.func private @print(%y: memref<64xi32>) {
    %u = memref.cast %y : memref<64xi32> to memref<*xi32>
    call @printMemrefI32(%u) : (memref<*xi32>) -> ()
    return
  }
  func.func @missing_barrier() {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %y = call @array() : () -> memref<64xi32>
    gpu.launch_func @device::@missing blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%y : memref<64xi32>)
    return
  }
  func.func @with_barrier() {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %y = call @array() : () -> memref<64xi32>
    gpu.launch_func @device::@barrier blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%y : memref<64xi32>)
    call @print(%y) : (memref<64xi32>) -> ()
    return
  }
  func.func @overwritten() {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %y = call @array() : () -> memref<64xi32>
    gpu.launch_func @device::@overwritten blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%y : memref<64xi32>)
    return
  }
  func.func @lanes() {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %y = call @array() : () -> memref<64xi32>
    gpu.launch_func @device::@lanes blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%y : memref<64xi32>)
    return
  }
  func.func @synchronized_lanes() {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %y = call @array() : () -> memref<64xi32>
    gpu.launch_func @device::@synchronized blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%y : memref<64xi32>)
    call @print(%y) : (memref<64xi32>) -> ()
    return
  }
  func.func @half_synchronized() {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %y = call @array() : () -> memref<64xi32>
    gpu.launch_func @device::@half blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%y : memref<64xi32>)
    return
  }
}
