// RUN: norm-opt %s --norm-mask-integers=words=true --split-input-file | FileCheck %s

// Words under a mask of their own, and the element that is left over: the mask
// leaves the first %n lanes.
// CHECK-LABEL: llvm.func @run_time
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[N:[^,]*]]: i32
// CHECK: %[[WORDS:.*]] = llvm.lshr %[[N]], %{{.*}}
// CHECK: %[[REST:.*]] = llvm.and %[[N]], %{{.*}}
// CHECK: %[[WHOLE:.*]] = llvm.intr.masked.load %[[P]], %{{.*}} {alignment = 2 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi32>) -> vector<8xi32>
// CHECK: %[[AT:.*]] = llvm.getelementptr %[[P]][%[[WORDS]]] : (!llvm.ptr, i32) -> !llvm.ptr, i32
// CHECK: llvm.intr.masked.load %[[AT]], %{{.*}} -> vector<1xi16>
// CHECK: llvm.select %{{.*}}, %{{.*}}, %[[WHOLE]] : vector<8xi1>, vector<8xi32>
// CHECK: llvm.intr.masked.store %{{.*}} : vector<8xi32>, vector<8xi1> into !llvm.ptr
// CHECK: llvm.extractelement
// CHECK: llvm.intr.masked.store %{{.*}} : vector<1xi16>, vector<1xi1> into !llvm.ptr
// CHECK-NOT: vector<16xi1>, vector<16xi16>
llvm.func @run_time(%p: !llvm.ptr, %n: i32, %q: !llvm.ptr) {
  %iota = llvm.mlir.constant(dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]> : vector<16xi32>) : vector<16xi32>
  %zero = llvm.mlir.constant(dense<0.0> : vector<16xbf16>) : vector<16xbf16>
  %none = llvm.mlir.poison : vector<16xi32>
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %first = llvm.insertelement %n, %none[%c0 : i32] : vector<16xi32>
  %all = llvm.shufflevector %first, %none [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] : vector<16xi32>
  %mask = llvm.icmp "sgt" %all, %iota : vector<16xi32>
  %v = llvm.intr.masked.load %p, %mask, %zero {alignment = 2 : i32} : (!llvm.ptr, vector<16xi1>, vector<16xbf16>) -> vector<16xbf16>
  llvm.intr.masked.store %v, %q, %mask {alignment = 2 : i32} : vector<16xbf16>, vector<16xi1> into !llvm.ptr
  llvm.return
}

// -----

// A known number: pieces, and no mask.
// CHECK-LABEL: llvm.func @known
// CHECK-NOT: masked
// CHECK: llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> vector<4xi8>
// CHECK: llvm.getelementptr %{{.*}}[4] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> vector<2xi8>
// CHECK: llvm.getelementptr %{{.*}}[6] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr -> vector<1xi8>
// CHECK: llvm.store %{{.*}} {alignment = 1 : i64} : vector<4xi8>, !llvm.ptr
// CHECK: llvm.store %{{.*}} {alignment = 1 : i64} : vector<2xi8>, !llvm.ptr
// CHECK: llvm.store %{{.*}} {alignment = 1 : i64} : vector<1xi8>, !llvm.ptr
llvm.func @known(%p: !llvm.ptr, %q: !llvm.ptr) {
  %zero = llvm.mlir.constant(dense<0> : vector<8xi8>) : vector<8xi8>
  %mask = llvm.mlir.constant(dense<[true, true, true, true, true, true, true, false]> : vector<8xi1>) : vector<8xi1>
  %v = llvm.intr.masked.load %p, %mask, %zero {alignment = 1 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi8>) -> vector<8xi8>
  llvm.intr.masked.store %v, %q, %mask {alignment = 1 : i32} : vector<8xi8>, vector<8xi1> into !llvm.ptr
  llvm.return
}

// -----

// Not the first lanes, lanes that nothing is known of, other values for what is
// not loaded, and whole words stay as they are.
// CHECK-LABEL: llvm.func @others
// CHECK-COUNT-4: llvm.intr.masked.load
// CHECK-SAME: vector<8xi32>
// CHECK-NOT: llvm.intr.masked.load
llvm.func @others(%p: !llvm.ptr, %lanes: vector<8xi1>, %other: vector<8xi16>, %words: vector<8xi32>) {
  %zero = llvm.mlir.constant(dense<0> : vector<8xi16>) : vector<8xi16>
  %last = llvm.mlir.constant(dense<[false, true, true, true, true, true, true, true]> : vector<8xi1>) : vector<8xi1>
  %first = llvm.mlir.constant(dense<[true, true, true, false, false, false, false, false]> : vector<8xi1>) : vector<8xi1>
  %0 = llvm.intr.masked.load %p, %last, %zero {alignment = 2 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi16>) -> vector<8xi16>
  %1 = llvm.intr.masked.load %p, %lanes, %zero {alignment = 2 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi16>) -> vector<8xi16>
  %2 = llvm.intr.masked.load %p, %first, %other {alignment = 2 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi16>) -> vector<8xi16>
  %3 = llvm.intr.masked.load %p, %first, %words {alignment = 4 : i32} : (!llvm.ptr, vector<8xi1>, vector<8xi32>) -> vector<8xi32>
  llvm.return
}
