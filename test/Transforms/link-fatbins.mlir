// RUN: norm-opt %s --norm-link-fatbins --split-input-file | FileCheck %s

// One header, of the length of all images; the first object's properties. An
// image is 16 bytes here.
// CHECK-LABEL: module @two
// CHECK: gpu.binary @kernel  [#gpu.object<#nvvm.target<chip = "sm_80">, properties = {O = 3 : i32}, "P\EDU\BA\01\00\10\00 \00\00\00\00\00\00\00image for sm_80 image for sm_90 ">]
module @two {
  gpu.binary @kernel [
    #gpu.object<#nvvm.target<chip = "sm_80">, properties = {O = 3 : i32}, "P\EDU\BA\01\00\10\00\10\00\00\00\00\00\00\00image for sm_80 ">,
    #gpu.object<#nvvm.target<chip = "sm_90">, "P\EDU\BA\01\00\10\00\10\00\00\00\00\00\00\00image for sm_90 ">]
}

// -----

// One object stays as it is, whatever it is.
// CHECK-LABEL: module @one
// CHECK: gpu.binary @kernel  [#gpu.object<#nvvm.target, assembly = "text">]
module @one {
  gpu.binary @kernel [#gpu.object<#nvvm.target, assembly = "text">]
}
