//===- Passes.td - Passes on norm ops --------------------------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_PASSES_TD
#define NORM_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def IsaOption
    : Option<"isa", "isa", "::mlir::norm::CpuIsa",
             "::mlir::norm::CpuIsa::X86",
             "the instructions that the CPU is known to have", [{
               ::llvm::cl::values(
                 clEnumValN(::mlir::norm::CpuIsa::Any, "any",
                            "those of any CPU"),
                 clEnumValN(::mlir::norm::CpuIsa::X86, "x86",
                            "those of any x86-64"),
                 clEnumValN(::mlir::norm::CpuIsa::Avx512, "avx512",
                            "AVX-512 with BW"))}]>;

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
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

def SpecializePass : Pass<"norm-specialize", "::mlir::ModuleOp"> {
  let summary = "make versions of functions for extents that are known";
  let description = [{
    Code for an extent that is known takes less time: short rows stay in
    registers, and there is no last piece under a mask. A public function lists
    in `norm.versions` the argument types that are worth a version of it, with
    more static extents than its own. Each version is a function of its own,
    marked with `norm.version_of`; norm ops, elementwise ops and linalg ops in it
    get the static extents.

    `norm-entry-abi` makes the function call the first version whose extents its
    arguments have, and otherwise do what it did. Rows are summed in the same
    order in every version, so results of row norms have the same bits.

    ```mlir
    func.func @f(%x: tensor<?x?xf32>) -> tensor<?x?xf32>
        attributes {norm.versions = [[tensor<?x64xf32>], [tensor<?x128xf32>]]} {
      %y = norm.rms_norm %x axes [1] epsilon inside_sqrt 1.0e-6
           : tensor<?x?xf32> -> tensor<?x?xf32>
      return %y : tensor<?x?xf32>
    }
    // gains
    func.func @f__v0(%x: tensor<?x64xf32>) -> tensor<?x64xf32>
        attributes {norm.version_of = @f}
    func.func @f__v1(%x: tensor<?x128xf32>) -> tensor<?x128xf32>
        attributes {norm.version_of = @f}
    ```

    Run `inline` first: what is called is not changed. Fails where a version is
    not for as many arguments, or not for more static extents of their types.
  }];
  let dependentDialects = [
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numVersions", "versions", "Number of versions made">
  ];
}

