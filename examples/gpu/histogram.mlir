// Counts of 1000 numbers in 16 bins, by 4 blocks: each counts its part in shared
// memory and adds it to the result. `@careless` forgets that shared memory holds
// anything until somebody has written to it, and that other blocks add too.
// docs/Emulator.md says how to run them.
module attributes {gpu.container_module} {
  gpu.module @device {
    // Bins are the numbers' remainders by 16.
    gpu.func @count(%x: memref<1000xi32>, %bins: memref<16xi32>)
        workgroup(%mine: memref<16xi32, #gpu.address_space<workgroup>>) kernel {
      %c16 = arith.constant 16 : index
      %c250 = arith.constant 250 : index
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %t = gpu.thread_id x
      %threads = gpu.block_dim x
      %b = gpu.block_id x
      %first = arith.muli %b, %c250 : index
      %end = arith.addi %first, %c250 : index
      %start = arith.addi %first, %t : index
      %owns = arith.cmpi ult, %t, %c16 : index
      scf.if %owns {
        memref.store %zero, %mine[%t] : memref<16xi32, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      scf.for %i = %start to %end step %threads {
        %v = memref.load %x[%i] : memref<1000xi32>
        %n = arith.index_castui %v : i32 to index
        %bin = arith.remui %n, %c16 : index
        %old = memref.atomic_rmw addi %one, %mine[%bin] : (i32, memref<16xi32, #gpu.address_space<workgroup>>) -> i32
      }
      gpu.barrier
      scf.if %owns {
        %n = memref.load %mine[%t] : memref<16xi32, #gpu.address_space<workgroup>>
        %old = memref.atomic_rmw addi %n, %bins[%t] : (i32, memref<16xi32>) -> i32
      }
      gpu.return
    }

    gpu.func @careless(%x: memref<1000xi32>, %bins: memref<16xi32>)
        workgroup(%mine: memref<16xi32, #gpu.address_space<workgroup>>) kernel {
      %c16 = arith.constant 16 : index
      %c250 = arith.constant 250 : index
      %one = arith.constant 1 : i32
      %t = gpu.thread_id x
      %threads = gpu.block_dim x
      %b = gpu.block_id x
      %first = arith.muli %b, %c250 : index
      %end = arith.addi %first, %c250 : index
      %start = arith.addi %first, %t : index
      %owns = arith.cmpi ult, %t, %c16 : index
      scf.for %i = %start to %end step %threads {
        %v = memref.load %x[%i] : memref<1000xi32>
        %n = arith.index_castui %v : i32 to index
        %bin = arith.remui %n, %c16 : index
        %old = memref.atomic_rmw addi %one, %mine[%bin] : (i32, memref<16xi32, #gpu.address_space<workgroup>>) -> i32
      }
      gpu.barrier
      scf.if %owns {
        %n = memref.load %mine[%t] : memref<16xi32, #gpu.address_space<workgroup>>
        %m = memref.load %bins[%t] : memref<16xi32>
        %s = arith.addi %n, %m : i32
        memref.store %s, %bins[%t] : memref<16xi32>
      }
      gpu.return
    }
  }

  func.func private @printMemrefI32(%p: memref<*xi32>) attributes {llvm.emit_c_interface}

  // The numbers 0, 3, 6 .. and room for the bins, on the device.
  func.func @prepare() -> (memref<1000xi32>, memref<16xi32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c1000 = arith.constant 1000 : index
    %zero = arith.constant 0 : i32
    %h = memref.alloc() : memref<1000xi32>
    scf.for %i = %c0 to %c1000 step %c1 {
      %n = arith.muli %i, %c3 : index
      %v = arith.index_cast %n : index to i32
      memref.store %v, %h[%i] : memref<1000xi32>
    }
    %x = gpu.alloc () : memref<1000xi32>
    %bins = gpu.alloc () : memref<16xi32>
    gpu.memcpy %x, %h : memref<1000xi32>, memref<1000xi32>
    gpu.memset %bins, %zero : memref<16xi32>, i32
    return %x, %bins : memref<1000xi32>, memref<16xi32>
  }
  func.func @show(%bins: memref<16xi32>) {
    %h = memref.alloc() : memref<16xi32>
    gpu.memcpy %h, %bins : memref<16xi32>, memref<16xi32>
    %u = memref.cast %h : memref<16xi32> to memref<*xi32>
    call @printMemrefI32(%u) : (memref<*xi32>) -> ()
    return
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %x, %bins = call @prepare() : () -> (memref<1000xi32>, memref<16xi32>)
    gpu.launch_func @device::@count blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%x : memref<1000xi32>, %bins : memref<16xi32>)
    call @show(%bins) : (memref<16xi32>) -> ()
    return
  }
  func.func @faulty() {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %x, %bins = call @prepare() : () -> (memref<1000xi32>, memref<16xi32>)
    gpu.launch_func @device::@careless blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1) args(%x : memref<1000xi32>, %bins : memref<16xi32>)
    call @show(%bins) : (memref<16xi32>) -> ()
    return
  }
}
