// RUN: norm-opt %s --norm-link-fatbins --split-input-file --verify-diagnostics

// expected-error @+1 {{'gpu.binary' op has objects for 2 targets, and one is loaded: expected fatbins, to be linked}}
gpu.binary @cubins [
  #gpu.object<#nvvm.target<chip = "sm_80">, bin = "P\EDU\BA\01\00\10\00\01\00\00\00\00\00\00\00a">,
  #gpu.object<#nvvm.target<chip = "sm_90">, bin = "P\EDU\BA\01\00\10\00\01\00\00\00\00\00\00\00b">]

// -----

// Shorter than it says.
// expected-error @+1 {{'gpu.binary' op has objects for 2 targets}}
gpu.binary @cut [
  #gpu.object<#nvvm.target<chip = "sm_80">, "P\EDU\BA\01\00\10\00\01\00\00\00\00\00\00\00a">,
  #gpu.object<#nvvm.target<chip = "sm_90">, "P\EDU\BA\01\00\10\00\02\00\00\00\00\00\00\00b">]

// -----

// expected-error @+1 {{'gpu.binary' op has objects for 2 targets}}
gpu.binary @text [
  #gpu.object<#nvvm.target<chip = "sm_80">, "no fatbin at all">,
  #gpu.object<#nvvm.target<chip = "sm_90">, "no fatbin at all">]