def MergeAxesPass : Pass<"norm-merge-axes"> {
  let summary = "make one axis of neighbouring axes that a norm treats alike";
  let description = [{
    Adjacent axes that a norm reduces, that no group splits, and along both or
    neither of which scale and shift vary, lie in a row in memory and are one to
    the norm: height and width of an image, the whole of a channel-last batch. The
    op gets one axis in their place, between reshapes; elementwise neighbours
    lose the same loops, so that only reshapes of arguments and results are left,
    which `norm-entry-abi` takes in.

    Kept axes stay as they are: they may lie apart in memory, as the heads of
    packed projections do. An op is left alone, with a remark, where a neighbour
    tells its axes apart, or where x or what is read of a result is a slice.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::norm::NormDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def SplitGradientsPass : Pass<"norm-split-gradients"> {
  let summary = "make gradients that sum over different axes ops of their own";
  let description = [{
    The gradient of x sums along the axes of the statistics, those of scale and
    shift along all axes but the affine ones. Where these differ, as in a group
    norm, no tile can hold both: the op is left with dx, and dscale and dshift
    come from a `norm.backward_moments` of their own, with statistics of
    `norm.moments` and `norm.rstd` where none are saved. Nothing changes where
    they are the same, as in a batch norm, nor where scale and shift lie along
    the reduced, innermost axes, as in a layer norm: there a tile is a range of
    rows, see `norm-tile`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::norm::NormDialect", "::mlir::tensor::TensorDialect"
  ];
}

def ConfigureNormPass : Pass<"norm-configure"> {
  let summary = "choose how each norm is tiled and vectorized";
  let description = [{
    Writes the strategy of each norm op that has none as the attribute
    `norm.strategy`, and says why in a remark. What decides the order of a sum
    (`columns`, `range`) follows from the reduced extents, the types and the
    target alone; the rest also from the kept extents. This is the only place
    with a cost model; docs/CostModel.md and docs/GPU.md give its reasons.
  }];
  let dependentDialects = ["::mlir::norm::NormDialect"];
  let options = [
    Option<"target", "target", "::mlir::norm::ConfigureTarget",
           "::mlir::norm::ConfigureTarget::Cpu", "what the code is for", [{
             ::llvm::cl::values(
               clEnumValN(::mlir::norm::ConfigureTarget::Cpu, "cpu",
                          "a CPU: #norm.cpu"),
               clEnumValN(::mlir::norm::ConfigureTarget::Gpu, "gpu",
                          "a GPU: #norm.gpu; norms that no kernel computes are "
                          "errors"))}]>,
    Option<"chip", "chip", "std::string", "\"sm_90\"", "the GPU">,
    Option<"rows", "rows", "int64_t", "0",
           "rows of a tile on a CPU; 0 chooses">,
    Option<"columns", "columns", "int64_t", "0",
           "columns of a vector on a CPU, a power of two, rows * columns at most "
           "1024; 0 chooses">,
    IsaOption,
    Option<"serialBytes", "serial-bytes", "int64_t", "262144",
           "largest number of bytes read and written that stays on one thread">,
    Option<"streamBytes", "stream-bytes", "int64_t", "4194304",
           "largest number of bytes read and written whose results are stored "
           "through the caches: the sum of the last private caches of the "
           "threads">
  ];
}

def TileNormPass : Pass<"norm-tile"> {
  let summary = "tile norms over their kept axes as their strategy says";
  let description = [{
    Wraps each norm op that carries `norm.strategy` in an `scf.forall` over
    tiles of its kept axes, fuses its neighbours into it, and moves the attribute
    to the loop. A reduced axis is never cut. Neighbours are elementwise linalg
    producers and consumers, rows' maxima, minima and sums, the parts of a row
    that a rotary embedding reads, and a norm that one other norm alone reads.

    Gradients of scale and shift that lie along the reduced, innermost axes are
    sums over rows. Then a tile is a range of up to `range` rows, which gives dx
    and a partial row of each sum; a second loop adds the partial rows in order.
    Ranges follow from the extents alone, known or not: about 16 or more, of
    4 rows or more.

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
    "::mlir::cf::ControlFlowDialect", "::mlir::gpu::GPUDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def VectorizeNormTilesPass : Pass<"norm-vectorize"> {
  let summary = "bring the linalg ops of a tile into the shared vector form";
  let description = [{
    Inside each loop over tiles that carries `norm.strategy`: sweeps over the
    axes that are reduced or longer than a vector, in steps of C columns, with
    `vector<RxC>` accumulators that are folded every 32 steps, then
    `vector.multi_reduction`; elementwise ops are recomputed in each sweep,
    outside the loops they do not vary along; results are written in the last.
    Columns beyond a tile are masked. A tile with sums over its rows is walked R
    rows at a time, then row by row, in `scf.for` loops that carry
    `norm.strategy` too; the last sweep adds row after row to such a sum. Fails with an error at the first op of a
    tile that it cannot bring into this form.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def MapToRegistersPass : Pass<"norm-map-to-registers"> {
  let summary = "lower the vector form of tiles for a CPU";
  let description = [{
    Runs on buffers, on the loops over tiles that carry a strategy:

    - Reductions of a vector's columns become fixed trees of shuffles and
      additions, never an ordered chain. The rows of a vector are combined
      together and end in one vector, each with the bits that it has alone.
    - On x86-64, sweeps over bf16 elements compute on even and odd columns apart,
      which a shift and a mask take from 32-bit words. With `isa=avx512`, three or
      more sums of the same 16 rows of up to 16 elements are sums of registers
      with a lane for each row. Neither changes a bit.
    - Where the strategy says `stream_bytes`, results are stored past the caches:
      in whole, aligned cache lines, if the loop touches more bytes than that.
      What only run time knows of sizes and addresses is decided there, between
      two forms of the sweep that stores. Such a loop gets the attribute
      `norm.streams`; its stores are ordered with others by a fence only, which
      norm-spread-tiles makes.
    - Where it says `prefetch`, a sweep that stores fetches what the next tile
      reads.
  }];
  let options = [
    IsaOption
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::ub::UBDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def SpreadTilesPass : Pass<"norm-spread-tiles"> {
  let summary = "spread tiles over threads as their strategy says";
  let description = [{
    Runs on buffers, on the loops over tiles that carry a strategy, and removes
    it. `parallel` ones become OpenMP loops, each thread taking one run of tiles;
    where the strategy names `serial_bytes`, one thread takes all of a loop that
    touches no more (OpenMP's `if`). Others become `scf.for`. Where results are
    stored past the caches (`norm.streams`), every thread ends with a store
    fence. In a loop from the last rows to the first (`norm.mirrored`), threads take
    runs in the opposite order, so that each gets rows that it has had before.
  }];
  let options = [
    Option<"threads", "threads", "bool", "true",
           "use threads; else every loop becomes sequential">,
    IsaOption
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::omp::OpenMPDialect",
    "::mlir::scf::SCFDialect"
  ];
}

def MaskIntegersPass : Pass<"norm-mask-integers"> {
  let summary = "make masked accesses of 16-bit floats ones of integers";
  let description = [{
    Runs on the LLVM dialect. Loads and stores under a mask move vectors of i16
    in place of f16 and bf16, which LLVM 22 cannot always select.

    With `words`, those of elements of 8 and 16 bits whose mask leaves the first
    ones move 32-bit words, and what is left of a word by itself: AVX and AVX2
    have masks for no less, and LLVM makes a branch for each element.
  }];
  let options = [
    Option<"words", "words", "bool", "false",
           "move 32-bit words where elements are narrower">
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def ExpandBF16Pass : Pass<"norm-expand-bf16"> {
  let summary = "compute casts from and to bf16 on their bits";
  let description = [{
    Rewrites `arith.extf` from bf16 and `arith.truncf` from f32 to bf16 as integer
    arithmetic, rounding to nearest, ties to even; a NaN stays one. Where a CPU
    has no such instruction, LLVM 22 calls a function for each element, and takes
    vectors of bf16 apart.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def BF16AsI16Pass : Pass<"norm-bf16-as-i16"> {
  let summary = "make i16 of bf16 where nothing computes with it";
  let description = [{
    Runs on the LLVM dialect. Where bf16 is only moved, as LLVM would round its
    elements again as it moves them about in vectors, it becomes i16. Nothing
    changes if functions take or return bf16, in registers of floats, or if an op
    is left that computes with it.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def AlignStackPass : Pass<"norm-align-stack"> {
  let summary = "align the stack of functions that hold wide vectors";
  let description = [{
    Runs on the LLVM dialect. Functions with vectors of more than 16 bytes, which
    is what ABIs align stacks to, get LLVM's attribute `stackrealign`: else what
    LLVM 22 spills of them is aligned no better, since it gives away the frame
    pointer before it knows what it will spill. A register of 32 bytes then lies
    across two pages wherever the stack happens to begin so, which made a layer
    norm 2.7 times slower in one process of eight on a Zen 3.
  }];
}

def PlainCastsPass : Pass<"norm-plain-casts"> {
  let summary = "take fast-math flags off casts of floats";
  let description = [{
    LLVM 22 has no flags on `llvm.fpext` and `llvm.fptrunc`: what upstream leaves
    there of `arith.extf` and `arith.truncf` cannot be translated to LLVM IR.
  }];
}

def MapToThreadsPass : Pass<"norm-map-to-threads", "::mlir::ModuleOp"> {
  let summary = "lower the vector form of rows to GPU kernels";
  let description = [{
    Runs on buffers. Each loop over rows that carries a `#norm.gpu` strategy
    becomes a `gpu.launch` whose threads hold the row's vectors in pieces, as
    the strategy says (docs/GPU.md):

    - A vector of C columns becomes k vectors of V elements in each thread; what
      does not vary along columns is computed by every thread of the row.
    - Reductions that do not wait for each other share one exchange: a fixed
      tree in the thread, another over the warp, and above 32 threads a third
      over the warps, with one barrier.
    - The last pieces of a row are guarded; so are rows beyond the last one of a
      block, and nothing is launched for no rows.
    - With `staging = shared` the first sweep over a row puts into shared memory
      what later ones need of it, in the narrowest type that it passes through:
      the rounded sum of two rows, for instance, or else the rows themselves.

    Vectors are moved by whole accesses where all addresses are aligned to them.
    With `alignment=check` each loop becomes two launches, and the host decides
    by the pointers and strides which one runs: the other moves element by
    element, in the same layout and with the same bits.

    Buffers that the loop writes must not overlap others, as norm-entry-abi has
    it. Fails, with one error that names the op, on what cannot be distributed.

    With `stream` every function with a body takes one more argument, the
    stream (`!llvm.ptr`) on which its kernels are launched; an op outside of
    them that accesses buffers is then an error.
  }];
  let options = [
    Option<"alignment", "alignment", "::mlir::norm::GpuAlignment",
           "::mlir::norm::GpuAlignment::Check", "what is known of addresses", [{
             ::llvm::cl::values(
               clEnumValN(::mlir::norm::GpuAlignment::Check, "check",
                          "nothing: the host checks"),
               clEnumValN(::mlir::norm::GpuAlignment::Promised, "promised",
                          "rows are aligned to whole accesses: the caller's "
                          "promise"))}]>,
    Option<"stream", "stream", "bool", "false",
           "take the stream as the last argument of every function">,
    Option<"chip", "chip", "std::string", "\"sm_90\"",
           "the GPU whose shared memory holds rows">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def GpuKernelAbiPass : Pass<"norm-gpu-kernel-abi", "::mlir::ModuleOp"> {
  let summary = "say what is known of a kernel's pointers, and check the kernel";
  let description = [{
    Runs on kernels in the LLVM dialect (after `convert-gpu-to-nvvm`) whose
    `gpu.launch_func` still passes memrefs. On the pointers to each buffer:

    - `llvm.readonly` where the kernel only reads it;
    - `llvm.noalias` where no other argument of the kernel is the same buffer or
      part of it, or all of them are only read. Different buffers are
      allocations and, with `distinct`, arguments of the host's function: what
      norm-entry-abi promises.

    A block size that all launches of a kernel agree on becomes `nvvm.reqntid`,
    with `nvvm.minctasm` blocks that are 640 threads together, which leaves a
    thread 96 registers, or 512 where rows are shifted. Dynamic shared memory
    becomes external, which no variable follows, and starts at whole accesses.
    Alignment stays with the accesses: it is an element's at the buffer's
    offset, which need not be the pointer's.

    Fails on an op of another dialect than LLVM or NVVM, and on a call of a
    function that the module does not define: its name is in the error.
  }];
  let options = [
    Option<"distinct", "distinct", "bool", "false",
           "arguments of the host's functions that are written overlap no other">
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def LinkFatbinsPass : Pass<"norm-link-fatbins", "::mlir::ModuleOp"> {
  let summary = "one fatbin for all targets of a kernel";
  let description = [{
    Runs after `gpu-module-to-binary`, which makes an object for each target of
    a `gpu.module`; the translation to LLVM IR embeds one of them. Objects that
    are fatbins become one fatbin with the images of all, from which the driver
    takes what fits the device. The target, properties and kernels are the first
    object's.

    Fails on several objects that are not all fatbins.
  }];
}

def FuseResidualPass : Pass<"norm-fuse-residual"> {
  let summary = "make the addition that feeds a norm its residual operand";
  let description = [{
    A norm of the sum of two tensors takes both as `x` and `residual`; other
    users of the sum use the op's `sum` result, and the addition is gone (F1).
    What is normalized keeps its rounding: a sum that the IR rounds to its type
    is a `stored` one (the default), a sum of narrow operands that is formed and
    normalized in the compute type is `sum_rounding compute`. A cast between
    addition and norm belongs to the sum.

    The later operand becomes `x`, the earlier one, the residual stream, the
    residual. One that is repeated along some axis is the residual, by a
    `linalg.broadcast`; a bias that is added for the norm alone stays outside.

    Where a gradient is added to the dx of a backward op it becomes its `dsum`,
    if dx was not rounded in between (F11).

    `missed` remarks say why an addition stays outside; others name the placement
    of each norm: none, pre, post, branch, sandwich or final.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::norm::NormDialect", "::mlir::tensor::TensorDialect"
  ];
}

def SimplifyNormPass : Pass<"norm-simplify"> {
  let summary = "rewrite norms and their neighbours to less work";
  let description = [{
    Applies the rewrites of docs/Rewrites.md that `canonicalize` leaves out. Each
    has a gate: `E` keeps every bit, `R` is equal in real arithmetic, `N` needs
    more (no NaN, no infinity, no signed zero). The default, `fp-policy=strict`,
    applies E alone.

    A rewrite that matches but may not apply leaves a `missed` remark of category
    `norm-simplify`, named `<rule>.<condition>` for the first condition that does
    not hold; one that applies leaves a `passed` remark named `<rule>`.
  }];
  let options = [
    Option<"policy", "fp-policy", "::mlir::norm::FpPolicy",
           /*default=*/"::mlir::norm::FpPolicy::Strict",
           "What a rewrite may change",
           [{::llvm::cl::values(
             clEnumValN(::mlir::norm::FpPolicy::Strict, "strict",
                        "nothing: results keep every bit (gate E)"),
             clEnumValN(::mlir::norm::FpPolicy::Real, "real",
                        "how results round (gates E and R)"))}]>,
    Option<"nnan", "nnan", "bool", "false", "values are not NaN (gate N)">,
    Option<"ninf", "ninf", "bool", "false", "values are not infinite (gate N)">,
    Option<"nsz", "nsz", "bool", "false",
           "the sign of a zero does not matter (gate N)">,
    Option<"unifyKinds", "unify-kinds", "bool", "false",
           "write group and instance norms as the plainest op with the same "
           "statistics (C15); hides which norm was written">,
    Option<"rotations", "rotations", "bool", "false",
           "move an RMS norm before a multiplication by a constant orthogonal "
           "matrix (C31)">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::norm::NormDialect", "::mlir::tensor::TensorDialect"
  ];
}

def FoldBatchNormPass : Pass<"norm-fold-batch-norm"> {
  let summary = "fold batch norm inference into convolutions and matmuls";
  let description = [{
    Multiplies the constant weights of a convolution or matmul by the factors of
    the `norm.batch_norm_inference` that follows (C17) or precedes (C18) it, and
    makes the rest a bias. Constants are folded in f64 and rounded once. Equal in
    real arithmetic; asking for the pass is asking for that.

    Never across an activation, a cast, padding that the shift would have to
    reach, or weights that are quantized or not constant: a `missed` remark of
    category `norm-fold-batch-norm` says why.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::norm::NormDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def FoldAffinePass : Pass<"norm-fold-affine"> {
  let summary = "fold a norm's scale and shift into the matmuls that follow";
  let description = [{
    Multiplies the constant weights of every matmul or convolution that reads a
    norm by the norm's constant gain, and adds what its shift contributes as a
    bias (C18, C19). All consumers are rewritten or none. Constants are folded in
    f64 and rounded once. Equal in real arithmetic; asking for the pass is asking
    for that. A `missed` remark of category `norm-fold-affine` says why a norm
    keeps its scale and shift.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::norm::NormDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def GeneralizeNormPass : Pass<"norm-generalize", "::mlir::ModuleOp"> {
  let summary = "rewrite named norms in the statistics algebra";
  let description = [{
    Replaces each named norm by what it is made of:

    ```
    forward    moments, rstd, normalize; update_running for both running
               statistics
    backward   moments and rstd where they are not saved, backward_moments,
               backward_normalize
    ```

    A residual is added, and `dsum` to dx, by `linalg.generic`; groups are a view
    of x. Between the ops statistics are f64, whatever the compute type.

    With `parts` the rows are divided: `axis` of x is cut into that many
    contiguous parts, from `floor(p * n / parts)` on, some of them empty where it
    is shorter. Moments are those of each part, merged by `combine_moments`; the
    sums of a gradient are added part after part.

    With `cut` x is itself one of several parts, and each function that holds a
    named norm is cut where the parts exchange statistics. `@f` becomes `@f.0`,
    `@f.1`, ...; see docs/Sync.md for their arguments and results.

    Fails, with one error, where `axis` is not reduced or is split into groups,
    where a norm that subtracts a mean in f16 or bf16 is divided, where
    `affine_in result` is used with a sum of another type than x's, and on
    functions that cannot be cut.
  }];
  let options = [
    Option<"parts", "parts", "int64_t", "0",
           "number of parts that rows are cut into; 0 leaves them whole">,
    Option<"axis", "axis", "int64_t", "-1",
           "axis of x that parts divide; -1 takes the first reduced one">,
    Option<"cut", "cut", "bool", "false",
           "cut functions where programs exchange statistics">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::func::FuncDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::norm::NormDialect", "::mlir::tensor::TensorDialect"
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

def EntryAbiPass : Pass<"norm-entry-abi", "::mlir::ModuleOp"> {
  let summary = "give public functions the calling convention of compiled code";
  let description = [{
    Runs on tensor IR, just before bufferization, on each public function that
    has a body. Afterwards

    - a tensor argument is a strided memref that is only read,
    - tensor results are contiguous memrefs after the arguments, in result
      order, allocated by the caller; results of other types stay results,
    - the function has `llvm.emit_c_interface`,
    - a result does not share memory with an argument, unless that argument has
      `norm.inplace = <index of the result>` and the result's type: then it may
      be the very same buffer, and is copied to scratch memory first.

    ```mlir
    func.func @f(%x: tensor<?x8xf32>) -> tensor<?xf32>
    // becomes
    func.func @f(%x: memref<?x8xf32, strided<[?, ?], offset: ?>>,
                 %out: memref<?xf32>) attributes {llvm.emit_c_interface}
    ```

    With `strides=dispatch` the body is `@f__unit`, whose arguments have inner
    stride 1. `@f` tests the strides and calls it, or `@f__strided`, which copies
    the arguments to scratch memory first. With `any` there is a general body
    alone, with `unit` the fast one: the caller then promises inner stride 1.

    Where the body merges dimensions of an argument (`tensor.collapse_shape`), a
    view does it if strides allow, which is tested at run time; else the argument
    is copied to scratch memory first. A result whose dimensions were split last
    is computed in a view of its buffer.

    Versions that `norm-specialize` made become private. The function that they
    are versions of tests extents and calls the first one that they fit, or its
    own body, which is `@f__any` then.

    Fails on unranked tensors, on more than one block, on calls that pass
    tensors (run `inline` first) and on norm ops (run `norm-lower-to-linalg`).
  }];
  let options = [
    Option<"strides", "strides", "::mlir::norm::EntryStrides",
           "::mlir::norm::EntryStrides::Dispatch",
           "inner strides of arguments that the entry takes", [{
             ::llvm::cl::values(
               clEnumValN(::mlir::norm::EntryStrides::Dispatch, "dispatch",
                          "any; where one is not 1, arguments are copied"),
               clEnumValN(::mlir::norm::EntryStrides::Any, "any",
                          "any, by one body"),
               clEnumValN(::mlir::norm::EntryStrides::Unit, "unit",
                          "1 only, by one body"))}]>
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect",
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"
  ];
}

def LowerToReferencePass : Pass<"norm-lower-to-reference"> {
  let summary = "lower norm ops to plain f64 loops that round where they must";
  let description = [{
    The oracle inside the compiler, written from the specification and sharing
    no code with `norm-lower-to-linalg`. All arithmetic is in f64 and sums are
    compensated. Values are rounded where the contract says so: the stored sum,
    each step of an f16 or bf16 compute type, the steps of `affine_in result`,
    and the results. Operands, epsilon and scale + offset are cast to the
    compute type, but steps in f32 are not rounded to it in between.
    Gradients round at their results only; the statistics they compute again
    round as the forward op's do.

    Rounding to f16 and bf16 is correct from f64 (no double rounding) and does
    not depend on the target's instructions.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

def SeparateDestinationsPass : Pass<"norm-separate-destinations"> {
  let summary = "give every op a destination of its own";
  let description = [{
    Where one tensor is the destination of several ops, all but the first get
    another: an empty or filled tensor is made again, any other is copied. Runs
    before upstream's empty tensor elimination, which turns a destination into
    the buffer of a result without telling the analysis that follows.
  }];
  let dependentDialects = [
    "::mlir::bufferization::BufferizationDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"
  ];
}

def DecomposeConcatPass : Pass<"norm-decompose-concat"> {
  let summary = "replace tensor.concat by insertions";
  let description = [{
    Replaces each `tensor.concat` by `tensor.insert_slice` ops into one empty
    tensor: bufferization has no model of the former.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def ExpandStridedCopyPass : Pass<"norm-expand-strided-copy"> {
  let summary = "turn copies between strided buffers into loops";
  let description = [{
    Replaces each `memref.copy` whose source or target is not contiguous by a
    `linalg.generic`, so that compiled code needs no runtime library. Copies of
    contiguous buffers stay, and become `memcpy`.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def OutlineParallelBodyPass
    : Pass<"norm-outline-parallel-body", "::mlir::ModuleOp"> {
  let summary = "free OpenMP loops from the stack scopes around their bodies";
  let description = [{
    `convert-scf-to-openmp` wraps each loop body in a `memref.alloca_scope`,
    which cannot be lowered once the body has control flow. A scope without a
    stack allocation is inlined; the body of any other becomes a private
    function, whose frame frees the allocation.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::scf::SCFDialect"];
}

def ExpandNarrowingPass : Pass<"norm-expand-narrowing"> {
  let summary = "round to narrow floats, and widen them, by arithmetic that LLVM keeps";
  let description = [{
    Rewrites `arith.truncf` from f64 to a 16-bit type as f64 to f32 rounded to
    odd, then f32 to the type. The result is the one correctly rounded value;
    the target needs no `__truncdfbf2`, which not every C library has.

    Rewrites `arith.truncf` to and `arith.extf` from f8E4M3FN and f8E5M2, which
    LLVM does not know, as integer arithmetic on their bits: to nearest, ties to
    even, with subnormals; NaN stays NaN, and what overflows f8E4M3FN becomes NaN
    (clamp before).

    Where anything is rounded to f16, `arith.extf` from bf16 becomes a shift of
    its bits: LLVM would narrow sums and products of bf16 values to f16, whose
    range is smaller.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"
  ];
}

def ReportPass : Pass<"norm-report"> {
  let summary = "say what each norm computes and what was chosen for it";
  let description = [{
    Prints, for each norm op: the function and location; kind, axes, number of
    elements per statistic, affine axes; epsilon and its place; compute type,
    element types and where values are rounded; residual and stored sum; the
    statistics asked for; the strategy; the number of parameters (elements of
    scale and shift), with their range where they are constants. Then kind, axes
    and compute type of gradients and of the ops of the statistics algebra, and
    totals.

    Warns of statistics over one element, and of an epsilon that is 0 or
    subnormal in the compute type. Lists what `norm-simplify`,
    `norm-fold-batch-norm`, `norm-fold-affine`, `norm-fuse-residual` and
    `norm-configure` refuse to do with each op, as their `missed` remarks say it:
    each of them runs with its default options on a copy. The IR is not changed.
  }];
  let options = [
    Option<"format", "format", "::mlir::norm::ReportFormat",
           "::mlir::norm::ReportFormat::Text", "text or json",
           [{::llvm::cl::values(
             clEnumValN(::mlir::norm::ReportFormat::Text, "text", "for people"),
             clEnumValN(::mlir::norm::ReportFormat::Json, "json",
                        "keys in a fixed order"))}]>,
    Option<"file", "file", "std::string", "",
           "where the report goes (default: standard output)">
  ];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect",
    "::mlir::norm::NormDialect", "::mlir::tensor::TensorDialect"
  ];
}

#endif // NORM_TRANSFORMS_PASSES_TD
