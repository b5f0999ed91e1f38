// RUN: norm-opt %s --norm-fuse-residual --remarks-filter="norm-fuse-residual" 2>&1 >/dev/null | FileCheck %s --implicit-check-not="[Analysis]"
// RUN: norm-opt %s --norm-fuse-residual | FileCheck %s --check-prefix=IR

// One residual is all an op has; a further addition stays.
// CHECK: [Missed] F1.residual {{.*}}Function=second_residual | Reason="the op has a residual already"
// CHECK: [Analysis] placement {{.*}}Function=second_residual | Remark=post
func.func @second_residual(%x: tensor<1x2xf32>, %r: tensor<1x2xf32>, %q: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %s = arith.addf %x, %r : tensor<1x2xf32>
  %y = norm.layer_norm %s residual(%q : tensor<1x2xf32>) axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// A norm of an input that nothing is added to.
// CHECK: [Analysis] placement {{.*}}Function=alone | Remark=none
func.func @alone(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// Pre-norm, two blocks: x + F(norm(x)), then the norm after the last block.
// CHECK: [Analysis] placement {{.*}}Function=pre | Remark=pre
// CHECK: [Analysis] placement {{.*}}Function=pre | Remark=pre
// CHECK: [Analysis] placement {{.*}}Function=pre | Remark=final
func.func @pre(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %n1 = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %f1 = math.tanh %n1 : tensor<1x2xf32>
  %h = arith.addf %x, %f1 : tensor<1x2xf32>
  %n2 = norm.rms_norm %h axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %f2 = math.tanh %n2 : tensor<1x2xf32>
  %g = arith.addf %h, %f2 : tensor<1x2xf32>
  %y = norm.rms_norm %g axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// Post-norm, two blocks: norm(x + F(x)).
// CHECK: [Analysis] placement {{.*}}Function=post | Remark=post
// CHECK: [Analysis] placement {{.*}}Function=post | Remark=post
func.func @post(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %f1 = math.tanh %x : tensor<1x2xf32>
  %h = arith.addf %x, %f1 : tensor<1x2xf32>
  %n1 = norm.layer_norm %h axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %f2 = math.tanh %n1 : tensor<1x2xf32>
  %g = arith.addf %n1, %f2 : tensor<1x2xf32>
  %n2 = norm.layer_norm %g axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %n2 : tensor<1x2xf32>
}

// Norms on the branches only, and the last one of the stream.
// CHECK: [Analysis] placement {{.*}}Function=branch | Remark=branch
// CHECK: [Analysis] placement {{.*}}Function=branch | Remark=branch
// CHECK: [Analysis] placement {{.*}}Function=branch | Remark=final
func.func @branch(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %f1 = math.tanh %x : tensor<1x2xf32>
  %n1 = norm.rms_norm %f1 axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %h = arith.addf %x, %n1 : tensor<1x2xf32>
  %f2 = math.tanh %h : tensor<1x2xf32>
  %n2 = norm.rms_norm %f2 axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %g = arith.addf %h, %n2 : tensor<1x2xf32>
  %y = norm.rms_norm %g axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  return %y : tensor<1x2xf32>
}

// 2.17, sandwich: x + norm(F(norm(x))); the sum is what the next block's first
// norm reads. No norm is moved.
// CHECK: [Analysis] placement {{.*}}Function=sandwich | Remark=pre
// CHECK: [Analysis] placement {{.*}}Function=sandwich | Remark=sandwich
// CHECK: [Analysis] placement {{.*}}Function=sandwich | Remark=pre
// CHECK: [Analysis] placement {{.*}}Function=sandwich | Remark=sandwich
// IR-LABEL: func @sandwich
// IR: %[[N:.*]] = norm.rms_norm %arg0 axes
// IR: %[[F:.*]] = math.tanh %[[N]]
// IR: %[[M:.*]] = norm.rms_norm %[[F]] axes
// IR: %[[P:.*]], %[[S:.*]] = norm.rms_norm %[[M]] residual(%arg0 : tensor<1x2xf32>)
// IR: %[[G:.*]] = math.tanh %[[P]]
// IR: %[[Q:.*]] = norm.rms_norm %[[G]] axes
// IR: arith.addf %[[S]], %[[Q]]
func.func @sandwich(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {
  %n1 = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %f1 = math.tanh %n1 : tensor<1x2xf32>
  %m1 = norm.rms_norm %f1 axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %h = arith.addf %x, %m1 : tensor<1x2xf32>
  %n2 = norm.rms_norm %h axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %f2 = math.tanh %n2 : tensor<1x2xf32>
  %m2 = norm.rms_norm %f2 axes [1] epsilon inside_sqrt 1.0e-5 : tensor<1x2xf32> -> tensor<1x2xf32>
  %g = arith.addf %h, %m2 : tensor<1x2xf32>
  return %g : tensor<1x2xf32>
}
