//===- Contraction.h - Sums of products with weights ---------- -*- C++ -*-===//
//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Convolutions and matmuls, in whatever layout: a linalg op that adds up
// products of its two inputs. The indexing maps say all that folding asks, so
// no named op is named here.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_LIB_TRANSFORMS_FOLD_CONTRACTION_H
#define NORM_LIB_TRANSFORMS_FOLD_CONTRACTION_H

#include "Norm/Analysis/Constants.h"
#include "Norm/Analysis/ElementView.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::norm::fold {

/// What the body of a linalg op computes.
enum class BodyKind {
  Other,
  Products, ///< out + a * b, where a and b may be widened before
  Quantized ///< the same with integers, or with integers made floats
};
BodyKind bodyKind(linalg::LinalgOp op);

/// `dims` of `tensor` without those of extent 1, which index nothing.
SmallVector<int64_t> properDims(Value tensor, ArrayRef<int64_t> dims);
/// Whether `dims` of `tensor` are static and have `count` elements in all.
bool haveExtent(Value tensor, ArrayRef<int64_t> dims, int64_t count);

/// The loops that index the dimensions `dims` of an operand or result read
/// through `map`. nullopt unless each of them is one loop on its own, which
/// indexes nothing else in the map.
std::optional<SmallVector<unsigned>> loopsOf(AffineMap map,
                                             ArrayRef<int64_t> dims);
/// The dimensions that the loops index, under the same condition.
std::optional<SmallVector<int64_t>> dimsOf(AffineMap map,
                                           ArrayRef<unsigned> loops);

/// How dimensions that go together, in row-major order, pass through an op that
/// only moves elements (tensor.collapse_shape, expand_shape, cast, an
/// extract_slice of other dimensions; linalg.transpose): those of the result in
/// terms of those of the operand, and back. Dimensions of extent 1 come and go.
/// nullopt for any other op, or where a dimension is merged with others.
std::optional<SmallVector<int64_t>> dimsAfter(Operation *op,
                                              ArrayRef<int64_t> dims);
std::optional<SmallVector<int64_t>> dimsBefore(Operation *op,
                                               ArrayRef<int64_t> dims);

/// The elements of `tensor`, if they are constants that vary along `dims`
/// alone: row-major over `dims`, whose extents are static.
std::optional<SmallVector<double>> constantAlong(Value tensor,
                                                 ArrayRef<int64_t> dims);
/// The same for the element that `view` reads.
std::optional<SmallVector<double>>
constantAlong(const elements::ViewAnalysis &views, const elements::View &view,
              ArrayRef<int64_t> dims);

/// Numbers of one operand dimension after the other, times those of the
/// weights: `weights[i] * factors[position of i along dims]`.
SmallVector<double> scaleAlong(const ConstantTensor &weights,
                               ArrayRef<int64_t> dims,
                               ArrayRef<double> factors);

/// The sums of `weights[i] * addends[position of i along dims]`, over all but
/// the dimensions `kept` of the weights, row-major over those.
SmallVector<double> sumAlong(const ConstantTensor &weights,
                             ArrayRef<int64_t> dims, ArrayRef<double> addends,
                             ArrayRef<int64_t> kept);

/// Whether each number is finite, rounded to `type`.
bool isFiniteIn(ArrayRef<double> values, Type type);

/// The map of a tensor that is read along `dims` of a value with `rank`.
AffineMap mapOver(MLIRContext *context, int64_t rank, ArrayRef<int64_t> dims);
/// An elementwise op of the shape of `like`, with another element type.
Value buildElementwise(
    OpBuilder &builder, Location loc, ValueRange inputs,
    ArrayRef<AffineMap> inputMaps, Value like, Type elementType,
    llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body);
/// A tensor like `like` whose elements vary along `dims` alone.
Value broadcastConstant(OpBuilder &builder, Location loc,
                        ArrayRef<double> values, ArrayRef<int64_t> dims,
                        Value like);
/// `tensor` plus constants that vary along `dims` alone.
Value addConstant(OpBuilder &builder, Location loc, Value tensor,
                  ArrayRef<double> values, ArrayRef<int64_t> dims);

/// The op again, before it, with another operand in two places.
linalg::LinalgOp cloneWith(RewriterBase &rewriter, linalg::LinalgOp op,
                           OpOperand &weight, Value newWeight, Value newInit);

/// Erases `op` if it is dead, and then what it alone kept alive.
void eraseDead(RewriterBase &rewriter, Operation *op);

} // namespace mlir::norm::fold

#endif // NORM_LIB_TRANSFORMS_FOLD_CONTRACTION_H
