// A whole program as others write them: RMS norm by hand, a block of three
// warps per row (no power of two), shuffles, one exchange through shared memory.
// RUN: %to_gpu %s -o %t
// RUN: %run_emulated %t -e main | FileCheck %s
// RUN: env NORM_EMU_SEED=1 %run_emulated %t -e main | FileCheck %s
// RUN: env NORM_EMU_SEED=0xfeed %run_emulated %t -e main | FileCheck %s

// x is read once, and so is the gain by each row; accesses are coalesced.
// RUN: env NORM_EMU_COUNTERS=text %run_emulated %t -e main 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNTERS

// 192 floats of a row over 96 threads; lane 0 of each warp stores its sum, all
// threads read the three.
// COUNTERS: kernel rms: 1 launches, 5 blocks, 480 threads
// COUNTERS-NEXT: argument 0: read 3840 bytes (1.00 of its 3840), 15 warp accesses, 8.00 sectors each
// COUNTERS-NEXT: argument 7: read 3840 bytes (5.00 of its 768), 15 warp accesses, 8.00 sectors each
// COUNTERS-NEXT: argument 12: written 3840 bytes (1.00 of its 3840), 15 warp accesses, 8.00 sectors each
// COUNTERS-NEXT: shared memory: read {{[0-9]+}} bytes, written 60 bytes, {{[0-9]+}} warp accesses in {{[0-9]+}} passes, 0 more for bank conflicts
// COUNTERS-NEXT: 5 barriers, 75 shuffles, 0 other exchanges in a warp
module attributes {gpu.container_module} {
  func.func private @printF32(f32)
  func.func private @printNewline()

