// RUN: norm-opt %s --norm-generalize=cut=true --split-input-file --verify-diagnostics

// expected-error @below {{expected one named norm in a function that is cut, got 2}}
func.func @two(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-3 : tensor<?x6xf32> -> tensor<?x6xf32>
  %z = norm.rms_norm %y axes [1] epsilon inside_sqrt 1.0e-3 : tensor<?x6xf32> -> tensor<?x6xf32>
  return %z : tensor<?x6xf32>
}

// -----

func.func @nested(%x: tensor<?x6xf32>, %if: i1) -> tensor<?x6xf32> {
  %r = scf.if %if -> tensor<?x6xf32> {
    // expected-error @below {{expected to be in the only block of the function that is cut}}
    %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-3 : tensor<?x6xf32> -> tensor<?x6xf32>
    scf.yield %y : tensor<?x6xf32>
  } else {
    scf.yield %x : tensor<?x6xf32>
  }
  return %r : tensor<?x6xf32>
}

// -----

func.func private @other()
func.func @effects(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  // expected-error @below {{expected no effects in a function that is cut}}
  func.call @other() : () -> ()
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-3 : tensor<?x6xf32> -> tensor<?x6xf32>
  return %y : tensor<?x6xf32>
}

// -----

// expected-error @below {{expected no uses of a function that is cut}}
func.func @used(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-3 : tensor<?x6xf32> -> tensor<?x6xf32>
  return %y : tensor<?x6xf32>
}
func.func @user(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %y = func.call @used(%x) : (tensor<?x6xf32>) -> tensor<?x6xf32>
  return %y : tensor<?x6xf32>
}

// -----

func.func private @f.0()
// expected-error @below {{expected no other '@f.0'}}
func.func @f(%x: tensor<?x6xf32>) -> tensor<?x6xf32> {
  %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-3 : tensor<?x6xf32> -> tensor<?x6xf32>
  return %y : tensor<?x6xf32>
}
