// RUN: norm-opt %s --norm-mask-integers | FileCheck %s

// CHECK-LABEL: llvm.func @narrow
// CHECK: %[[PASS:.*]] = llvm.bitcast %{{.*}} : vector<8xbf16> to vector<8xi16>
// CHECK: %[[LOADED:.*]] = llvm.intr.masked.load %{{.*}}, %{{.*}}, %[[PASS]] {{.*}} -> vector<8xi16>
// CHECK: %[[FLOATS:.*]] = llvm.bitcast %[[LOADED]] : vector<8xi16> to vector<8xbf16>
// CHECK: %[[STORED:.*]] = llvm.bitcast %[[FLOATS]] : vector<8xbf16> to vector<8xi16>
// CHECK: llvm.intr.masked.store %[[STORED]]
llvm.func @narrow(%p: !llvm.ptr, %m: vector<8xi1>, %v: vector<8xbf16>) {
  %0 = llvm.intr.masked.load %p, %m, %v {alignment = 2 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xbf16>) -> vector<8xbf16>
  llvm.intr.masked.store %0, %p, %m {alignment = 2 : i32} : vector<8xbf16>, vector<8xi1> into !llvm.ptr
  llvm.return
}

// CHECK-LABEL: llvm.func @wide
// CHECK-NOT: bitcast
llvm.func @wide(%p: !llvm.ptr, %m: vector<8xi1>, %v: vector<8xf32>) {
  llvm.intr.masked.store %v, %p, %m {alignment = 4 : i32} : vector<8xf32>, vector<8xi1> into !llvm.ptr
  llvm.return
}
