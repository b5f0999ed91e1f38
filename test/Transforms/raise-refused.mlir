// RUN: norm-opt %s --norm-raise --remarks-filter="norm-raise" 2>&1 >/dev/null | FileCheck %s
// RUN: norm-opt %s --norm-raise | FileCheck %s --check-prefix=IR --implicit-check-not="norm."
// RUN: norm-opt %s --norm-raise="statistics=widen" | FileCheck %s --check-prefix=WIDEN

// Each function looks like a norm and fails one condition, which the remark
// names. Nothing is raised.
// IR-LABEL: func @init

// WIDEN-LABEL: func @rounded_factor
// WIDEN: norm.rms_norm %{{.*}} axes [1] epsilon inside_sqrt {{[0-9.e-]+}} : tensor<4x16xbf16> -> tensor<4x16xbf16>

// The sum starts at 1.
// CHECK-DAG: [Missed] init {{.*}}Function=init | Reason="the sum of squares does not start at 0"
func.func @init(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %one = arith.constant 1.0 : f32
  %from1 = linalg.fill ins(%one : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%from1 : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// The largest square instead of the sum.
// CHECK-DAG: [Missed] reduction {{.*}}Function=reduction | Reason="the squares are combined by another operation than addition"
func.func @reduction(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.maximumf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Cubes.
// CHECK-DAG: [Missed] square {{.*}}Function=exponent | Reason="expected exponent 2, got 3"
func.func @exponent(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %three = arith.constant dense<3.0> : tensor<4x16xf32>
  %sq = math.powf %x, %three : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// A dot product.
// CHECK-DAG: [Missed] square {{.*}}Function=not_a_square | Reason="the summed value is not a square"
func.func @not_a_square(%x: tensor<4x16xf32>, %z: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %z : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// The count of another extent.
// CHECK-DAG: [Missed] divisor {{.*}}Function=divisor | Reason="expected the sum to be divided by 16, got 15"
func.func @divisor(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<15.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// 1/16 rounded to bf16 twice is near, not equal.
// CHECK-DAG: [Missed] divisor {{.*}}Function=near_divisor | Reason="expected the sum to be multiplied by 1 / 16, got 0.0627441406"
func.func @near_divisor(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %inv = arith.constant dense<0.0627441406> : tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.mulf %sum, %inv : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// A masked norm counts at run time.
// CHECK-DAG: [Missed] divisor {{.*}}Function=divisor_at_run_time | Reason="the divisor of a mean is not a compile-time constant"
func.func @divisor_at_run_time(%x: tensor<4x16xf32>, %count: tensor<4xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %count : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Epsilon is an argument.
// CHECK-DAG: [Missed] epsilon {{.*}}Function=epsilon_at_run_time | Reason="epsilon is not a compile-time constant"
func.func @epsilon_at_run_time(%x: tensor<4x16xf32>, %e: tensor<4xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %e : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// A negative epsilon.
// CHECK-DAG: [Missed] epsilon {{.*}}Function=epsilon_negative | Reason="expected a finite epsilon of at least 0, got -9.99999975e-06"
func.func @epsilon_negative(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<-1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Epsilon is subtracted.
// CHECK-DAG: [Missed] epsilon {{.*}}Function=epsilon_subtracted | Reason="epsilon is subtracted, not added"
func.func @epsilon_subtracted(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.subf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Inside and outside the root.
// CHECK-DAG: [Missed] epsilon {{.*}}Function=epsilon_twice | Reason="epsilon is added in two places"
func.func @epsilon_twice(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %d = math.sqrt %me : tensor<4xf32>
  %de = arith.addf %d, %eps : tensor<4xf32>
  %rb = linalg.broadcast ins(%de : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.divf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Divided by the mean square itself.
// CHECK-DAG: [Missed] root {{.*}}Function=no_root | Reason="the value is divided by a mean of squares without its root"
func.func @no_root(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %rb = linalg.broadcast ins(%me : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.divf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Multiplied by the root.
// CHECK-DAG: [Missed] root {{.*}}Function=times_root | Reason="the value is multiplied by the root, not divided"
func.func @times_root(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.sqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// The statistic of another tensor.
// CHECK-DAG: [Missed] same-value {{.*}}Function=other_value | Reason="the normalized value is not the one whose squares were summed"
func.func @other_value(%x: tensor<4x16xf32>, %z: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %z, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Row statistics broadcast along the rows of a square value.
// CHECK-DAG: [Missed] same-value {{.*}}Function=wrong_axis | Reason="the normalized value is not the one whose squares were summed"
func.func @wrong_axis(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<16xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<16xf32>
  %row = tensor.empty() : tensor<16xf32>
  %all = tensor.empty() : tensor<16x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<16xf32>) -> tensor<16xf32>
  %sq = arith.mulf %x, %x : tensor<16x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<16x16xf32>) outs(%init : tensor<16xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<16xf32>
  %me = arith.addf %ms, %eps : tensor<16xf32>
  %r = math.rsqrt %me : tensor<16xf32>
  %rb = linalg.broadcast ins(%r : tensor<16xf32>) outs(%all : tensor<16x16xf32>) dimensions = [0]
  %y = arith.mulf %x, %rb : tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}

// Centred on the mean of another tensor.
// CHECK-DAG: [Missed] same-value {{.*}}Function=mean_of_other | Reason="the value is centred on the mean of another value"
func.func @mean_of_other(%x: tensor<4x16xf32>, %z: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %s1 = linalg.reduce { arith.addf } ins(%z : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %m = arith.divf %s1, %n : tensor<4xf32>
  %mb = linalg.broadcast ins(%m : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %c = arith.subf %x, %mb : tensor<4x16xf32>
  %u = arith.mulf %c, %c : tensor<4x16xf32>
  %s2 = linalg.reduce { arith.addf } ins(%u : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %v = arith.divf %s2, %n : tensor<4xf32>
  %ve = arith.addf %v, %eps : tensor<4xf32>
  %r = math.rsqrt %ve : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %c, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Variance, but the value is not centred.
// CHECK-DAG: [Missed] same-value {{.*}}Function=not_centred | Reason="the normalized value is not the centred value whose variance was taken"
func.func @not_centred(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %s1 = linalg.reduce { arith.addf } ins(%x : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %m = arith.divf %s1, %n : tensor<4xf32>
  %mb = linalg.broadcast ins(%m : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %c = arith.subf %x, %mb : tensor<4x16xf32>
  %u = arith.mulf %c, %c : tensor<4x16xf32>
  %s2 = linalg.reduce { arith.addf } ins(%u : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %v = arith.divf %s2, %n : tensor<4xf32>
  %ve = arith.addf %v, %eps : tensor<4xf32>
  %r = math.rsqrt %ve : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Squares about a point that is not the mean.
// CHECK-DAG: [Missed] centred {{.*}}Function=centred_elsewhere | Reason="the squares are taken about another point than the mean"
func.func @centred_elsewhere(%x: tensor<4x16xf32>, %p: tensor<4xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %s1 = linalg.reduce { arith.addf } ins(%x : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %m = arith.divf %s1, %n : tensor<4xf32>
  %mb = linalg.broadcast ins(%m : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %c = arith.subf %x, %mb : tensor<4x16xf32>
  %pb = linalg.broadcast ins(%p : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %d = arith.subf %x, %pb : tensor<4x16xf32>
  %u = arith.mulf %d, %d : tensor<4x16xf32>
  %s2 = linalg.reduce { arith.addf } ins(%u : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %v = arith.divf %s2, %n : tensor<4xf32>
  %ve = arith.addf %v, %eps : tensor<4xf32>
  %r = math.rsqrt %ve : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %c, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// A centred value over the root of the raw second moment.
// CHECK-DAG: [Missed] same-value {{.*}}Function=uncentred_statistic | Reason="the normalized value is not the one whose squares were summed"
func.func @uncentred_statistic(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %s1 = linalg.reduce { arith.addf } ins(%x : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %m = arith.divf %s1, %n : tensor<4xf32>
  %mb = linalg.broadcast ins(%m : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %c = arith.subf %x, %mb : tensor<4x16xf32>
  %u = arith.mulf %x, %x : tensor<4x16xf32>
  %s2 = linalg.reduce { arith.addf } ins(%u : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %v = arith.divf %s2, %n : tensor<4xf32>
  %ve = arith.addf %v, %eps : tensor<4xf32>
  %r = math.rsqrt %ve : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %c, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Mean over one axis, variance over another.
// CHECK-DAG: [Missed] same-axes {{.*}}Function=axes_differ | Reason="mean and variance are taken over different axes"
func.func @axes_differ(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<8.0> : tensor<2x8xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<2x8xf32>
  %row = tensor.empty() : tensor<2x8xf32>
  %all = tensor.empty() : tensor<2x8x8xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<2x8xf32>) -> tensor<2x8xf32>
  %s1 = linalg.reduce { arith.addf } ins(%x : tensor<2x8x8xf32>) outs(%init : tensor<2x8xf32>) dimensions = [2]
  %m = arith.divf %s1, %n : tensor<2x8xf32>
  %mb = linalg.broadcast ins(%m : tensor<2x8xf32>) outs(%all : tensor<2x8x8xf32>) dimensions = [2]
  %c = arith.subf %x, %mb : tensor<2x8x8xf32>
  %u = arith.mulf %c, %c : tensor<2x8x8xf32>
  %s2 = linalg.reduce { arith.addf } ins(%u : tensor<2x8x8xf32>) outs(%init : tensor<2x8xf32>) dimensions = [1]
  %v = arith.divf %s2, %n : tensor<2x8xf32>
  %ve = arith.addf %v, %eps : tensor<2x8xf32>
  %r = math.rsqrt %ve : tensor<2x8xf32>
  %rb = linalg.broadcast ins(%r : tensor<2x8xf32>) outs(%all : tensor<2x8x8xf32>) dimensions = [1]
  %y = arith.mulf %c, %rb : tensor<2x8x8xf32>
  return %y : tensor<2x8x8xf32>
}

// E[x^2] + E[x]^2.
// CHECK-DAG: [Missed] reduction {{.*}}Function=moments_added | Reason="the value under the root is not a mean of squares"
func.func @moments_added(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %s1 = linalg.reduce { arith.addf } ins(%x : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %s2 = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %m = arith.divf %s1, %n : tensor<4xf32>
  %q = arith.divf %s2, %n : tensor<4xf32>
  %mm = arith.mulf %m, %m : tensor<4xf32>
  %v = arith.addf %q, %mm : tensor<4xf32>
  %ve = arith.addf %v, %eps : tensor<4xf32>
  %r = math.rsqrt %ve : tensor<4xf32>
  %mb = linalg.broadcast ins(%m : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %c = arith.subf %x, %mb : tensor<4x16xf32>
  %y = arith.mulf %c, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// E[x^2] - p^2.
// CHECK-DAG: [Missed] centred {{.*}}Function=square_of_other_mean | Reason="what is subtracted from the mean of squares is not the square of the mean"
func.func @square_of_other_mean(%x: tensor<4x16xf32>, %p: tensor<4xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %s2 = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %q = arith.divf %s2, %n : tensor<4xf32>
  %mm = arith.mulf %p, %p : tensor<4xf32>
  %v = arith.subf %q, %mm : tensor<4xf32>
  %ve = arith.addf %v, %eps : tensor<4xf32>
  %r = math.rsqrt %ve : tensor<4xf32>
  %mb = linalg.broadcast ins(%p : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %c = arith.subf %x, %mb : tensor<4x16xf32>
  %y = arith.mulf %c, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// No count: the Euclidean norm.
// CHECK-DAG: [Missed] l2 {{.*}}Function=l2 | Reason="the sum of squares is not divided by its count: an l2 norm, which is not raised"
func.func @l2(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %me = arith.addf %sum, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// The factor is rounded to bf16 before the product: no compute type says so.
// `statistics=widen` takes it as f32.
// CHECK-DAG: [Missed] rounding {{.*}}Function=rounded_factor | Reason="one compute type cannot say that statistics round to bf16, f32"
func.func @rounded_factor(%x: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %w = arith.extf %x : tensor<4x16xbf16> to tensor<4x16xf32>
  %sq = arith.mulf %w, %w : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rt = arith.truncf %r : tensor<4xf32> to tensor<4xbf16>
  %allt = tensor.empty() : tensor<4x16xbf16>
  %rb = linalg.broadcast ins(%rt : tensor<4xbf16>) outs(%allt : tensor<4x16xbf16>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}

// The extent is not known, the divisor is.
// CHECK-DAG: [Missed] divisor {{.*}}Function=runtime_extent | Reason="the extent of the reduced axes is not known"
func.func @runtime_extent(%x: tensor<4x?xf32>, %all: tensor<4x?xf32>) -> tensor<4x?xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x?xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x?xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x?xf32>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x?xf32>
  return %y : tensor<4x?xf32>
}

// One gain per kept channel: the form of batch and instance norms.
// CHECK-DAG: [Missed] affine-axes {{.*}}Function=channel_gain | Reason="gain and shift vary along a kept axis only, as in a batch or instance norm"
func.func @channel_gain(%x: tensor<2x3x4x5xf32>, %g: tensor<3xf32>) -> tensor<2x3x4x5xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<20.0> : tensor<2x3xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<2x3xf32>
  %row = tensor.empty() : tensor<2x3xf32>
  %all = tensor.empty() : tensor<2x3x4x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<2x3xf32>) -> tensor<2x3xf32>
  %sq = arith.mulf %x, %x : tensor<2x3x4x5xf32>
  %s = linalg.reduce { arith.addf } ins(%sq : tensor<2x3x4x5xf32>) outs(%init : tensor<2x3xf32>) dimensions = [2, 3]
  %ms = arith.divf %s, %n : tensor<2x3xf32>
  %me = arith.addf %ms, %eps : tensor<2x3xf32>
  %r = math.rsqrt %me : tensor<2x3xf32>
  %rb = linalg.broadcast ins(%r : tensor<2x3xf32>) outs(%all : tensor<2x3x4x5xf32>) dimensions = [2, 3]
  %xn = arith.mulf %x, %rb : tensor<2x3x4x5xf32>
  %gb = linalg.broadcast ins(%g : tensor<3xf32>) outs(%all : tensor<2x3x4x5xf32>) dimensions = [0, 2, 3]
  %y = arith.mulf %xn, %gb : tensor<2x3x4x5xf32>
  return %y : tensor<2x3x4x5xf32>
}

// Part of the channels merged with space: the form of group norms.
// CHECK-DAG: [Missed] reshaped {{.*}}Function=group_form | Reason="the value is reshaped for the norm, as in a group or instance norm"
func.func @group_form(%x: tensor<2x6x5xf32>) -> tensor<2x2x15xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<15.0> : tensor<2x2xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<2x2xf32>
  %row = tensor.empty() : tensor<2x2xf32>
  %all = tensor.empty() : tensor<2x2x15xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<2x2xf32>) -> tensor<2x2xf32>
  %flat = tensor.collapse_shape %x [[0], [1, 2]] : tensor<2x6x5xf32> into tensor<2x30xf32>
  %v = tensor.expand_shape %flat [[0], [1, 2]] output_shape [2, 2, 15] : tensor<2x30xf32> into tensor<2x2x15xf32>
  %sq = arith.mulf %v, %v : tensor<2x2x15xf32>
  %s = linalg.reduce { arith.addf } ins(%sq : tensor<2x2x15xf32>) outs(%init : tensor<2x2xf32>) dimensions = [2]
  %ms = arith.divf %s, %n : tensor<2x2xf32>
  %me = arith.addf %ms, %eps : tensor<2x2xf32>
  %r = math.rsqrt %me : tensor<2x2xf32>
  %rb = linalg.broadcast ins(%r : tensor<2x2xf32>) outs(%all : tensor<2x2x15xf32>) dimensions = [2]
  %y = arith.mulf %v, %rb : tensor<2x2x15xf32>
  return %y : tensor<2x2x15xf32>
}

// Read as a vector where the result is a matrix: no tensor to normalize.
// CHECK-DAG: [Missed] materialized {{.*}}Function=broadcast_value | Reason="no tensor of the result's shape holds the normalized value"
func.func @broadcast_value(%x: tensor<16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %xb = linalg.broadcast ins(%x : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %sq = arith.mulf %xb, %xb : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %r : tensor<16xf32>, tensor<4xf32>) outs(%all : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    linalg.yield %p : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
