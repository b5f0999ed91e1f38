//===- Contraction.cpp - Sums of products with weights --------------------===//
//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"

#include "Norm/IR/NormInterfaces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <cmath>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::fold;
using namespace mlir::norm::elements;

//===----------------------------------------------------------------------===//
// Body
//===----------------------------------------------------------------------===//

/// The block argument behind widening casts. Sets `isInteger` where one of them
/// makes an integer a float.
static BlockArgument widenedArgument(Value value, bool &isInteger) {
  for (;;) {
    if (auto arg = dyn_cast<BlockArgument>(value))
      return arg;
    Operation *op = value.getDefiningOp();
    if (!isa<arith::ExtFOp, arith::SIToFPOp, arith::UIToFPOp, arith::ExtSIOp,
             arith::ExtUIOp>(op))
      return {};
    isInteger |= !isa<arith::ExtFOp>(op);
    value = op->getOperand(0);
  }
}

BodyKind fold::bodyKind(linalg::LinalgOp op) {
  if (!op.hasPureTensorSemantics() || op->getNumResults() != 1 ||
      op.getNumDpsInits() != 1 || op.getNumReductionLoops() == 0)
    return BodyKind::Other;
  Block *body = op.getBlock();
  Operation *sum = body->getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::AddIOp>(sum))
    return BodyKind::Other;
  BlockArgument out = body->getArguments().back();
  bool isFirst = sum->getOperand(0) == out;
  if (!isFirst && sum->getOperand(1) != out)
    return BodyKind::Other;
  Operation *product = sum->getOperand(isFirst ? 1 : 0).getDefiningOp();
  // Integers take more steps (zero points): they are not folded into anyway.
  if (isa<arith::AddIOp>(sum))
    return isa_and_present<arith::MulIOp>(product) ? BodyKind::Quantized
                                                   : BodyKind::Other;
  if (!isa_and_present<arith::MulFOp>(product) || op.getNumDpsInputs() != 2)
    return BodyKind::Other;
  bool isInteger = false;
  BlockArgument a = widenedArgument(product->getOperand(0), isInteger);
  BlockArgument b = widenedArgument(product->getOperand(1), isInteger);
  if (!a || !b || a == b || a == out || b == out || a.getOwner() != body ||
      b.getOwner() != body)
    return BodyKind::Other;
  return isInteger ? BodyKind::Quantized : BodyKind::Products;
}

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

SmallVector<int64_t> fold::properDims(Value tensor, ArrayRef<int64_t> dims) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return llvm::to_vector(llvm::make_filter_range(
      dims, [&](int64_t dim) { return type.getDimSize(dim) != 1; }));
}

bool fold::haveExtent(Value tensor, ArrayRef<int64_t> dims, int64_t count) {
  return staticExtent(cast<RankedTensorType>(tensor.getType()), dims) == count;
}

std::optional<SmallVector<unsigned>> fold::loopsOf(AffineMap map,
                                                   ArrayRef<int64_t> dims) {
  SmallVector<unsigned> loops;
  for (int64_t dim : dims) {
    auto loop = dyn_cast<AffineDimExpr>(map.getResult(dim));
    if (!loop)
      return std::nullopt;
    unsigned position = loop.getPosition();
    for (auto [other, expr] : llvm::enumerate(map.getResults()))
      if (static_cast<int64_t>(other) != dim && expr.isFunctionOfDim(position))
        return std::nullopt;
    loops.push_back(position);
  }
  return loops;
}

std::optional<SmallVector<int64_t>> fold::dimsOf(AffineMap map,
                                                 ArrayRef<unsigned> loops) {
  SmallVector<int64_t> dims;
  for (unsigned loop : loops) {
    std::optional<int64_t> found;
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      if (!expr.isFunctionOfDim(loop))
        continue;
      if (found || !isa<AffineDimExpr>(expr))
        return std::nullopt;
      found = dim;
    }
    if (!found)
      return std::nullopt;
    dims.push_back(*found);
  }
  return dims;
}

/// From the side with fewer dimensions to the one with more.
static SmallVector<int64_t> refine(ArrayRef<ReassociationIndices> groups,
                                   ArrayRef<int64_t> fineShape,
                                   ArrayRef<int64_t> dims) {
  SmallVector<int64_t> fine;
  for (int64_t dim : dims)
    for (int64_t part : groups[dim])
      if (fineShape[part] != 1)
        fine.push_back(part);
  return fine;
}

/// And back: groups whose proper dimensions are all there, side by side.
static std::optional<SmallVector<int64_t>>
coarsen(ArrayRef<ReassociationIndices> groups, ArrayRef<int64_t> fineShape,
        ArrayRef<int64_t> dims) {
  SmallVector<int64_t> coarse;
  SmallVector<int64_t> rest;
  for (int64_t dim : dims)
    if (fineShape[dim] != 1)
      rest.push_back(dim);
  ArrayRef<int64_t> left = rest;
  while (!left.empty()) {
    auto *group = llvm::find_if(groups, [&](const ReassociationIndices &group) {
      return llvm::is_contained(group, left.front());
    });
    if (group == groups.end())
      return std::nullopt;
    for (int64_t part : *group) {
      if (fineShape[part] == 1)
        continue;
      if (left.empty() || left.front() != part)
        return std::nullopt;
      left = left.drop_front();
    }
    coarse.push_back(group - groups.begin());
  }
  return coarse;
}

