// Sums of rows, one block of 64 threads for each: a tree in shared memory.
// @main is right; @hasty is the same without the barrier between two steps.
module attributes {gpu.container_module} {
  func.func private @printMemrefF32(memref<*xf32>)

  gpu.module @device {
    gpu.func @sums(%x: memref<?x64xf32>, %y: memref<?xf32>)
        workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
      %row = gpu.block_id x
      %t = gpu.thread_id x
      %v = memref.load %x[%row, %t] : memref<?x64xf32>
      memref.store %v, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c6 = arith.constant 6 : index
      %c32 = arith.constant 32 : index
      scf.for %step = %c0 to %c6 step %c1 {
        %half = arith.shrui %c32, %step : index
        %adds = arith.cmpi ult, %t, %half : index
        scf.if %adds {
          %other = arith.addi %t, %half : index
          %a = memref.load %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
          %b = memref.load %s[%other] : memref<64xf32, #gpu.address_space<workgroup>>
          %c = arith.addf %a, %b : f32
          memref.store %c, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
        }
        gpu.barrier
      }
      %first = arith.cmpi eq, %t, %c0 : index
      scf.if %first {
        %sum = memref.load %s[%c0] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %sum, %y[%row] : memref<?xf32>
      }
      gpu.return
    }

    gpu.func @hasty_sums(%x: memref<?x64xf32>, %y: memref<?xf32>)
        workgroup(%s: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
      %row = gpu.block_id x
      %t = gpu.thread_id x
      %v = memref.load %x[%row, %t] : memref<?x64xf32>
      memref.store %v, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c6 = arith.constant 6 : index
      %c32 = arith.constant 32 : index
      scf.for %step = %c0 to %c6 step %c1 {
        %half = arith.shrui %c32, %step : index
        %adds = arith.cmpi ult, %t, %half : index
        scf.if %adds {
          %other = arith.addi %t, %half : index
          %a = memref.load %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
          %b = memref.load %s[%other] : memref<64xf32, #gpu.address_space<workgroup>>
          %c = arith.addf %a, %b : f32
          memref.store %c, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>
        }
      }
      %first = arith.cmpi eq, %t, %c0 : index
      scf.if %first {
        %sum = memref.load %s[%c0] : memref<64xf32, #gpu.address_space<workgroup>>
        memref.store %sum, %y[%row] : memref<?xf32>
      }
      gpu.return
    }
  }

  // Three rows of ones, twos and threes.
  func.func private @rows(%x: memref<?x64xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    scf.for %i = %c0 to %c3 step %c1 {
      %n = arith.addi %i, %c1 : index
      %k = arith.index_cast %n : index to i32
      %f = arith.sitofp %k : i32 to f32
      scf.for %j = %c0 to %c64 step %c1 {
        memref.store %f, %x[%i, %j] : memref<?x64xf32>
      }
    }
    return
  }

  func.func @main() {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %hx = memref.alloc(%c3) : memref<?x64xf32>
    %hy = memref.alloc(%c3) : memref<?xf32>
    call @rows(%hx) : (memref<?x64xf32>) -> ()
    %t0 = gpu.wait async
    %x, %t1 = gpu.alloc async [%t0] (%c3) : memref<?x64xf32>
    %y, %t2 = gpu.alloc async [%t1] (%c3) : memref<?xf32>
    %t3 = gpu.memcpy async [%t2] %x, %hx : memref<?x64xf32>, memref<?x64xf32>
    %t4 = gpu.launch_func async [%t3] @device::@sums blocks in (%c3, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?x64xf32>, %y : memref<?xf32>)
    %t5 = gpu.memcpy async [%t4] %hy, %y : memref<?xf32>, memref<?xf32>
    gpu.wait [%t5]
    %u = memref.cast %hy : memref<?xf32> to memref<*xf32>
    call @printMemrefF32(%u) : (memref<*xf32>) -> ()
    return
  }

  func.func @hasty() {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c64 = arith.constant 64 : index
    %hx = memref.alloc(%c3) : memref<?x64xf32>
    %hy = memref.alloc(%c3) : memref<?xf32>
    call @rows(%hx) : (memref<?x64xf32>) -> ()
    %t0 = gpu.wait async
    %x, %t1 = gpu.alloc async [%t0] (%c3) : memref<?x64xf32>
    %y, %t2 = gpu.alloc async [%t1] (%c3) : memref<?xf32>
    %t3 = gpu.memcpy async [%t2] %x, %hx : memref<?x64xf32>, memref<?x64xf32>
    %t4 = gpu.launch_func async [%t3] @device::@hasty_sums blocks in (%c3, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<?x64xf32>, %y : memref<?xf32>)
    gpu.wait [%t4]
    return
  }
}
