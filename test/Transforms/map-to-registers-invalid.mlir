// RUN: norm-opt %s --norm-map-to-registers --verify-diagnostics
// RUN: norm-opt %s --norm-spread-tiles --verify-diagnostics

func.func @tensors(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{expected a loop over tiles of buffers, got one that yields tensors: bufferize first}}
  %r = scf.forall (%i) in (8) shared_outs(%o = %x) -> (tensor<8xf32>) {
    %t = tensor.extract_slice %o[%i] [1] [1] : tensor<8xf32> to tensor<1xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %t into %o[%i] [1] [1] : tensor<1xf32> into tensor<8xf32>
    }
  } {norm.strategy = #norm.cpu<rows = 1, columns = 8, parallel = false>}
  return %r : tensor<8xf32>
}
