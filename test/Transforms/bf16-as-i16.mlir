// RUN: norm-opt %s --norm-bf16-as-i16 --split-input-file | FileCheck %s

// CHECK-LABEL: llvm.func @moved
// CHECK: llvm.mlir.constant(16256 : i16) : i16
// CHECK: llvm.load %{{.*}} : !llvm.ptr -> vector<4xi16>
// CHECK: llvm.insertelement %{{.*}} : vector<4xi16>
// CHECK: llvm.store %{{.*}} : vector<4xi16>, !llvm.ptr
// CHECK-NOT: bf16
llvm.func @moved(%p: !llvm.ptr, %i: i32) {
  %one = llvm.mlir.constant(1.0 : bf16) : bf16
  %v = llvm.load %p : !llvm.ptr -> vector<4xbf16>
  %w = llvm.insertelement %one, %v[%i : i32] : vector<4xbf16>
  llvm.store %w, %p : vector<4xbf16>, !llvm.ptr
  llvm.return
}

// -----

// CHECK-LABEL: llvm.func @computes
// CHECK: llvm.fadd %{{.*}} : bf16
llvm.func @computes(%p: !llvm.ptr) {
  %a = llvm.load %p : !llvm.ptr -> bf16
  %b = llvm.fadd %a, %a : bf16
  llvm.store %b, %p : bf16, !llvm.ptr
  llvm.return
}

// -----

// CHECK-LABEL: llvm.func @passes
// CHECK-SAME: bf16
llvm.func @passes(%a: bf16, %p: !llvm.ptr) {
  llvm.store %a, %p : bf16, !llvm.ptr
  llvm.return
}
