// A module with scalars alone: no op of it loads the tensor dialect.
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/Inputs/npy.py %t/s.npy '<f4' scalar 1
// RUN: norm-run %s --input=%t/s.npy | FileCheck %s

// CHECK: result 0: scalar of f32
func.func @main(%s: f32) -> f32 {
  return %s : f32
}