/// Whether the op keeps all dimensions, and `dims` whole.
static bool keepsDims(Operation *op, ArrayRef<int64_t> dims) {
  if (isa<tensor::CastOp>(op))
    return true;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  if (!slice || slice.getType().getRank() != slice.getSourceType().getRank())
    return false;
  return llvm::all_of(dims, [&](int64_t dim) {
    return slice.getStaticOffsets()[dim] == 0 &&
           slice.getStaticStrides()[dim] == 1 &&
           slice.getType().getDimSize(dim) ==
               slice.getSourceType().getDimSize(dim);
  });
}

std::optional<SmallVector<int64_t>> fold::dimsAfter(Operation *op,
                                                    ArrayRef<int64_t> dims) {
  if (keepsDims(op, dims))
    return SmallVector<int64_t>(dims);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return coarsen(collapse.getReassociationIndices(),
                   collapse.getSrcType().getShape(), dims);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return refine(expand.getReassociationIndices(),
                  expand.getResultType().getShape(), dims);
  auto transpose = dyn_cast<linalg::TransposeOp>(op);
  if (!transpose)
    return std::nullopt;
  SmallVector<int64_t> after;
  for (int64_t dim : dims)
    after.push_back(llvm::find(transpose.getPermutation(), dim) -
                    transpose.getPermutation().begin());
  return after;
}

std::optional<SmallVector<int64_t>> fold::dimsBefore(Operation *op,
                                                     ArrayRef<int64_t> dims) {
  if (keepsDims(op, dims))
    return SmallVector<int64_t>(dims);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return refine(collapse.getReassociationIndices(),
                  collapse.getSrcType().getShape(), dims);
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return coarsen(expand.getReassociationIndices(),
                   expand.getResultType().getShape(), dims);
  auto transpose = dyn_cast<linalg::TransposeOp>(op);
  if (!transpose)
    return std::nullopt;
  SmallVector<int64_t> before;
  for (int64_t dim : dims)
    before.push_back(transpose.getPermutation()[dim]);
  return before;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Calls `visit` with the indices of each element, in row-major order.
static void forEachIndex(ArrayRef<int64_t> shape,
                         llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0, e = ShapedType::getNumElements(shape); i < e; ++i) {
    visit(index);
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

/// The row-major position of an element along some dimensions.
static int64_t positionAlong(ArrayRef<int64_t> index, ArrayRef<int64_t> shape,
                             ArrayRef<int64_t> dims) {
  int64_t position = 0;
  for (int64_t dim : dims)
    position = position * shape[dim] + index[dim];
  return position;
}

static int64_t extentOf(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t extent = 1;
  for (int64_t dim : dims)
    extent *= shape[dim];
  return extent;
}

SmallVector<double> fold::scaleAlong(const ConstantTensor &weights,
                                     ArrayRef<int64_t> dims,
                                     ArrayRef<double> factors) {
  ArrayRef<int64_t> shape = weights.getShape();
  SmallVector<double> scaled;
  scaled.reserve(weights.getType().getNumElements());
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    int64_t i = scaled.size();
    scaled.push_back(weights[i] * factors[positionAlong(index, shape, dims)]);
  });
  return scaled;
}

SmallVector<double> fold::sumAlong(const ConstantTensor &weights,
                                   ArrayRef<int64_t> dims,
                                   ArrayRef<double> addends,
                                   ArrayRef<int64_t> kept) {
  ArrayRef<int64_t> shape = weights.getShape();
  SmallVector<double> sums(extentOf(shape, kept), 0.0);
  int64_t i = 0;
  forEachIndex(shape, [&](ArrayRef<int64_t> index) {
    sums[positionAlong(index, shape, kept)] +=
        weights[i++] * addends[positionAlong(index, shape, dims)];
  });
  return sums;
}

bool fold::isFiniteIn(ArrayRef<double> values, Type type) {
  return llvm::all_of(values, [&](double value) {
    return std::isfinite(value) &&
           roundToType(value, cast<FloatType>(type)).isFinite();
  });
}

