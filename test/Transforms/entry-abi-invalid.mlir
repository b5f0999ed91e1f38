// RUN: norm-opt %s --norm-entry-abi --split-input-file --verify-diagnostics

// expected-error @below {{expected ranked tensors at the entry, got 'tensor<*xf32>' as argument 1}}
func.func @unranked(%n: index, %x: tensor<*xf32>) -> index {
  return %n : index
}

// -----

// expected-error @below {{expected results to be tensors or scalars, got 'memref<4xf32>' as result 0}}
func.func @memref_result(%x: memref<4xf32>) -> memref<4xf32> {
  return %x : memref<4xf32>
}

// -----

func.func private @g(tensor<4xf32>) -> tensor<4xf32>
func.func @call(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected calls on tensors to be inlined before norm-entry-abi}}
  %y = call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{is still there at bufferization, run norm-lower-to-linalg first}}
  %y = norm.rms_norm %x axes [1] epsilon none : tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// expected-error @below {{expected one block before norm-entry-abi, got 2}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^next
^next:
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected 'norm.inplace' of argument 0 to be the index of one of 1 results, got 1}}
func.func @no_such_result(%x: tensor<4xf32> {norm.inplace = 1}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{expected 'norm.inplace' of argument 0 to name a result of its type 'tensor<4xf32>', got 'tensor<5xf32>'}}
func.func @other_type(%x: tensor<4xf32> {norm.inplace = 0}, %y: tensor<5xf32>)
    -> tensor<5xf32> {
  return %y : tensor<5xf32>
}

// -----

// expected-error @below {{expected one argument with 'norm.inplace' 0, got arguments 0 and 1}}
func.func @shared_twice(%x: tensor<4xf32> {norm.inplace = 0}, %y: tensor<4xf32> {norm.inplace = 0})
    -> tensor<4xf32> {
  return %y : tensor<4xf32>
}
