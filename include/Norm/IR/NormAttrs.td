//===- NormAttrs.td - Attributes of the norm dialect -----------*- tablegen -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_NORMATTRS_TD
#define NORM_IR_NORMATTRS_TD

include "Norm/IR/NormBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Enums: plain keywords in the printed form
//===----------------------------------------------------------------------===//

class Norm_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::norm";
}

def Norm_EpsilonPlacement : Norm_Enum<"EpsilonPlacement",
    "where epsilon enters the normalizing factor of a statistic s", [
  I32EnumAttrCase<"InsideSqrt", 0, "inside_sqrt">,   // 1 / sqrt(s + eps)
  I32EnumAttrCase<"OutsideSqrt", 1, "outside_sqrt">, // 1 / (sqrt(s) + eps)
  I32EnumAttrCase<"MaxInside", 2, "max_inside">,     // 1 / sqrt(max(s, eps))
  I32EnumAttrCase<"MaxOutside", 3, "max_outside">,   // 1 / max(sqrt(s), eps)
  I32EnumAttrCase<"None", 4, "none">                 // 1 / sqrt(s)
]>;

def Norm_AffineIn : Norm_Enum<"AffineIn",
    "type in which scale and shift are applied", [
  I32EnumAttrCase<"Compute", 0, "compute">,
  I32EnumAttrCase<"Result", 1, "result">
]>;

def Norm_SumRounding : Norm_Enum<"SumRounding",
    "whether x + residual is rounded to the sum's type before it is normalized", [
  I32EnumAttrCase<"Stored", 0, "stored">,
  I32EnumAttrCase<"Compute", 1, "compute">
]>;

def Norm_ZeroPolicy : Norm_Enum<"ZeroPolicy",
    "the factor where its denominator is zero: IEEE division, or zero", [
  I32EnumAttrCase<"IEEE", 0, "ieee">,
  I32EnumAttrCase<"Zero", 1, "zero">
]>;

def Norm_Statistic : Norm_Enum<"Statistic",
    "what the normalizing factor is computed from", [
  I32EnumAttrCase<"Variance", 0, "variance">,       // sum (c - m)^2 / (n - correction)
  I32EnumAttrCase<"MeanSquare", 1, "mean_square">,  // sum c^2 / n
  I32EnumAttrCase<"SumSquare", 2, "sum_square">     // sum c^2
]>;

def Norm_About : Norm_Enum<"About", "what squares are summed about", [
  I32EnumAttrCase<"Mean", 0, "mean">, // sum (x - mean)^2
  I32EnumAttrCase<"Zero", 1, "zero">  // sum x^2
]>;

def Norm_Tracked : Norm_Enum<"Tracked", "what a running statistic follows", [
  I32EnumAttrCase<"Mean", 0, "mean">,
  I32EnumAttrCase<"Variance", 1, "variance">
]>;

def Norm_Staging : Norm_Enum<"Staging",
    "where a row stays between its sweeps on a GPU", [
  I32EnumAttrCase<"Registers", 0, "registers">, // whole, spread over threads
  I32EnumAttrCase<"Reread", 1, "reread">,       // chunks, read again from memory
  I32EnumAttrCase<"Shared", 2, "shared">        // chunks, kept in shared memory
]>;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Norm_Attr<string name, string attrMnemonic> : AttrDef<Norm_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Norm_EpsilonAttr : Norm_Attr<"Epsilon", "epsilon"> {
  let summary = "epsilon of a normalization and its place in the factor";
  let description = [{
    The value is kept in f64 whatever the types of the op, and is converted to
    the op's compute type where it is added. Printed `#norm.epsilon<none>` or,
    for instance, `#norm.epsilon<inside_sqrt 1.0e-5>`; in an op's own form the
    clause reads `epsilon inside_sqrt 1.0e-5` or `epsilon none`.
  }];
  let parameters = (ins
    EnumParameter<Norm_EpsilonPlacement>:$placement,
    // Compared bit by bit: a NaN, which the ops refuse, must equal itself.
    APFloatParameter<"">:$value
  );
  let builders = [
    // `value` is ignored for the placement `none`.
    AttrBuilder<(ins "EpsilonPlacement":$placement, "double":$value), [{
      return $_get($_ctxt, placement, ::llvm::APFloat(
          placement == EpsilonPlacement::None ? 0.0 : value));
    }]>
  ];
  let genVerifyDecl = 1;
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The value as a double; 0 for the placement `none`.
    double getDouble() const { return getValue().convertToDouble(); }
    /// Whether epsilon takes part in the factor at all.
    bool isNone() const { return getPlacement() == EpsilonPlacement::None; }
  }];
}