std::optional<SmallVector<double>>
fold::constantAlong(const ViewAnalysis &views, const View &view,
                    ArrayRef<int64_t> dims) {
  int64_t count = extentOf(views.frame.shape, dims);
  std::optional<SmallVector<double>> found;
  View last = views.look(view, [&](const View &seen) {
    if (!seen.isTensor() || !llvm::all_of(seen.index, [&](int32_t dim) {
          return dim == kUnit || llvm::is_contained(dims, dim);
        }))
      return;
    std::optional<ConstantTensor> constant = matchConstant(seen.value);
    if (!constant)
      return;
    // Which element of the constant stands at each position along `dims`.
    SmallVector<int64_t> extents;
    for (int64_t dim : dims)
      extents.push_back(views.frame.shape[dim]);
    SmallVector<double> values;
    forEachIndex(extents, [&](ArrayRef<int64_t> index) {
      int64_t position = 0;
      for (auto [extent, dim] :
           llvm::zip_equal(constant->getShape(), seen.index)) {
        int64_t at =
            dim == kUnit ? 0 : index[llvm::find(dims, dim) - dims.begin()];
        position = position * extent + at;
      }
      values.push_back((*constant)[position]);
    });
    found = std::move(values);
  });
  if (!found)
    if (auto scalar = views.expand(last).floatConstant()) {
      bool losesInfo = false;
      scalar->convert(llvm::APFloat::IEEEdouble(),
                      llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      found = SmallVector<double>(count, scalar->convertToDouble());
    }
  return found;
}

std::optional<SmallVector<double>> fold::constantAlong(Value tensor,
                                                       ArrayRef<int64_t> dims) {
  Frame frame(cast<RankedTensorType>(tensor.getType()));
  ViewAnalysis views(frame);
  return constantAlong(views, frame.identity(tensor), dims);
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// A constant of the extents of `dims` in `like`.
static Value constantOver(OpBuilder &builder, Location loc,
                          ArrayRef<double> values, ArrayRef<int64_t> dims,
                          RankedTensorType like) {
  SmallVector<int64_t> extents;
  for (int64_t dim : dims)
    extents.push_back(like.getDimSize(dim));
  return createConstant(builder, loc,
                        RankedTensorType::get(extents, like.getElementType()),
                        values);
}

Value fold::buildElementwise(
    OpBuilder &builder, Location loc, ValueRange inputs,
    ArrayRef<AffineMap> inputMaps, Value like, Type elementType,
    llvm::function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  Value init = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, like), elementType);
  int64_t rank = cast<RankedTensorType>(like.getType()).getRank();
  SmallVector<AffineMap> maps(inputMaps);
  maps.push_back(builder.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  auto op = linalg::GenericOp::create(
      builder, loc, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &nested, Location loc, ValueRange args) {
        linalg::YieldOp::create(nested, loc, body(nested, loc, args));
      });
  Value result = op.getResult(0);
  auto type = cast<RankedTensorType>(like.getType()).clone(elementType);
  if (result.getType() != type)
    result = tensor::CastOp::create(builder, loc, type, result);
  return result;
}

AffineMap fold::mapOver(MLIRContext *context, int64_t rank,
                        ArrayRef<int64_t> dims) {
  SmallVector<AffineExpr> exprs;
  for (int64_t dim : dims)
    exprs.push_back(getAffineDimExpr(dim, context));
  return AffineMap::get(rank, 0, exprs, context);
}

Value fold::broadcastConstant(OpBuilder &builder, Location loc,
                              ArrayRef<double> values, ArrayRef<int64_t> dims,
                              Value like) {
  auto type = cast<RankedTensorType>(like.getType());
  Value constant = constantOver(builder, loc, values, dims, type);
  return buildElementwise(
      builder, loc, constant, mapOver(type.getContext(), type.getRank(), dims),
      like, type.getElementType(),
      [](OpBuilder &, Location, ValueRange args) { return args.front(); });
}

Value fold::addConstant(OpBuilder &builder, Location loc, Value tensor,
                        ArrayRef<double> values, ArrayRef<int64_t> dims) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Value constant = constantOver(builder, loc, values, dims, type);
  return buildElementwise(
      builder, loc, {tensor, constant},
      {builder.getMultiDimIdentityMap(type.getRank()),
       mapOver(type.getContext(), type.getRank(), dims)},
      tensor, type.getElementType(),
      [](OpBuilder &nested, Location loc, ValueRange args) -> Value {
        return arith::AddFOp::create(nested, loc, args[0], args[1]);
      });
}

linalg::LinalgOp fold::cloneWith(RewriterBase &rewriter, linalg::LinalgOp op,
                                 OpOperand &weight, Value newWeight,
                                 Value newInit) {
  IRMapping mapping;
  Operation *clone = rewriter.clone(*op, mapping);
  rewriter.modifyOpInPlace(clone, [&] {
    clone->setOperand(weight.getOperandNumber(), newWeight);
    clone->setOperand(op.getDpsInitOperand(0)->getOperandNumber(), newInit);
  });
  return cast<linalg::LinalgOp>(clone);
}

void fold::eraseDead(RewriterBase &rewriter, Operation *first) {
  SmallVector<Operation *> worklist = {first};
  llvm::SmallPtrSet<Operation *, 8> erased;
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val();
    if (erased.contains(op) || !isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *def = operand.getDefiningOp())
        worklist.push_back(def);
    erased.insert(op);
    rewriter.eraseOp(op);
  }
}
