// RUN: norm-opt %s --norm-configure=isa=avx512 | FileCheck %s
// RUN: norm-opt %s --norm-configure=isa=avx512 --remarks-filter="norm-configure" 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: norm-opt %s --norm-configure="rows=1 columns=16" | FileCheck %s --check-prefix=FORCED
// RUN: norm-opt %s --norm-configure | FileCheck %s --check-prefix=X86

// Four rows at a time; a big tensor goes to all threads, past the caches, and
// the next rows are fetched while these are stored.
// CHECK-LABEL: func @big
// CHECK: norm.layer_norm {{.*}} {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true, stream_bytes = 4194304, prefetch = 2>}
// REMARK: {{.*}}rows 4, columns 32: the innermost axis is reduced; on all threads: 25165824 bytes read and written; results stored past the caches; the next tile fetched into cache 2
// FORCED-LABEL: func @big
// FORCED: #norm.cpu<rows = 1, columns = 16, parallel = true,
func.func @big(%x: tensor<4096x768xf32>) -> tensor<4096x768xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<4096x768xf32> -> tensor<4096x768xf32>
  return %y : tensor<4096x768xf32>
}

// CHECK-LABEL: func @small
// CHECK: #norm.cpu<rows = 4, columns = 1, parallel = false>
// CHECK: #norm.cpu<rows = 2, columns = 32, parallel = false>
// REMARK: {{.*}}on one thread: 48 bytes read and written
func.func @small(%x: tensor<6x1xf32>, %z: tensor<6x768xf32>) -> (tensor<6x1xf32>, tensor<6x768xf32>) {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<6x1xf32> -> tensor<6x1xf32>
  %w = norm.rms_norm %z axes [1] epsilon inside_sqrt 1.0e-5 : tensor<6x768xf32> -> tensor<6x768xf32>
  return %y, %w : tensor<6x1xf32>, tensor<6x768xf32>
}

// The columns follow from the reduced extent and the compute type, never from
// the number of rows: they decide the bits of a row.
// CHECK-LABEL: func @columns
// CHECK: rows = 2, columns = 8,
// CHECK: rows = 4, columns = 8,
// CHECK: rows = 16, columns = 8,
// CHECK: rows = 1, columns = 16,
// CHECK: rows = 1, columns = 32,
// X86-LABEL: func @columns
// X86: rows = 2, columns = 8,
// X86: rows = 4, columns = 8,
// X86: rows = 16, columns = 8,
func.func @columns(%a: tensor<3x5xf32>, %b: tensor<4x5xf32>, %c: tensor<?x5xf32>, %d: tensor<1x768xf64>, %e: tensor<1x?xbf16>) {
  %0 = norm.rms_norm %a axes [1] epsilon none : tensor<3x5xf32> -> tensor<3x5xf32>
  %1 = norm.rms_norm %b axes [1] epsilon none : tensor<4x5xf32> -> tensor<4x5xf32>
  %2 = norm.rms_norm %c axes [1] epsilon none : tensor<?x5xf32> -> tensor<?x5xf32>
  %3 = norm.rms_norm %d axes [1] epsilon none : tensor<1x768xf64> -> tensor<1x768xf64>
  %4 = norm.rms_norm %e axes [1] epsilon none : tensor<1x?xbf16> -> tensor<1x?xbf16>
  return
}

// Rows that start anywhere on a line are stored one by one, a residual form's
// two by two, those of a few elements sixteen at a time.
// CHECK-LABEL: func @shapes
// CHECK: layer_norm {{.*}}#norm.cpu<rows = 1, columns = 32, parallel = true, stream_bytes = 4194304, prefetch = 2>
// CHECK: rms_norm {{.*}}#norm.cpu<rows = 2, columns = 32, parallel = true, stream_bytes = 4194304, prefetch = 2>
// CHECK: l2_norm {{.*}}#norm.cpu<rows = 16, columns = 16, parallel = true, stream_bytes = 4194304, prefetch = 2>
// CHECK: rms_norm {{.*}}#norm.cpu<rows = 2, columns = 32, parallel = true>
func.func @shapes(%a: tensor<4096x1023xf32>, %b: tensor<4096x4096xf32>, %c: tensor<65536x16xf32>, %d: tensor<64x4096xf32>) {
  %0 = norm.layer_norm %a axes [1] epsilon none : tensor<4096x1023xf32> -> tensor<4096x1023xf32>
  %1, %s = norm.rms_norm %b residual(%b : tensor<4096x4096xf32>) axes [1] epsilon none : tensor<4096x4096xf32> -> tensor<4096x4096xf32> sum(tensor<4096x4096xf32>)
  %2 = norm.l2_norm %c axes [1] epsilon none : tensor<65536x16xf32> -> tensor<65536x16xf32>
  %3 = norm.rms_norm %d axes [1] epsilon none : tensor<64x4096xf32> -> tensor<64x4096xf32>
  return
}

