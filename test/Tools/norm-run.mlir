// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/Inputs/npy.py %t/x.npy '<f4' 2x3 1 2 3 4 6 11
// RUN: %python %S/Inputs/npy.py %t/xf.npy '<f4' 2x3 --order=F 1 4 2 6 3 11
// RUN: %python %S/Inputs/npy.py %t/g.npy '<f4' 3 1 2 4
// RUN: %python %S/Inputs/npy.py %t/b.npy '<f4' 3 0 0.5 -8
// RUN: %python %S/Inputs/npy.py %t/n.npy '<i8' scalar 1
// RUN: %python %S/Inputs/npy.py %t/m.npy '|b1' 3 1 0 1
// RUN: %python %S/Inputs/npy.py %t/h.npy '<f2' 3 1 0.5 -2
// RUN: %python %S/Inputs/npy.py %t/w.npy '<u2' 3 0x3f80 0xc000 0x7f80
// RUN: %python %S/Inputs/npy.py %t/i.npy '<i4' 3 7 -8 9 --version=2
// RUN: %python %S/Inputs/npy.py %t/v.npy '<f8' 3 1.5 2.5 1e300 --version=3
// RUN: %python %S/Inputs/npy.py %t/e.npy '<f4' 0x3

// Both targets, and a Fortran array as a strided view.
// RUN: norm-run %s --entry=layer --input=%t/x.npy --input=%t/g.npy --input=%t/b.npy | FileCheck %s --check-prefix=LAYER
// RUN: norm-run %s --entry=layer --input=%t/xf.npy --input=%t/g.npy --input=%t/b.npy | FileCheck %s --check-prefix=LAYER
// RUN: norm-run %s --entry=layer --input=%t/x.npy --input=%t/g.npy --input=%t/b.npy --target=reference | FileCheck %s --check-prefix=LAYER
// RUN: norm-run %s --entry=layer --input %t/xf.npy --input %t/g.npy --input %t/b.npy --target reference | FileCheck %s --check-prefix=LAYER
// LAYER:      result 0: 2x3 of f32
// LAYER-NEXT:   -1.2247{{[0-9]*}} 0.5 -3.1010{{[0-9]*}}
// LAYER-NEXT:   -1.0190{{[0-9]*}} -0.17936{{[0-9]*}} -2.56507{{[0-9]*}}
// LAYER-NEXT: result 1: 2 of f32
// LAYER-NEXT:   2 7
func.func @layer(%x: tensor<2x3xf32>, %g: tensor<3xf32>, %b: tensor<3xf32>)
    -> (tensor<2x3xf32>, tensor<2xf32>) {
  %y, %m = norm.layer_norm %x scale(%g : tensor<3xf32>) shift(%b : tensor<3xf32>)
      axes [1] epsilon none : tensor<2x3xf32> -> tensor<2x3xf32> mean(tensor<2xf32>)
  return %y, %m : tensor<2x3xf32>, tensor<2xf32>
}

// Results are files, and files are inputs. One output may be left out.
// RUN: norm-run %s --entry=layer --input=%t/xf.npy --input=%t/g.npy --input=%t/b.npy --output=%t/y.npy | count 0
// RUN: norm-run %s --entry=negate --input=%t/y.npy | FileCheck %s --check-prefix=NEGATE
// NEGATE:      result 0: 2x3 of f32
// NEGATE-NEXT:   1.2247{{[0-9]*}} -0.5 3.1010{{[0-9]*}}
// NEGATE-NEXT:   1.0190{{[0-9]*}} 0.17936{{[0-9]*}} 2.56507{{[0-9]*}}

