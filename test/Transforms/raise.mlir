// RUN: norm-opt %s --norm-raise | FileCheck %s
// RUN: norm-opt %s --norm-raise="statistics=widen" | FileCheck %s --check-prefix=WIDEN
// RUN: norm-opt %s --norm-raise --remarks-filter="norm-raise" 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] raised {{.*}}Function=named_ops | Remark="norm.layer_norm over axes [1]"
// REMARK-DAG: [Analysis] statistics-type {{.*}}Function=narrow_statistics | Remark="statistics stay in bf16, as written"

// Named ops, addends and factors in either order; nothing else is left.
// CHECK-LABEL: func @named_ops
// CHECK-SAME: (%[[X:.*]]: tensor<4x16xf32>, %[[G:.*]]: tensor<16xf32>, %[[B:.*]]: tensor<16xf32>)
// CHECK-NEXT: %[[Y:.*]] = norm.layer_norm %[[X]] scale(%[[G]] : tensor<16xf32>) shift(%[[B]] : tensor<16xf32>) axes [1] epsilon inside_sqrt {{9.99999974[0-9]*e-06}} :
// CHECK-NEXT: return %[[Y]]
func.func @named_ops(%x: tensor<4x16xf32>, %g: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<4x16xf32> {
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
  %h = arith.mulf %c, %rb : tensor<4x16xf32>
  %gb = linalg.broadcast ins(%g : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %hg = arith.mulf %gb, %h : tensor<4x16xf32>
  %bb = linalg.broadcast ins(%b : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %y = arith.addf %bb, %hg : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Multiplied by 1/N; the gain meets the factor before the value does.
// CHECK-LABEL: func @gain_times_factor_first
// CHECK-NEXT: norm.rms_norm %{{.*}} scale(%{{.*}} : tensor<16xf32>) axes [1]
func.func @gain_times_factor_first(%x: tensor<4x16xf32>, %g: tensor<16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<0.0625> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.mulf %sum, %n : tensor<4xf32>
  %me = arith.addf %ms, %eps : tensor<4xf32>
  %r = math.rsqrt %me : tensor<4xf32>
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %gb = linalg.broadcast ins(%g : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %rg = arith.mulf %rb, %gb : tensor<4x16xf32>
  %y = arith.mulf %x, %rg : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// max(0, E[x^2] - E[x]^2) is a variance.
// CHECK-LABEL: func @moment_difference
// CHECK-NEXT: norm.layer_norm %{{.*}} axes [1]
func.func @moment_difference(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
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
  %d = arith.subf %q, %mm : tensor<4xf32>
  %zeros = arith.constant dense<0.0> : tensor<4xf32>
  %v = arith.maximumf %d, %zeros : tensor<4xf32>
  %ve = arith.addf %v, %eps : tensor<4xf32>
  %r = math.rsqrt %ve : tensor<4xf32>
  %mb = linalg.broadcast ins(%m : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %c = arith.subf %x, %mb : tensor<4x16xf32>
  %y = arith.mulf %c, %rb : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// Rounded to the type of x, then the gain: the Llama order.
// CHECK-LABEL: func @rounded_before_gain
// CHECK-NEXT: norm.rms_norm %{{.*}} scale(%{{.*}} : tensor<16xbf16>) axes [1] epsilon inside_sqrt {{[^ ]*}} affine_in result : tensor<4x16xbf16> -> tensor<4x16xbf16>
func.func @rounded_before_gain(%x: tensor<4x16xbf16>, %g: tensor<16xbf16>) -> tensor<4x16xbf16> {
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
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %h = arith.mulf %w, %rb : tensor<4x16xf32>
  %t = arith.truncf %h : tensor<4x16xf32> to tensor<4x16xbf16>
  %allb = tensor.empty() : tensor<4x16xbf16>
  %gb = linalg.broadcast ins(%g : tensor<16xbf16>) outs(%allb : tensor<4x16xbf16>) dimensions = [0]
  %y = arith.mulf %gb, %t : tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}

// The same with f32 weights: the result is as wide as they are.
// CHECK-LABEL: func @rounded_before_wide_gain
// CHECK-NEXT: norm.rms_norm %{{.*}} scale(%{{.*}} : tensor<16xf32>) axes [1] epsilon inside_sqrt {{[^ ]*}} affine_in result : tensor<4x16xbf16> -> tensor<4x16xf32>
func.func @rounded_before_wide_gain(%x: tensor<4x16xbf16>, %g: tensor<16xf32>) -> tensor<4x16xf32> {
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
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %h = arith.mulf %w, %rb : tensor<4x16xf32>
  %t = arith.truncf %h : tensor<4x16xf32> to tensor<4x16xbf16>
  %tw = arith.extf %t : tensor<4x16xbf16> to tensor<4x16xf32>
  %gb = linalg.broadcast ins(%g : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %y = arith.mulf %gb, %tw : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// 1 + gain in the compute type, rounded last: the Gemma order.
// CHECK-LABEL: func @one_plus_gain
// CHECK-NEXT: norm.rms_norm %{{.*}} scale(%{{.*}} : tensor<16xbf16>) axes [1] epsilon inside_sqrt {{[^ ]*}} scale_offset 1.000000e+00 : tensor<4x16xbf16> -> tensor<4x16xbf16>
func.func @one_plus_gain(%x: tensor<4x16xbf16>, %g: tensor<16xbf16>) -> tensor<4x16xbf16> {
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
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %h = arith.mulf %w, %rb : tensor<4x16xf32>
  %one = arith.constant dense<1.0> : tensor<16xf32>
  %gw = arith.extf %g : tensor<16xbf16> to tensor<16xf32>
  %g1 = arith.addf %one, %gw : tensor<16xf32>
  %gb = linalg.broadcast ins(%g1 : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %hg = arith.mulf %h, %gb : tensor<4x16xf32>
  %y = arith.truncf %hg : tensor<4x16xf32> to tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}

// Formed and rounded in bf16 it is a gain of its own.
// CHECK-LABEL: func @rounded_one_plus_gain
// CHECK: %[[G1:.*]] = arith.addf %{{.*}} : tensor<16xbf16>
// CHECK-NEXT: norm.rms_norm %{{.*}} scale(%[[G1]] : tensor<16xbf16>) axes [1] epsilon inside_sqrt {{[0-9.e-]*}} :
func.func @rounded_one_plus_gain(%x: tensor<4x16xbf16>, %g: tensor<16xbf16>) -> tensor<4x16xbf16> {
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
  %rb = linalg.broadcast ins(%r : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %h = arith.mulf %w, %rb : tensor<4x16xf32>
  %one = arith.constant dense<1.0> : tensor<16xbf16>
  %g1 = arith.addf %one, %g : tensor<16xbf16>
  %gw = arith.extf %g1 : tensor<16xbf16> to tensor<16xf32>
  %gb = linalg.broadcast ins(%gw : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %hg = arith.mulf %h, %gb : tensor<4x16xf32>
  %y = arith.truncf %hg : tensor<4x16xf32> to tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}

// Statistics in bf16 are the compute type, unless they may be widened.
// CHECK-LABEL: func @narrow_statistics
// CHECK-NEXT: norm.rms_norm %{{.*}} compute bf16 : tensor<4x16xbf16> -> tensor<4x16xbf16>
// WIDEN-LABEL: func @narrow_statistics
// WIDEN-NEXT: norm.rms_norm %{{.*}} axes [1] epsilon inside_sqrt 1.00135{{[0-9]*}}e-05 : tensor<4x16xbf16> -> tensor<4x16xbf16>
func.func @narrow_statistics(%x: tensor<4x16xbf16>) -> tensor<4x16xbf16> {
  %zero = arith.constant 0.0 : bf16
  %n = arith.constant dense<16.0> : tensor<4xbf16>
  %eps = arith.constant dense<1.0e-5> : tensor<4xbf16>
  %row = tensor.empty() : tensor<4xbf16>
  %all = tensor.empty() : tensor<4x16xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%row : tensor<4xbf16>) -> tensor<4xbf16>
  %sq = arith.mulf %x, %x : tensor<4x16xbf16>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xbf16>) outs(%init : tensor<4xbf16>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xbf16>
  %me = arith.addf %ms, %eps : tensor<4xbf16>
  %r = math.rsqrt %me : tensor<4xbf16>
  %rb = linalg.broadcast ins(%r : tensor<4xbf16>) outs(%all : tensor<4x16xbf16>) dimensions = [1]
  %y = arith.mulf %x, %rb : tensor<4x16xbf16>
  return %y : tensor<4x16xbf16>
}

// Statistics with other users become results; the value may have any user.
// CHECK-LABEL: func @used_statistics
// CHECK-NEXT: %[[Y:.*]], %[[M:.*]], %[[R:.*]] = norm.layer_norm {{.*}} mean(tensor<4xf32>) rstd(tensor<4xf32>)
// CHECK-NEXT: return %[[Y]], %[[M]], %[[R]]
func.func @used_statistics(%x: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>) {
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
  %y = arith.mulf %c, %rb : tensor<4x16xf32>
  return %y, %m, %r : tensor<4x16xf32>, tensor<4xf32>, tensor<4xf32>
}

// Two norms that share statistics and normalized value.
// CHECK-LABEL: func @shared_core
// CHECK-DAG: norm.layer_norm %[[X:.*]] scale(%arg1
// CHECK-DAG: norm.layer_norm %[[X]] scale(%arg2
// CHECK-NOT: math.rsqrt
// CHECK: return
func.func @shared_core(%x: tensor<4x16xf32>, %g: tensor<16xf32>, %h: tensor<16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
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
  %z = arith.mulf %c, %rb : tensor<4x16xf32>
  %gb = linalg.broadcast ins(%g : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %hb = linalg.broadcast ins(%h : tensor<16xf32>) outs(%all : tensor<4x16xf32>) dimensions = [0]
  %y = arith.mulf %z, %gb : tensor<4x16xf32>
  %w = arith.mulf %z, %hb : tensor<4x16xf32>
  return %y, %w : tensor<4x16xf32>, tensor<4x16xf32>
}

// The input of a norm may be one.
// CHECK-LABEL: func @norm_of_norm
// CHECK-NEXT: %[[Y:.*]] = norm.rms_norm
// CHECK-NEXT: norm.rms_norm %[[Y]]
// CHECK-NEXT: return
func.func @norm_of_norm(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
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
  %y = arith.mulf %x, %rb : tensor<4x16xf32>
  %sqb = arith.mulf %y, %y : tensor<4x16xf32>
  %sumb = linalg.reduce { arith.addf } ins(%sqb : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %msb = arith.divf %sumb, %n : tensor<4xf32>
  %meb = arith.addf %msb, %eps : tensor<4xf32>
  %rr = math.rsqrt %meb : tensor<4xf32>
  %rrb = linalg.broadcast ins(%rr : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %yy = arith.mulf %y, %rrb : tensor<4x16xf32>
  return %yy : tensor<4x16xf32>
}

// |x| n^-1/2 + epsilon: outside the root of the mean square.
// CHECK-LABEL: func @sqrt_of_sum_times_root
// CHECK-NEXT: norm.rms_norm %{{.*}} axes [1] epsilon outside_sqrt
func.func @sqrt_of_sum_times_root(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<0.25> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %d = math.sqrt %sum : tensor<4xf32>
  %dn = arith.mulf %d, %n : tensor<4xf32>
  %de = arith.addf %dn, %eps : tensor<4xf32>
  %db = linalg.broadcast ins(%de : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %y = arith.divf %x, %db : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// x / max(|x|, epsilon) times sqrt(16): epsilon is divided by it.
// CHECK-LABEL: func @euclidean_times_root
// CHECK: norm.rms_norm %{{.*}} axes [1] epsilon max_outside {{2.4999999[0-9]*e-06}}
func.func @euclidean_times_root(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %d = math.sqrt %sum : tensor<4xf32>
  %de = arith.maximumf %d, %eps : tensor<4xf32>
  %db = linalg.broadcast ins(%de : tensor<4xf32>) outs(%all : tensor<4x16xf32>) dimensions = [1]
  %q = arith.divf %x, %db : tensor<4x16xf32>
  %four = arith.constant dense<4.0> : tensor<4x16xf32>
  %y = arith.mulf %q, %four : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// All after the sum in one body.
// CHECK-LABEL: func @fused_body
// CHECK: norm.rms_norm %{{.*}} scale(%{{.*}} : tensor<16xf32>) axes [1] epsilon inside_sqrt
func.func @fused_body(%x: tensor<4x16xf32>, %g: tensor<16xf32>) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %eps = arith.constant dense<1.0e-5> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %sum, %g : tensor<4x16xf32>, tensor<4xf32>, tensor<16xf32>) outs(%all : tensor<4x16xf32>) {
  ^bb0(%a: f32, %s: f32, %c: f32, %o: f32):
    %k = arith.constant 16.0 : f32
    %e = arith.constant 1.0e-5 : f32
    %one = arith.constant 1.0 : f32
    %ms = arith.divf %s, %k : f32
    %me = arith.addf %e, %ms : f32
    %rt = math.sqrt %me : f32
    %r = arith.divf %one, %rt : f32
    %h = arith.mulf %r, %a : f32
    %p = arith.mulf %c, %h : f32
    linalg.yield %p : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// A gain with a dimension of extent 1 is squeezed.
// CHECK-LABEL: func @unit_dims_of_gain
// CHECK-NEXT: %[[G:.*]] = tensor.collapse_shape %arg1 {{\[\[}}0, 1]] : tensor<1x16xf32> into tensor<16xf32>
// CHECK-NEXT: norm.rms_norm %arg0 scale(%[[G]] : tensor<16xf32>)
func.func @unit_dims_of_gain(%x: tensor<4x16xf32>, %g: tensor<1x16xf32>) -> tensor<4x16xf32> {
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
  %h = arith.mulf %x, %rb : tensor<4x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%h, %g : tensor<4x16xf32>, tensor<1x16xf32>) outs(%all : tensor<4x16xf32>) {
  ^bb0(%a: f32, %c: f32, %o: f32):
    %p = arith.mulf %a, %c : f32
    linalg.yield %p : f32
  } -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// What has the whole shape of x is a neighbour: the stream, a gate.
// CHECK-LABEL: func @residual_is_no_shift
// CHECK-NEXT: %[[Y:.*]] = norm.rms_norm %{{.*}} axes [1]
// CHECK-NOT: shift
// CHECK: arith.addf %[[Y]], %arg1
func.func @residual_is_no_shift(%x: tensor<4x16xf32>, %s: tensor<4x16xf32>) -> tensor<4x16xf32> {
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
  %h = arith.mulf %x, %rb : tensor<4x16xf32>
  %y = arith.addf %h, %s : tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}

// A body that yields more than the norm.
// CHECK-LABEL: func @two_results
// CHECK: %[[Y:.*]], %{{.*}} = norm.rms_norm %arg0 axes [1]
// CHECK: %[[Z:[0-9]+]]:2 = linalg.generic
// CHECK: return %[[Y]], %[[Z]]#1
func.func @two_results(%x: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant dense<16.0> : tensor<4xf32>
  %row = tensor.empty() : tensor<4xf32>
  %all = tensor.empty() : tensor<4x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<4xf32>) -> tensor<4xf32>
  %sq = arith.mulf %x, %x : tensor<4x16xf32>
  %sum = linalg.reduce { arith.addf } ins(%sq : tensor<4x16xf32>) outs(%init : tensor<4xf32>) dimensions = [1]
  %ms = arith.divf %sum, %n : tensor<4xf32>
  %r = math.rsqrt %ms : tensor<4xf32>
  %y:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<4x16xf32>, tensor<4xf32>) outs(%all, %all : tensor<4x16xf32>, tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32, %p: f32):
    %q = arith.mulf %a, %b : f32
    %t = math.tanh %a : f32
    linalg.yield %q, %t : f32, f32
  } -> (tensor<4x16xf32>, tensor<4x16xf32>)
  return %y#0, %y#1 : tensor<4x16xf32>, tensor<4x16xf32>
}

// Keep-dims statistics of a dynamic shape, the square in the reduction.
// CHECK-LABEL: func @dyn
// CHECK: %[[Y:.*]], %[[R:.*]] = norm.rms_norm %arg0 axes [1] epsilon none : tensor<?x16xf32> -> tensor<?x16xf32> rstd(tensor<?xf32>)
// CHECK: %[[E:.*]] = tensor.expand_shape %[[R]] {{.*}} : tensor<?xf32> into tensor<?x1xf32>
// CHECK: return %[[Y]], %[[E]]
func.func @dyn(%x: tensor<?x16xf32>) -> (tensor<?x16xf32>, tensor<?x1xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 16.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x16xf32>
  %row = tensor.empty(%d) : tensor<?x1xf32>
  %all = tensor.empty(%d) : tensor<?x16xf32>
  %init = linalg.fill ins(%zero : f32) outs(%row : tensor<?x1xf32>) -> tensor<?x1xf32>
  %sum = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<?x16xf32>) outs(%init : tensor<?x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.mulf %a, %a : f32
    %t = arith.addf %s, %o : f32
    linalg.yield %t : f32
  } -> tensor<?x1xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%sum : tensor<?x1xf32>) outs(%row : tensor<?x1xf32>) {
  ^bb0(%a: f32, %o: f32):
    %ms = arith.divf %a, %n : f32
    %t = math.rsqrt %ms : f32
    linalg.yield %t : f32
  } -> tensor<?x1xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, 0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x, %r : tensor<?x16xf32>, tensor<?x1xf32>) outs(%all : tensor<?x16xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    linalg.yield %t : f32
  } -> tensor<?x16xf32>
  return %y, %r : tensor<?x16xf32>, tensor<?x1xf32>
}
