// Each bad input is one error on stderr and exit status 1.
// RUN: rm -rf %t && mkdir %t
// RUN: %python %S/Inputs/npy.py %t/x.npy '<f4' 2x3 1
// RUN: %python %S/Inputs/npy.py %t/v.npy '<f4' 3 1
// RUN: %python %S/Inputs/npy.py %t/d.npy '<f8' 2x3 1

// The command line.
// RUN: not norm-run 2>&1 | FileCheck %s --check-prefix=NO-FILE
// NO-FILE: norm-run: error: expected a file, see norm-run --help
// RUN: not norm-run %s --frobnicate=1 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: norm-run: error: unknown option --frobnicate
// RUN: not norm-run %s --target=tpu 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: norm-run: error: expected cpu, reference or gpu-emulated for --target, got 'tpu'
// RUN: not norm-run %s --time=-1 2>&1 | FileCheck %s --check-prefix=TIME
// TIME: norm-run: error: expected a positive number for --time, got '-1'
// RUN: not norm-run %s --optimize=4 2>&1 | FileCheck %s --check-prefix=OPTIMIZE
// OPTIMIZE: norm-run: error: expected 0, 1, 2 or 3 for --optimize, got '4'
// RUN: not norm-run %s --tolerance=1e-6 2>&1 | FileCheck %s --check-prefix=TOLERANCE
// TOLERANCE: norm-run: error: expected --compare=reference with --tolerance
// RUN: not norm-run %s --compare=reference --tolerance=nan 2>&1 | FileCheck %s --check-prefix=NAN
// NAN: norm-run: error: expected a number >= 0 for --tolerance, got 'nan'

// The module and the function.
// RUN: not norm-run %t/none.mlir 2>&1 | FileCheck %s --check-prefix=NO-SUCH-FILE
// NO-SUCH-FILE: error: {{.*}}none.mlir{{.*}}
// RUN: echo 'func.func @f(' > %t/bad.mlir
// RUN: not norm-run %t/bad.mlir --entry=f 2>&1 | FileCheck %s --check-prefix=PARSE --implicit-check-not=norm-run:
// PARSE: bad.mlir:1:{{[0-9]+}}: error:
// RUN: not norm-run %s --entry=none 2>&1 | FileCheck %s --check-prefix=ENTRY
// ENTRY: norm-run: error: expected an entry {{.*}}'f'{{.*}}, got 'none', which the module does not have
// RUN: not norm-run %s 2>&1 | FileCheck %s --check-prefix=MAIN
// MAIN: norm-run: error: expected an entry {{.*}}, got 'main', which the module does not have
// RUN: not norm-run %s --entry=declared 2>&1 | FileCheck %s --check-prefix=DECLARED
// DECLARED: norm-run: error: entry 'declared' has no body
// RUN: not norm-run %s --entry=hidden 2>&1 | FileCheck %s --check-prefix=HIDDEN
// HIDDEN: norm-run: error: entry 'hidden' is private
// RUN: not norm-run %s --entry=unranked 2>&1 | FileCheck %s --check-prefix=UNRANKED
// UNRANKED: norm-run: error: argument 0 of 'unranked' has type tensor<*xf32>, expected a ranked tensor or a scalar
// RUN: not norm-run %s --entry=buffer 2>&1 | FileCheck %s --check-prefix=BUFFER
// BUFFER: norm-run: error: argument 1 of 'buffer' has type memref<4xf32>, expected a ranked tensor or a scalar
// RUN: not norm-run %s --entry=exotic 2>&1 | FileCheck %s --check-prefix=EXOTIC
// EXOTIC: norm-run: error: result 0 of 'exotic' has type tensor<4xcomplex<f32>>, expected elements of f64, f32,

// The arrays.
// RUN: not norm-run %s --entry=f --input=%t/x.npy 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: norm-run: error: expected 2 inputs for 'f', got 1
// RUN: not norm-run %s --entry=f --input=%t/d.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=TYPE
// TYPE: norm-run: error: '{{.*}}d.npy': expected type <f4 for argument 0 (tensor<?x3xf32>), got <f8
// RUN: not norm-run %s --entry=f --input=%t/v.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: norm-run: error: '{{.*}}v.npy': expected an array for argument 0 (tensor<?x3xf32>), got shape 3
// RUN: %python %S/Inputs/npy.py %t/x4.npy '<f4' 2x4 1
// RUN: not norm-run %s --entry=f --input=%t/x4.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=EXTENT
// EXTENT: norm-run: error: '{{.*}}x4.npy': expected an array for argument 0 (tensor<?x3xf32>), got shape 2x4
// RUN: not norm-run %s --entry=f --input=%t/x.npy --input=%t/v.npy --output=%t/a --output=%t/b 2>&1 | FileCheck %s --check-prefix=OUTPUTS
// OUTPUTS: norm-run: error: expected at most 1 outputs for 'f', got 2
// RUN: not norm-run %s --entry=f --input=%t/x.npy --input=%t/v.npy --output=%t/none/y.npy 2>&1 | FileCheck %s --check-prefix=WRITE
// WRITE: norm-run: error: '{{.*}}none/y.npy': No such file or directory