// Compiled for the extents of the arrays, whatever they are, and on the reference for any.
// RUN: norm-run %s --entry=any --input=%t/xf.npy --input=%t/g.npy --specialize --compare=reference --tolerance=1e-6 | FileCheck %s --check-prefix=KNOWN
// KNOWN: result 0: max abs error
// KNOWN-NOT: above
// RUN: norm-run %s --entry=any --input=%t/x.npy --input=%t/g.npy --specialize --threads=2 | FileCheck %s --check-prefix=ANY
// RUN: norm-run %s --entry=any --input=%t/e.npy --input=%t/g.npy --specialize | FileCheck %s --check-prefix=EMPTY --match-full-lines
// RUN: norm-run %s --entry=types --specialize --input=%t/n.npy --input=%t/m.npy --input=%t/h.npy --input=%t/w.npy --input=%t/i.npy --input=%t/v.npy | FileCheck %s --check-prefix=TYPES
// ANY:      result 0: 2x3 of f32
// ANY-NEXT:   0.46291{{[0-9]*}} 1.8516{{[0-9]*}} 5.5549{{[0-9]*}}
func.func @any(%x: tensor<?x?xf32>, %g: tensor<?xf32>) -> tensor<?x?xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<?xf32>) axes [1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// An empty array has an empty result.
// RUN: norm-run %s --entry=negate --input=%t/e.npy | FileCheck %s --check-prefix=EMPTY --match-full-lines
// EMPTY: result 0: 0x3 of f32
// EMPTY-NOT: {{.}}
func.func @negate(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<?x3xf32>
  %y = linalg.negf ins(%x : tensor<?x3xf32>) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}

// Scalars, all element types, results in the order of the function.
// RUN: norm-run %s --entry=types --input=%t/n.npy --input=%t/m.npy --input=%t/h.npy --input=%t/w.npy --input=%t/i.npy --input=%t/v.npy | FileCheck %s --check-prefix=TYPES
// TYPES:      result 0: 3 of f64
// TYPES-NEXT:   1.5 2.5 1e+300
// TYPES-NEXT: result 1: scalar of index
// TYPES-NEXT:   3
// TYPES-NEXT: result 2: 3 of i1
// TYPES-NEXT:   0 1 0
// TYPES-NEXT: result 3: 3 of f16
// TYPES-NEXT:   1 0.5 -2
// TYPES-NEXT: result 4: 3 of bf16
// TYPES-NEXT:   1 -2 inf
// TYPES-NEXT: result 5: 3 of i32
// TYPES-NEXT:   7 -8 9
// TYPES-NEXT: result 6: scalar of f32
// TYPES-NEXT:   0.25
func.func @types(%n: index, %m: tensor<3xi1>, %h: tensor<3xf16>, %w: tensor<3xbf16>,
                 %i: tensor<3xi32>, %v: tensor<3xf64>)
    -> (tensor<3xf64>, index, tensor<3xi1>, tensor<3xf16>, tensor<3xbf16>, tensor<3xi32>, f32) {
  %two = arith.constant 2 : index
  %sum = arith.addi %n, %two : index
  %true = arith.constant dense<true> : tensor<3xi1>
  %flipped = arith.xori %m, %true : tensor<3xi1>
  %quarter = arith.constant 0.25 : f32
  return %v, %sum, %flipped, %h, %w, %i, %quarter
      : tensor<3xf64>, index, tensor<3xi1>, tensor<3xf16>, tensor<3xbf16>, tensor<3xi32>, f32
}

// The extent of the result depends on a value, so a function is run for it.
// RUN: norm-run %s --entry=by_value --input=%t/x.npy --input=%t/n.npy | FileCheck %s --check-prefix=VALUE
// VALUE:      result 0: 1x2 of f32
// VALUE-NEXT:   6 11
func.func @by_value(%x: tensor<2x3xf32>, %n: index) -> tensor<?x2xf32> {
  %y = tensor.extract_slice %x[%n, 1] [%n, 2] [1, 1] : tensor<2x3xf32> to tensor<?x2xf32>
  return %y : tensor<?x2xf32>
}

// What models use: calls, concat, transpose, pad, powers and error functions.
// RUN: norm-run %s --entry=model --input=%t/x.npy | FileCheck %s --check-prefix=MODEL
// MODEL:      result 0: 4x3 of f32
// MODEL-NEXT:   1 16 0
// MODEL-NEXT:   4 36 0
// MODEL-NEXT:   9 121 0
// MODEL-NEXT:   0.8427{{[0-9]*}} 0.9953{{[0-9]*}} 0.9999{{[0-9]*}}
func.func @model(%x: tensor<2x3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %square = call @square(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %e = tensor.empty() : tensor<3x2xf32>
  %t = linalg.transpose ins(%square : tensor<2x3xf32>) outs(%e : tensor<3x2xf32>) permutation = [1, 0]
  %padded = tensor.pad %t low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<3x2xf32> to tensor<3x3xf32>
  %row = tensor.extract_slice %x[0, 0] [1, 3] [1, 1] : tensor<2x3xf32> to tensor<1x3xf32>
  %erf = math.erf %row : tensor<1x3xf32>
  %y = tensor.concat dim(0) %padded, %erf : (tensor<3x3xf32>, tensor<1x3xf32>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
func.func @square(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %two = arith.constant dense<2> : tensor<2x3xi64>
  %y = math.fpowi %x, %two : tensor<2x3xf32>, tensor<2x3xi64>
  return %y : tensor<2x3xf32>
}

// Errors per result; a third in f32 is not the reference's third.
// RUN: norm-run %s --entry=layer --input=%t/x.npy --input=%t/g.npy --input=%t/b.npy --compare=reference --tolerance=1e-6 | FileCheck %s --check-prefix=CLOSE
// CLOSE: result 0: max abs error {{[0-9.e+-]+}}, relative to max |reference| {{[0-9.e+-]+}}{{$}}
// CLOSE: result 1: max abs error 0, relative to max |reference| 0{{$}}
// RUN: not norm-run %s --entry=factor --input=%t/x.npy --compare=reference --tolerance=0 | FileCheck %s --check-prefix=FAR
// RUN: norm-run %s --entry=factor --input=%t/x.npy --target=reference --compare=reference --tolerance=0
// FAR: result 0: max abs error {{[1-9][0-9.]*e-[0-9]+}}, relative {{.*}}, above the tolerance 0
func.func @factor(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = norm.rms_norm %x axes [0, 1] epsilon outside_sqrt 1.0e-1 : tensor<2x3xf32> -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// RUN: norm-run %s --entry=factor --input=%t/x.npy --time=3 --threads=1 | FileCheck %s --check-prefix=TIME
// TIME:      time: median {{[0-9.]+}} us, min {{[0-9.]+}} us over 3 runs on 1 threads
// TIME-NEXT: copy of the same 0.000 MiB: median {{[0-9.]+}} us, min {{[0-9.]+}} us
// TIME-NEXT: ratio to the copy: {{[0-9.]+}}
// TIME-NEXT: heap allocations per run: 0; copies of buffers in the code: 0
// TIME-NEXT: compiled in {{[0-9.]+}} s

// A result that is an argument is copied, by either way in.
// RUN: norm-run %s --entry=same --input=%t/x.npy --time=3 | FileCheck %s --check-prefix=COPIES
// COPIES: copies of buffers in the code: {{[1-9]}}
func.func @same(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  return %x : tensor<2x3xf32>
}

// RUN: norm-run %s --entry=factor --emit=llvm | FileCheck %s --check-prefix=LLVM
// LLVM: llvm.func @_mlir_ciface_factor(

// RUN: norm-run --help | FileCheck %s --check-prefix=HELP
// HELP: usage: norm-run FILE
