// RUN: norm-opt %s --split-input-file --norm-map-to-registers="isa=avx512" --cse | FileCheck %s
// RUN: norm-opt %s --split-input-file --norm-map-to-registers="isa=x86" --cse | FileCheck %s --check-prefix=X86
// RUN: norm-opt %s --split-input-file --norm-map-to-registers="isa=any" | FileCheck %s --check-prefix=ORDER

// A word of two bf16 elements gives the even one by a shift and the odd one by a
// mask. Sums are kept apart and take their order after the sweep; what is stored
// takes it when it has 16 bits again.
// CHECK-LABEL: func @row
// CHECK: %[[SUMS:.*]]:2 = scf.for %{{.*}} iter_args(%[[E:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}}) -> (vector<2x16xf32>, vector<2x16xf32>)
// CHECK:   %[[WORDS:.*]] = vector.bitcast %{{.*}} : vector<2x32xbf16> to vector<2x16xi32>
// CHECK:   %[[UP:.*]] = arith.shli %[[WORDS]], %{{.*}}
// CHECK:   %[[MASKED:.*]] = arith.andi %[[WORDS]], %{{.*}}
// CHECK-DAG: %[[EVEN:.*]] = arith.bitcast %[[UP]] : vector<2x16xi32> to vector<2x16xf32>
// CHECK-DAG: %[[ODD:.*]] = arith.bitcast %[[MASKED]] : vector<2x16xi32> to vector<2x16xf32>
// CHECK-DAG: %[[F:.*]] = math.fma %[[EVEN]], %[[EVEN]], %[[E]]
// CHECK-DAG: %[[G:.*]] = math.fma %[[ODD]], %[[ODD]], %[[O]]
// CHECK:   scf.yield %[[F]], %[[G]]
// CHECK: vector.interleave %[[SUMS]]#0, %[[SUMS]]#1 : vector<2x16xf32> -> vector<2x32xf32>
// CHECK: scf.for
// CHECK-NOT: interleave {{.*}}f32
// CHECK: arith.truncf {{.*}} : vector<2x16xf32> to vector<2x16xbf16>
// CHECK-COUNT-2: vector.interleave {{.*}} : vector<16xbf16> -> vector<32xbf16>
// CHECK-NOT: interleave
// CHECK: vector.transfer_write
// Without AVX-512, halves of words are put together as they are rounded.
// X86-LABEL: func @row
// X86: vector.interleave {{.*}} : vector<2x16xf32> -> vector<2x32xf32>
// X86: scf.for
// X86: %[[T0:.*]] = arith.truncf %{{.*}} : vector<2x16xf32> to vector<2x16xbf16>
// X86: %[[T1:.*]] = arith.truncf %{{.*}} : vector<2x16xf32> to vector<2x16xbf16>
// X86: %[[E0:.*]] = vector.extract %[[T0]][0]
// X86: %[[O0:.*]] = vector.extract %[[T1]][0]
// X86: %[[EB:.*]] = arith.bitcast %[[E0]] : vector<16xbf16> to vector<16xi16>
// X86: %[[LOW:.*]] = arith.extui %[[EB]] : vector<16xi16> to vector<16xi32>
// X86: %[[OB:.*]] = arith.bitcast %[[O0]] : vector<16xbf16> to vector<16xi16>
// X86: %[[OW:.*]] = arith.extui %[[OB]] : vector<16xi16> to vector<16xi32>
// X86: %[[HIGH:.*]] = arith.shli %[[OW]], %{{.*}} : vector<16xi32>
// X86: %[[WORDS:.*]] = arith.ori %[[LOW]], %[[HIGH]] : vector<16xi32>
// X86: vector.bitcast %[[WORDS]] : vector<16xi32> to vector<32xbf16>
// X86: vector.transfer_write
// ORDER-LABEL: func @row
// ORDER-NOT: interleave
// ORDER: return
func.func @row(%x: memref<64x4096xbf16>, %g: memref<4096xbf16>, %y: memref<64x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c4096 = arith.constant 4096 : index
  %z = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<-0.0> : vector<2x32xf32>
  %zero = arith.constant dense<0.0> : vector<2xf32>
  scf.forall (%i) = (0) to (64) step (2) {
    %s = scf.for %j = %c0 to %c4096 step %c32 iter_args(%acc = %zeros) -> vector<2x32xf32> {
      %a = vector.transfer_read %x[%i, %j], %z {in_bounds = [true, true]} : memref<64x4096xbf16>, vector<2x32xbf16>
      %b = arith.extf %a : vector<2x32xbf16> to vector<2x32xf32>
      %c = math.fma %b, %b, %acc : vector<2x32xf32>
      scf.yield %c : vector<2x32xf32>
    }
    %m = vector.multi_reduction <add>, %s, %zero [1] : vector<2x32xf32> to vector<2xf32>
    %n = vector.shape_cast %m : vector<2xf32> to vector<2x1xf32>
    %o = vector.broadcast %n : vector<2x1xf32> to vector<2x32xf32>
    scf.for %j = %c0 to %c4096 step %c32 {
      %a = vector.transfer_read %x[%i, %j], %z {in_bounds = [true, true]} : memref<64x4096xbf16>, vector<2x32xbf16>
      %b = arith.extf %a : vector<2x32xbf16> to vector<2x32xf32>
      %c = vector.transfer_read %g[%j], %z {in_bounds = [true]} : memref<4096xbf16>, vector<32xbf16>
      %d = arith.extf %c : vector<32xbf16> to vector<32xf32>
      %e = vector.broadcast %d : vector<32xf32> to vector<2x32xf32>
      %f = math.fma %b, %o, %e : vector<2x32xf32>
      %t = arith.truncf %f : vector<2x32xf32> to vector<2x32xbf16>
      vector.transfer_write %t, %y[%i, %j] {in_bounds = [true, true]} : vector<2x32xbf16>, memref<64x4096xbf16>
    }
  } {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = true>}
  return
}