  gpu.module @device {
    gpu.func @rms(%x: memref<?x192xf32>, %g: memref<192xf32>, %y: memref<?x192xf32>)
        workgroup(%slots: memref<3xf32, #gpu.address_space<workgroup>>) kernel {
      %row = gpu.block_id x
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c32 = arith.constant 32 : index
      %j = arith.muli %t, %c2 : index
      %v = vector.load %x[%row, %j] {alignment = 8} : memref<?x192xf32>, vector<2xf32>
      %sq = arith.mulf %v, %v : vector<2xf32>
      %own = vector.reduction <add>, %sq : vector<2xf32> into f32
      %w = arith.constant 32 : i32
      %o16 = arith.constant 16 : i32
      %o8 = arith.constant 8 : i32
      %o4 = arith.constant 4 : i32
      %o2 = arith.constant 2 : i32
      %o1 = arith.constant 1 : i32
      %a16, %p16 = gpu.shuffle xor %own, %o16, %w : f32
      %s16 = arith.addf %own, %a16 : f32
      %a8, %p8 = gpu.shuffle xor %s16, %o8, %w : f32
      %s8 = arith.addf %s16, %a8 : f32
      %a4, %p4 = gpu.shuffle xor %s8, %o4, %w : f32
      %s4 = arith.addf %s8, %a4 : f32
      %a2, %p2 = gpu.shuffle xor %s4, %o2, %w : f32
      %s2 = arith.addf %s4, %a2 : f32
      %a1, %p1 = gpu.shuffle xor %s2, %o1, %w : f32
      %s1 = arith.addf %s2, %a1 : f32
      %lane = arith.remui %t, %c32 : index
      %warp = arith.divui %t, %c32 : index
      %leads = arith.cmpi eq, %lane, %c0 : index
      scf.if %leads {
        memref.store %s1, %slots[%warp] : memref<3xf32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %q0 = memref.load %slots[%c0] : memref<3xf32, #gpu.address_space<workgroup>>
      %q1 = memref.load %slots[%c1] : memref<3xf32, #gpu.address_space<workgroup>>
      %q2 = memref.load %slots[%c2] : memref<3xf32, #gpu.address_space<workgroup>>
      %q01 = arith.addf %q0, %q1 : f32
      %sum = arith.addf %q01, %q2 : f32
      %perN = arith.constant 5.20833349e-03 : f32
      %eps = arith.constant 1.0e-5 : f32
      %mean = arith.mulf %sum, %perN : f32
      %q = arith.addf %mean, %eps : f32
      %r = math.rsqrt %q : f32
      %rv = vector.broadcast %r : f32 to vector<2xf32>
      %n = arith.mulf %v, %rv : vector<2xf32>
      %gv = vector.load %g[%j] {alignment = 8} : memref<192xf32>, vector<2xf32>
      %out = arith.mulf %n, %gv : vector<2xf32>
      vector.store %out, %y[%row, %j] {alignment = 8} : memref<?x192xf32>, vector<2xf32>
      gpu.return
    }
  }

  func.func private @fill(%x: memref<?x192xf32>, %rows: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %n = arith.constant 192 : index
    scf.for %i = %c0 to %rows step %c1 {
      scf.for %j = %c0 to %n step %c1 {
        %s = arith.addi %i, %j : index
        %m = arith.remui %s, %c7 : index
        %k = arith.index_cast %m : index to i32
        %f = arith.sitofp %k : i32 to f32
        memref.store %f, %x[%i, %j] : memref<?x192xf32>
      }
    }
    return
  }

  // The largest difference from x * 2 / sqrt(mean of squares + eps), in plain loops.
  func.func private @error(%x: memref<?x192xf32>, %y: memref<?x192xf32>, %rows: index) -> f32 {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 192 : index
    %zero = arith.constant 0.0 : f32
    %two = arith.constant 2.0 : f32
    %nf = arith.constant 192.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %worst = scf.for %i = %c0 to %rows step %c1 iter_args(%w = %zero) -> f32 {
      %sum = scf.for %j = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 {
        %v = memref.load %x[%i, %j] : memref<?x192xf32>
        %s = arith.mulf %v, %v : f32
        %b = arith.addf %a, %s : f32
        scf.yield %b : f32
      }
      %mean = arith.divf %sum, %nf : f32
      %q = arith.addf %mean, %eps : f32
      %root = math.sqrt %q : f32
      %e = scf.for %j = %c0 to %n step %c1 iter_args(%a = %w) -> f32 {
        %v = memref.load %x[%i, %j] : memref<?x192xf32>
        %scaled = arith.mulf %v, %two : f32
        %want = arith.divf %scaled, %root : f32
        %got = memref.load %y[%i, %j] : memref<?x192xf32>
        %d = arith.subf %want, %got : f32
        %abs = math.absf %d : f32
        // A NaN stays.
        %max = arith.maximumf %a, %abs : f32
        scf.yield %max : f32
      }
      scf.yield %e : f32
    }
    return %worst : f32
  }

  // CHECK: {{^(0|[0-9.]+e-0[78])$}}
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c96 = arith.constant 96 : index
    %rows = arith.constant 5 : index
    %two = arith.constant 2.0 : f32
    %hx = memref.alloc(%rows) : memref<?x192xf32>
    %hg = memref.alloc() : memref<192xf32>
    %hy = memref.alloc(%rows) : memref<?x192xf32>
    func.call @fill(%hx, %rows) : (memref<?x192xf32>, index) -> ()
    linalg.fill ins(%two : f32) outs(%hg : memref<192xf32>)
    %t0 = gpu.wait async
    %x, %t1 = gpu.alloc async [%t0] (%rows) : memref<?x192xf32>
    %g, %t2 = gpu.alloc async [%t1] () : memref<192xf32>
    %y, %t3 = gpu.alloc async [%t2] (%rows) : memref<?x192xf32>
    %t4 = gpu.memcpy async [%t3] %x, %hx : memref<?x192xf32>, memref<?x192xf32>
    %t5 = gpu.memcpy async [%t4] %g, %hg : memref<192xf32>, memref<192xf32>
    %t6 = gpu.launch_func async [%t5] @device::@rms blocks in (%rows, %c1, %c1) threads in (%c96, %c1, %c1)
        args(%x : memref<?x192xf32>, %g : memref<192xf32>, %y : memref<?x192xf32>)
    %t7 = gpu.memcpy async [%t6] %hy, %y : memref<?x192xf32>, memref<?x192xf32>
    gpu.wait [%t7]
    %e = func.call @error(%hx, %hy, %rows) : (memref<?x192xf32>, memref<?x192xf32>, index) -> f32
    func.call @printF32(%e) : (f32) -> ()
    func.call @printNewline() : () -> ()
    return
  }
}
