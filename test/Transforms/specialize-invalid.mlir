// RUN: norm-opt %s --norm-specialize --norm-entry-abi --split-input-file --verify-diagnostics

// expected-error @below {{expected 'norm.versions' to be a list of lists of argument types, got 64 : i64}}
func.func @no_list(%x: tensor<?xf32>) attributes {norm.versions = 64 : i64} {
  return
}

// -----

// expected-error @below {{expected version 1 in 'norm.versions' to be a list of argument types, got [8]}}
func.func @no_types(%x: tensor<?xf32>) attributes {norm.versions = [[tensor<8xf32>], [8]]} {
  return
}

// -----

// expected-error @below {{expected version 0 in 'norm.versions' to be 2 types, got 1}}
func.func @too_few(%x: tensor<?xf32>, %n: index) attributes {norm.versions = [[tensor<8xf32>]]} {
  return
}

// -----

// expected-error @below {{expected version 0 in 'norm.versions' to be 'tensor<?x4xf32>' with more static extents for argument 0, got 'tensor<8x5xf32>'}}
func.func @other_extent(%x: tensor<?x4xf32>) attributes {norm.versions = [[tensor<8x5xf32>]]} {
  return
}

// -----

// expected-error @below {{to be 'tensor<4xf32>' with more static extents for argument 0, got 'tensor<?xf32>'}}
func.func @fewer_extents(%x: tensor<4xf32>) attributes {norm.versions = [[tensor<?xf32>]]} {
  return
}

// -----

// expected-error @below {{to be 'tensor<?xf32>' with more static extents for argument 0, got 'tensor<4xf16>'}}
func.func @other_element(%x: tensor<?xf32>) attributes {norm.versions = [[tensor<4xf16>]]} {
  return
}

// -----

// expected-error @below {{expected one block, got 2}}
func.func @blocks(%x: tensor<?xf32>) attributes {norm.versions = [[tensor<4xf32>]]} {
  cf.br ^next
^next:
  return
}

// -----

// expected-error @below {{expected 'norm.version_of' to name a public function of the same type but for extents, got @none}}
func.func @orphan(%x: tensor<4xf32>) attributes {norm.version_of = @none} {
  return
}

// -----

func.func @general(%x: tensor<?xf32>, %n: index) {
  return
}
// expected-error @below {{expected 'norm.version_of' to name a public function of the same type but for extents, got @general}}
func.func @other_type(%x: tensor<4xf32>) attributes {norm.version_of = @general} {
  return
}