// -----

// A gain in f32 is taken apart, which two rows are worth. With one row, and a
// result in f32, as much would change its order as is extended.
// CHECK-LABEL: func @mixed
// CHECK: vector.deinterleave %{{.*}} : vector<32xf32> -> vector<16xf32>
// CHECK: vector.interleave
// CHECK-LABEL: func @wide
// CHECK-NOT: interleave
// CHECK: return
func.func @mixed(%x: memref<64x4096xbf16>, %g: memref<4096xf32>, %y: memref<64x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c4096 = arith.constant 4096 : index
  %z = arith.constant 0.0 : bf16
  %w = arith.constant 0.0 : f32
  scf.forall (%i) = (0) to (64) step (2) {
    scf.for %j = %c0 to %c4096 step %c32 {
      %a = vector.transfer_read %x[%i, %j], %z {in_bounds = [true, true]} : memref<64x4096xbf16>, vector<2x32xbf16>
      %b = arith.extf %a : vector<2x32xbf16> to vector<2x32xf32>
      %c = vector.transfer_read %g[%j], %w {in_bounds = [true]} : memref<4096xf32>, vector<32xf32>
      %e = vector.broadcast %c : vector<32xf32> to vector<2x32xf32>
      %f = arith.mulf %b, %e : vector<2x32xf32>
      %t = arith.truncf %f : vector<2x32xf32> to vector<2x32xbf16>
      vector.transfer_write %t, %y[%i, %j] {in_bounds = [true, true]} : vector<2x32xbf16>, memref<64x4096xbf16>
    }
  } {norm.strategy = #norm.cpu<rows = 2, columns = 32, parallel = true>}
  return
}

func.func @wide(%x: memref<64x4096xbf16>, %y: memref<64x4096xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c4096 = arith.constant 4096 : index
  %z = arith.constant 0.0 : bf16
  scf.forall (%i) = (0) to (64) step (1) {
    scf.for %j = %c0 to %c4096 step %c32 {
      %a = vector.transfer_read %x[%i, %j], %z {in_bounds = [true]} : memref<64x4096xbf16>, vector<32xbf16>
      %b = arith.extf %a : vector<32xbf16> to vector<32xf32>
      %f = arith.mulf %b, %b : vector<32xf32>
      vector.transfer_write %f, %y[%i, %j] {in_bounds = [true]} : vector<32xf32>, memref<64x4096xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 32, parallel = true>}
  return
}