// RUN: %python %S/Inputs/npy.py %t/y.npy '<f4' 4x3 1
// RUN: not norm-run %s --entry=add --input=%t/x.npy --input=%t/y.npy 2>&1 | FileCheck %s --check-prefix=EQUAL
// EQUAL: norm-run: error: expected equal extents for 'norm.rms_norm' at {{.*}}, got 2 and 4 with these inputs
// RUN: not norm-run %s --entry=static_result --input=%t/x.npy 2>&1 | FileCheck %s --check-prefix=RESULT
// RESULT: norm-run: error: expected equal extents for 'norm.rms_norm' at {{.*}}, got 2 and 5 with these inputs
// RUN: not norm-run %s --entry=elementwise --input=%t/x.npy --input=%t/y.npy 2>&1 | FileCheck %s --check-prefix=ELEMENTWISE
// ELEMENTWISE: norm-run: error: expected equal extents for 'arith.addf' at {{.*}}, got 2 and 4 with these inputs
// RUN: not norm-run %s --entry=matmul --input=%t/x.npy --input=%t/x4.npy 2>&1 | FileCheck %s --check-prefix=MATMUL
// MATMUL: norm-run: error: expected equal extents for 'linalg.matmul' at {{.*}}, got 3 and 2 with these inputs

// The files.
// RUN: not norm-run %s --entry=f --input=%t/none.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: norm-run: error: '{{.*}}none.npy': No such file or directory
// RUN: not norm-run %s --entry=f --input=%s --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=MAGIC
// MAGIC: norm-run: error: '{{.*}}norm-run-invalid.mlir': is not a .npy file
// RUN: %python %S/Inputs/npy.py %t/bad.npy '<f4' 2x3 1 --cut=4
// RUN: not norm-run %s --entry=f --input=%t/bad.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: norm-run: error: '{{.*}}bad.npy': is truncated: shape 2x3 of <f4 needs 24 bytes, got 20
// RUN: %python %S/Inputs/npy.py %t/bad.npy '<f4' 2x3 1 --cut=60
// RUN: not norm-run %s --entry=f --input=%t/bad.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=CUT-HEADER
// CUT-HEADER: norm-run: error: '{{.*}}bad.npy': ends inside its header
// RUN: %python %S/Inputs/npy.py %t/bad.npy '<f4' 2x3 1 --append=3
// RUN: not norm-run %s --entry=f --input=%t/bad.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=LONG
// LONG: norm-run: error: '{{.*}}bad.npy': has 3 bytes after its data
// RUN: %python %S/Inputs/npy.py %t/bad.npy '<f4' 2x3 1 --version=9
// RUN: not norm-run %s --entry=f --input=%t/bad.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: norm-run: error: '{{.*}}bad.npy': has .npy version 9, expected 1, 2 or 3
// RUN: %python %S/Inputs/npy.py %t/bad.npy '<f4' 2x3 1 --header="{'descr': '<f4', 'shape': (2, -3)}"
// RUN: not norm-run %s --entry=f --input=%t/bad.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=HEADER
// HEADER: norm-run: error: '{{.*}}bad.npy': has a malformed .npy header
// RUN: %python %S/Inputs/npy.py %t/bad.npy '>f4' 2x3 1
// RUN: not norm-run %s --entry=f --input=%t/bad.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=ENDIAN
// ENDIAN: norm-run: error: '{{.*}}bad.npy': is big-endian (>f4), expected little-endian data
// RUN: %python %S/Inputs/npy.py %t/bad.npy '|O' 2x3
// RUN: not norm-run %s --entry=f --input=%t/bad.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=OBJECTS
// OBJECTS: norm-run: error: '{{.*}}bad.npy': holds Python objects, expected numbers
// RUN: %python %S/Inputs/npy.py %t/bad.npy '<f4' 2x3 --header="{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}"
// RUN: not norm-run %s --entry=f --input=%t/bad.npy --input=%t/v.npy 2>&1 | FileCheck %s --check-prefix=FIELDS
// FIELDS: norm-run: error: '{{.*}}bad.npy': has the unsupported type [('a', '<f4')]

func.func @f(%x: tensor<?x3xf32>, %g: tensor<3xf32>) -> tensor<?x3xf32> {
  %y = norm.rms_norm %x scale(%g : tensor<3xf32>) axes [1] epsilon none : tensor<?x3xf32> -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
func.func @add(%x: tensor<?x3xf32>, %r: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = norm.rms_norm %x residual(%r : tensor<?x3xf32>) axes [1] epsilon none
      : tensor<?x3xf32> -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
func.func @elementwise(%x: tensor<?x3xf32>, %r: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = arith.addf %x, %r : tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
func.func @matmul(%x: tensor<?x?xf32>, %w: tensor<?x?xf32>) -> tensor<2x4xf32> {
  %e = tensor.empty() : tensor<2x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<?x?xf32>) outs(%e : tensor<2x4xf32>)
      -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
func.func private @declared(tensor<3xf32>)
func.func private @hidden(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}
func.func @unranked(%x: tensor<*xf32>) {
  return
}
func.func @buffer(%x: tensor<4xf32>, %y: memref<4xf32>) {
  return
}
func.func @exotic(%x: tensor<4xf32>) -> tensor<4xcomplex<f32>> {
  %c = arith.constant dense<(1.0, 2.0)> : tensor<4xcomplex<f32>>
  return %c : tensor<4xcomplex<f32>>
}

func.func @static_result(%x: tensor<?x3xf32>) -> tensor<5x3xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<?x3xf32> -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}
