//===- Passes.td - Passes on norm ops --------------------------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_PASSES_TD
#define NORM_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerNormToLinalgPass : Pass<"norm-lower-to-linalg"> {
  let summary = "decompose norm ops to linalg, whole or in a tile";
  let description = [{
    Replaces each norm op by `linalg.generic` ops on tensors: the sum, the
    statistics (corrected two-pass where the op subtracts a mean), and one
    elementwise op for the rest. Works on a whole op as on a tile of it. The
    order of the sums is the consumer's: `norm-vectorize` gives them a fixed,
    blocked one, plain loops add one element after the other.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

def ConfigureNormPass : Pass<"norm-configure"> {
  let summary = "choose how each norm is tiled and vectorized";
  let description = [{
    Writes the strategy of each norm op that has none as the attribute
    `norm.strategy`, and says why in a remark. What decides the order of a sum
    (`columns`) follows from the reduced extents, the types and the target
    alone; `rows` and `parallel` also from the kept extents. This is the only
    place with a cost model.
  }];
  let options = [
    Option<"rows", "rows", "int64_t", "0",
           "rows of a tile; 0 chooses">,
    Option<"columns", "columns", "int64_t", "0",
           "columns of a vector, a power of two; 0 chooses">,
    Option<"serialBytes", "serial-bytes", "int64_t", "262144",
           "largest number of bytes read and written that stays on one thread">
  ];
}

def TileNormPass : Pass<"norm-tile"> {
  let summary = "tile norms over their kept axes as their strategy says";
  let description = [{
    Wraps each norm op that carries `norm.strategy` in an `scf.forall` over
    tiles of its kept axes, fuses elementwise linalg producers and consumers
    into it, and moves the attribute to the loop. A reduced axis is never cut.

    ```mlir
    %y = scf.forall (%i) = (0) to (4096) step (4) shared_outs(%o = %init) -> (tensor<4096x768xf32>) {
      %xt = tensor.extract_slice %x[%i, 0] [4, 768] [1, 1] : ...
      %yt = norm.rms_norm %xt axes [1] ... : tensor<4x768xf32> -> tensor<4x768xf32>
      scf.forall.in_parallel { tensor.parallel_insert_slice %yt into %o[%i, 0] ... }
    } {norm.strategy = #norm.cpu<rows = 4, columns = 32, parallel = true>}
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def VectorizeNormTilesPass : Pass<"norm-vectorize"> {
  let summary = "bring the linalg ops of a tile into the shared vector form";
  let description = [{
    Inside each loop over tiles that carries `norm.strategy`: sweeps over the
    reduced axes in steps of C columns, with `vector<RxC>` accumulators that are
    folded every 128 steps, then `vector.multi_reduction`; elementwise ops are
    recomputed in each sweep, results are written in the last. Columns beyond a
    tile are masked. Fails with an error at the first op of a tile that it
    cannot bring into this form.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def MapToRegistersPass : Pass<"norm-map-to-registers"> {
  let summary = "lower the vector form of tiles for a CPU";
  let description = [{
    Runs on buffers. Reductions of a vector's columns become a fixed tree of
    shuffles and additions, never an ordered chain, and loops over tiles that
    their strategy keeps on one thread become `scf.for`. Consumes
    `norm.strategy`.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def RaiseNormPass : Pass<"norm-raise"> {
  let summary = "find decomposed normalizations and raise them to norm ops";
  let description = [{
    Recognizes normalizations that a frontend decomposed into `linalg`, `arith`
    and `math` on tensors. What an element is made of decides, not how the IR
    spells it: reshapes that move unit dimensions, broadcasts, transposes and
    casts are looked through, and values may have any number of uses. A mean, a
    statistic or a factor that others use becomes a result of the op.

    Where something looks like a norm and is none (the mean of another value,
    another divisor, an epsilon known only at run time, ...), nothing is raised
    and a `missed` remark of category `norm-raise`, named for the first failed
    condition, says why.

    `statistics` says what becomes of statistics that the IR takes in a 16-bit
    type: `keep` makes it the op's compute type, `widen` drops it.
  }];
  let options = [
    Option<"statistics", "statistics", "::mlir::norm::StatisticsMode",
           /*default=*/"::mlir::norm::StatisticsMode::Keep",
           "What to do with statistics taken in a 16-bit type",
           [{::llvm::cl::values(
             clEnumValN(::mlir::norm::StatisticsMode::Keep, "keep",
                        "make it the op's compute type"),
             clEnumValN(::mlir::norm::StatisticsMode::Widen, "widen",
                        "use the op's default compute type"))}]>
  ];
  let dependentDialects = [
    "::mlir::norm::NormDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // NORM_TRANSFORMS_PASSES_TD