// What only run time knows is decided there.
// CHECK-LABEL: func @dynamic
// CHECK: #norm.cpu<rows = 2, columns = 32, parallel = true, serial_bytes = 262144, stream_bytes = 4194304, prefetch = 2>
// REMARK: {{.*}}on all threads above 262144 bytes; results stored past the caches above 4194304 bytes; the next tile fetched into cache 2
func.func @dynamic(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<?x?xf32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// Sums over rows are cut into ranges.
// CHECK-LABEL: func @gradients
// CHECK: norm.rms_norm_backward {{.*}}#norm.cpu<rows = {{[0-9]+}}, columns = 32, parallel = true, range = 128,
func.func @gradients(%dy: tensor<4096x128xf32>, %x: tensor<4096x128xf32>) -> (tensor<4096x128xf32>, tensor<128xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x axes [1] epsilon none : tensor<4096x128xf32>, tensor<4096x128xf32> -> tensor<4096x128xf32> dscale(tensor<128xf32>)
  return %dx, %dg : tensor<4096x128xf32>, tensor<128xf32>
}

// What somebody wrote stays.
// CHECK-LABEL: func @kept
// CHECK: #norm.cpu<rows = 1, columns = 64, parallel = false>
func.func @kept(%x: tensor<4096x768xf32>) -> tensor<4096x768xf32> {
  %y = norm.rms_norm %x axes [1] epsilon none {norm.strategy = #norm.cpu<rows = 1, columns = 64, parallel = false>} : tensor<4096x768xf32> -> tensor<4096x768xf32>
  return %y : tensor<4096x768xf32>
}

// Sums over the outer axes are taken by ranges of rows, however many.
// CHECK-LABEL: func @lanes
// CHECK: #norm.cpu<rows = 4, columns = 32, parallel = true, range = 200, prefetch = 2>
// REMARK: {{.*}}the innermost axis is kept, one lane an element{{.*}}; rows of the inner axes are summed in ranges merged in order
func.func @lanes(%x: tensor<64x4096xf32>) -> tensor<64x4096xf32> {
  %y = norm.layer_norm %x axes [0] epsilon inside_sqrt 1.0e-5 : tensor<64x4096xf32> -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

// Channels share vectors where their images are small.
// CHECK-LABEL: func @images
// CHECK: norm.batch_norm_training {{.*}}#norm.cpu<rows = 4, columns = 32,
// CHECK: norm.batch_norm_training {{.*}}#norm.cpu<rows = 2, columns = 32,
// CHECK: norm.batch_norm_training {{.*}}#norm.cpu<rows = 1, columns = 32,
// CHECK: norm.batch_norm_training_backward {{.*}}#norm.cpu<rows = 2, columns = 32,
func.func @images(%a: tensor<16x64x49xf32>, %b: tensor<16x64x196xf32>, %c: tensor<16x64x?xf32>)
    -> (tensor<16x64x49xf32>, tensor<16x64x196xf32>, tensor<16x64x?xf32>, tensor<16x64x49xf32>) {
  %0 = norm.batch_norm_training %a axes [0, 2] epsilon inside_sqrt 1.0e-5 : tensor<16x64x49xf32> -> tensor<16x64x49xf32>
  %1 = norm.batch_norm_training %b axes [0, 2] epsilon inside_sqrt 1.0e-5 : tensor<16x64x196xf32> -> tensor<16x64x196xf32>
  %2 = norm.batch_norm_training %c axes [0, 2] epsilon inside_sqrt 1.0e-5 : tensor<16x64x?xf32> -> tensor<16x64x?xf32>
  %3 = norm.batch_norm_training_backward %0, %a axes [0, 2] epsilon inside_sqrt 1.0e-5
    : tensor<16x64x49xf32>, tensor<16x64x49xf32> -> tensor<16x64x49xf32>
  return %0, %1, %2, %3 : tensor<16x64x49xf32>, tensor<16x64x196xf32>, tensor<16x64x?xf32>, tensor<16x64x49xf32>
}

// CHECK-LABEL: func @empty
// CHECK-NOT: norm.strategy
// REMARK: {{.*}}no strategy: x has an extent of 0
func.func @empty(%x: tensor<3x0xf32>) -> tensor<3x0xf32> {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<3x0xf32> -> tensor<3x0xf32>
  return %y : tensor<3x0xf32>
}

// -----

// Where nothing is reduced, rows share what varies along them; images do not.
// CHECK-LABEL: func @inference
// CHECK: norm.batch_norm_inference {{.*}}rows = 4, {{.*}} : tensor<4096x64xf32>
// CHECK: norm.batch_norm_inference {{.*}}rows = 1, {{.*}} : tensor<16x64x3136xf32>
func.func @inference(%x: tensor<4096x64xf32>, %z: tensor<16x64x3136xf32>, %m: tensor<64xf32>, %v: tensor<64xf32>)
    -> (tensor<4096x64xf32>, tensor<16x64x3136xf32>) {
  %y = norm.batch_norm_inference %x mean(%m : tensor<64xf32>) variance(%v : tensor<64xf32>) axes [0]
    epsilon inside_sqrt 1.0e-5 : tensor<4096x64xf32> -> tensor<4096x64xf32>
  %u = norm.batch_norm_inference %z mean(%m : tensor<64xf32>) variance(%v : tensor<64xf32>) axes [0, 2]
    epsilon inside_sqrt 1.0e-5 : tensor<16x64x3136xf32> -> tensor<16x64x3136xf32>
  return %y, %u : tensor<4096x64xf32>, tensor<16x64x3136xf32>
}

// Threads share a tile where there are few, each of 768 KiB or more: two rows,
// which read what belongs to columns once.
// CHECK-LABEL: func @few_rows
// CHECK: #norm.cpu<rows = 2, columns = 32, parallel = true, stream_bytes = 4194304, prefetch = 2, split = true>
// CHECK: #norm.cpu<rows = {{[0-9]+}}, columns = 32, parallel = true, stream_bytes = 4194304, prefetch = 2>
// REMARK: {{.*}}; there are few tiles, of which threads share each
func.func @few_rows(%x: tensor<3x1048576xf32>, %z: tensor<9x1048576xf32>)
    -> (tensor<3x1048576xf32>, tensor<9x1048576xf32>) {
  %y = norm.layer_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<3x1048576xf32> -> tensor<3x1048576xf32>
  %w = norm.layer_norm %z axes [1] epsilon inside_sqrt 1.0e-5 : tensor<9x1048576xf32> -> tensor<9x1048576xf32>
  return %y, %w : tensor<3x1048576xf32>, tensor<9x1048576xf32>
}

// CHECK-LABEL: func @least
// CHECK: norm.l2_norm {{.*}}split = true>{{.*}}tensor<1x98304xf32>
// CHECK-NOT: split
// CHECK: norm.l2_norm {{.*}}tensor<1x98303xf32>
func.func @least(%x: tensor<1x98304xf32>, %z: tensor<1x98303xf32>) -> (tensor<1x98304xf32>, tensor<1x98303xf32>) {
  %y = norm.l2_norm %x axes [1] epsilon none : tensor<1x98304xf32> -> tensor<1x98304xf32>
  %w = norm.l2_norm %z axes [1] epsilon none : tensor<1x98303xf32> -> tensor<1x98303xf32>
  return %y, %w : tensor<1x98304xf32>, tensor<1x98303xf32>
}

// Two rows of more than 64 and at most 256 elements on their way to memory.
// CHECK-LABEL: func @pairs_of_rows
// CHECK: norm.rms_norm {{.*}}rows = 2, {{.*}} : tensor<65536x256xf32>
// CHECK: norm.rms_norm {{.*}}rows = 4, {{.*}} : tensor<65536x256xbf16>
// CHECK: norm.rms_norm {{.*}}rows = 4, {{.*}} : tensor<65536x64xf32>
// CHECK: norm.rms_norm {{.*}}rows = 4, {{.*}} : tensor<1024x256xf32>
func.func @pairs_of_rows(%x: tensor<65536x256xf32>, %n: tensor<65536x256xbf16>, %z: tensor<65536x64xf32>,
    %w: tensor<1024x256xf32>)
    -> (tensor<65536x256xf32>, tensor<65536x256xbf16>, tensor<65536x64xf32>, tensor<1024x256xf32>) {
  %a = norm.rms_norm %x axes [1] epsilon none : tensor<65536x256xf32> -> tensor<65536x256xf32>
  %b = norm.rms_norm %n axes [1] epsilon none : tensor<65536x256xbf16> -> tensor<65536x256xbf16>
  %c = norm.rms_norm %z axes [1] epsilon none : tensor<65536x64xf32> -> tensor<65536x64xf32>
  %d = norm.rms_norm %w axes [1] epsilon none : tensor<1024x256xf32> -> tensor<1024x256xf32>
  return %a, %b, %c, %d : tensor<65536x256xf32>, tensor<65536x256xbf16>, tensor<65536x64xf32>, tensor<1024x256xf32>
}

// Of a whole tensor there is one tile, whatever its extent.
// CHECK-LABEL: func @whole
// CHECK: #norm.cpu<rows = 1, columns = 32, parallel = true, serial_bytes = 262144, stream_bytes = 4194304, split = true>
func.func @whole(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = norm.l2_norm %x axes [0] epsilon none : tensor<?xf32> -> tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

// Sixteen registers hold the sums of fewer rows.
// CHECK-LABEL: func @few_registers
// CHECK: rms_norm {{.*}}#norm.cpu<rows = 4, columns = 32,
// CHECK: layer_norm {{.*}}#norm.cpu<rows = 2, columns = 32,
// CHECK: layer_norm {{.*}}#norm.cpu<rows = 4, columns = 32,
// CHECK: layer_norm_backward {{.*}}#norm.cpu<rows = 2, columns = 32,
// X86-LABEL: func @few_registers
// X86: rms_norm {{.*}}#norm.cpu<rows = 4, columns = 32,
// X86: layer_norm {{.*}}#norm.cpu<rows = 2, columns = 32,
// X86: layer_norm {{.*}}#norm.cpu<rows = 1, columns = 32,
// X86: layer_norm_backward {{.*}}#norm.cpu<rows = 1, columns = 32,
func.func @few_registers(%a: tensor<65536x32xf32>, %b: tensor<65536x128xf32>, %c: tensor<4096x1024xf32>)
    -> (tensor<65536x32xf32>, tensor<65536x128xf32>, tensor<4096x1024xf32>, tensor<4096x1024xf32>, tensor<1024xf32>) {
  %0 = norm.rms_norm %a axes [1] epsilon none : tensor<65536x32xf32> -> tensor<65536x32xf32>
  %1 = norm.layer_norm %b axes [1] epsilon none : tensor<65536x128xf32> -> tensor<65536x128xf32>
  %2 = norm.layer_norm %c axes [1] epsilon none : tensor<4096x1024xf32> -> tensor<4096x1024xf32>
  %3, %4 = norm.layer_norm_backward %c, %c axes [1] epsilon none
    : tensor<4096x1024xf32>, tensor<4096x1024xf32> -> tensor<4096x1024xf32> dscale(tensor<1024xf32>)
  return %0, %1, %2, %3, %4 : tensor<65536x32xf32>, tensor<65536x128xf32>, tensor<4096x1024xf32>, tensor<4096x1024xf32>, tensor<1024xf32>
}

// -----

// Gradients of rows of any length are taken row by row: code for two as well
// would take as long again to make.
// CHECK-LABEL: func @any_gradients
// CHECK: #norm.cpu<rows = 1, columns = 32, parallel = true, range = 128,
func.func @any_gradients(%dy: tensor<?x?xf32>, %x: tensor<?x?xf32>) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %dx, %dg = norm.rms_norm_backward %dy, %x axes [1] epsilon none : tensor<?x?xf32>, tensor<?x?xf32> -> tensor<?x?xf32> dscale(tensor<?xf32>)
  return %dx, %dg : tensor<?x?xf32>, tensor<?xf32>
}