def Norm_CpuStrategyAttr : Norm_Attr<"CpuStrategy", "cpu"> {
  let summary = "how a norm is tiled and vectorized on a CPU";
  let description = [{
    Written by `norm-configure` as the discardable attribute `norm.strategy` of
    a norm op, obeyed by `norm-tile` (which moves it to the loop over tiles)
    and consumed by `norm-vectorize`.

    Two sizes decide the order of sums, and with it bits. They depend on the
    reduced extents, the types and the target alone:

    - `columns`: C, elements of the innermost axis that one vector holds.
    - `range`: the most rows of x whose sums over rows (gradients of scale and
      shift that lie along the row, statistics of the innermost axis' elements)
      one partial result holds; the partial results are added in order. 0: no
      such sums.

    The others do not touch bits and follow from the whole shape as well:

    - `rows`: R, rows of x that one tile holds; R * C is 1024 at most.
    - `parallel`: whether tiles are spread over threads.
    - `serial_bytes`: a loop that touches at most so many bytes stays on one
      thread, where only run time knows.
    - `stream_bytes`: a loop that touches more bytes stores its results past the
      caches; 0: none does.
    - `prefetch`: the cache, 1 or 2, into which a tile fetches what the next one
      reads; 0: none.
    - `split`: whether threads share each tile, block by block of its sweeps, and
      take the tiles one after the other.
  }];
  let parameters = (ins
    "int64_t":$rows, "int64_t":$columns, "bool":$parallel,
    DefaultValuedParameter<"int64_t", "0">:$range,
    DefaultValuedParameter<"int64_t", "0">:$serial_bytes,
    DefaultValuedParameter<"int64_t", "0">:$stream_bytes,
    DefaultValuedParameter<"int64_t", "0">:$prefetch,
    DefaultValuedParameter<"bool", "false">:$split);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Norm_GpuStrategyAttr : Norm_Attr<"GpuStrategy", "gpu"> {
  let summary = "how the rows of a norm are laid over the threads of a GPU";
  let description = [{
    Written by `norm-configure{target=gpu}` as the discardable attribute
    `norm.strategy` of a norm op, obeyed by `norm-tile` (which moves it to the
    loop over rows) and `norm-vectorize`, and consumed by `norm-map-to-threads`.

    C columns of a row, the whole row or a chunk of it, are (k, T, V): element e
    of access j of thread t is column (j * T + t) * V + e. These decide the
    order of sums, and with it bits; they depend on the reduced extents, the
    types and the chip alone:

    - `threads`: T, threads of a row: 4, 8, 16, 32 or a multiple of 32.
    - `accesses`: k, accesses of a thread.
    - `width`: V, elements of an access, a power of two.
    - `columns`: C, above (k-1) * T * V and at most k * T * V.

    The others do not touch bits:

    - `rows`: rows of a block, whole warps together, up to 1024 threads.
    - `staging`: where a row stays from one sweep to the next: `registers`, if
      C is the whole row; by chunks of C, which are k * T * V then, `shared`, in
      the block's shared memory, where each thread finds what it put there, or
      `reread`, from memory.
    - `late_reads`: whether what does not vary along rows (scale and shift) is
      read after the reductions, to save registers.
  }];
  let parameters = (ins
    "int64_t":$threads, "int64_t":$accesses, "int64_t":$width,
    "int64_t":$columns, "int64_t":$rows,
    EnumParameter<Norm_Staging>:$staging,
    DefaultValuedParameter<"bool", "false">:$late_reads);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Threads of a block.
    int64_t getBlockThreads() const { return getThreads() * getRows(); }
    /// Warps that share a row; 1 where a warp has several rows.
    int64_t getRowWarps() const {
      return getThreads() > 32 ? getThreads() / 32 : 1;
    }
  }];
}

#endif // NORM_IR_NORMATTRS_TD
