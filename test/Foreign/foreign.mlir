// An instrumented plugin needs an instrumented norm-opt, which this is; the
// system's tools are not used here.

// RUN: norm-opt %s --load-dialect-plugin=%norm_lib_dir/ForeignPlugin.so \
// RUN:   --norm-configure --norm-tile | FileCheck %s --check-prefix=TILE
// RUN: norm-opt %s --load-dialect-plugin=%norm_lib_dir/ForeignPlugin.so \
// RUN:   --norm-lower-to-linalg | FileCheck %s --check-prefix=LINALG
// RUN: norm-opt %s --load-dialect-plugin=%norm_lib_dir/ForeignPlugin.so \
// RUN:   --norm-report | FileCheck %s --check-prefix=REPORT

// And executed: tiled, vectorized, then run as any tile is.
// RUN: rm -rf %t && mkdir %t
// RUN: norm-opt %s --load-dialect-plugin=%norm_lib_dir/ForeignPlugin.so \
// RUN:   --norm-configure --norm-tile --norm-lower-to-linalg --norm-vectorize -o %t/tiles.mlir
// RUN: norm-opt %s --load-dialect-plugin=%norm_lib_dir/ForeignPlugin.so \
// RUN:   --norm-lower-to-reference -o %t/reference.mlir
// RUN: %python %S/../Tools/Inputs/npy.py %t/x.npy '<f4' 2x3 1 2 3 4 6 11
// RUN: %python %S/../Tools/Inputs/npy.py %t/g.npy '<f4' 3 0 1 -1
// RUN: norm-run %t/tiles.mlir --entry=own --input=%t/g.npy --input=%t/x.npy | FileCheck %s --check-prefix=OWN
// RUN: norm-run %t/tiles.mlir --entry=external --input=%t/x.npy | FileCheck %s --check-prefix=EXTERNAL
// RUN: norm-run %t/reference.mlir --target=reference --entry=own --input=%t/g.npy --input=%t/x.npy | FileCheck %s --check-prefix=OWN
// RUN: norm-run %t/reference.mlir --target=reference --entry=external --input=%t/x.npy | FileCheck %s --check-prefix=EXTERNAL

// TILE-LABEL: func @own
// TILE: scf.forall
// TILE: foreign.rms %{{.+}} times %{{.+}} : tensor<2x3xf32> times tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>
// TILE: norm.strategy = #norm.cpu<
// LINALG-LABEL: func @own
// LINALG-NOT: foreign.
// LINALG: linalg.generic
// LINALG-LABEL: func @external
// LINALG-NOT: foreign.
// REPORT: foreign.rms
// REPORT: foreign.centre

// x/sqrt(mean(x^2) + 0.5) * (1 + g)
// OWN:      result 0: 2x3 of f32
// OWN-NEXT:   0.43994{{[0-9]*}} 1.75976{{[0-9]*}} 0
// OWN-NEXT:   0.52447{{[0-9]*}} 1.57341{{[0-9]*}} 0
// OWN-NEXT: result 1: 2 of f32
// OWN-NEXT:   0.43994{{[0-9]*}} 0.13111{{[0-9]*}}
func.func @own(%g: tensor<3xf32>, %x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>) {
  %y, %r = foreign.rms %x times %g : tensor<2x3xf32> times tensor<3xf32> -> tensor<2x3xf32>, tensor<2xf32>
  return %y, %r : tensor<2x3xf32>, tensor<2xf32>
}

// EXTERNAL:      result 0: 2x3 of f32
// EXTERNAL-NEXT:   -1.2247{{[0-9]*}} 0 1.2247{{[0-9]*}}
// EXTERNAL-NEXT:   -1.0190{{[0-9]*}} -0.339{{[0-9]*}} 1.3587{{[0-9]*}}
func.func @external(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = foreign.centre %x : tensor<2x3xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
