// RUN: norm-opt %s --norm-align-stack | FileCheck %s

// CHECK: llvm.func @wide({{.*}}) attributes {passthrough = ["noinline", "stackrealign"]}
llvm.func @wide(%p: !llvm.ptr) attributes {passthrough = ["noinline"]} {
  %0 = llvm.load %p : !llvm.ptr -> vector<8xf32>
  llvm.store %0, %p : vector<8xf32>, !llvm.ptr
  llvm.return
}

// CHECK: llvm.func @narrow({{.*}}) {
llvm.func @narrow(%p: !llvm.ptr) {
  %0 = llvm.load %p : !llvm.ptr -> vector<4xf32>
  llvm.store %0, %p : vector<4xf32>, !llvm.ptr
  llvm.return
}
