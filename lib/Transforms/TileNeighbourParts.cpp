//===- TileNeighbourParts.cpp - Work on parts of a row -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileNeighbours.h"

#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"

using namespace mlir;
using namespace mlir::norm;

/// Whether all dimensions but the last are taken whole.
template <typename SliceOp>
static std::optional<PartOfRow> matchPartOf(SliceOp slice, Value whole,
                                            Value part, int64_t maxOffset) {
  auto type = cast<RankedTensorType>(whole.getType());
  int64_t last = type.getRank() - 1;
  if (last < 0 || cast<RankedTensorType>(part.getType()).getRank() != last + 1)
    return std::nullopt;
  SmallVector<OpFoldResult> offsets = slice.getMixedOffsets(),
                            sizes = slice.getMixedSizes(),
                            strides = slice.getMixedStrides();
  for (int64_t dim = 0; dim < last; ++dim) {
    std::optional<int64_t> size = getConstantIntValue(sizes[dim]);
    if (getConstantIntValue(offsets[dim]) != 0 ||
        getConstantIntValue(strides[dim]) != 1)
      return std::nullopt;
    if (size ? *size == type.getDimSize(dim)
             : type.isDynamicDim(dim) &&
                   succeeded(ValueBoundsConstraintSet::areEqual(
                       {sizes[dim]}, {whole, dim})) &&
                   *ValueBoundsConstraintSet::areEqual({sizes[dim]},
                                                       {whole, dim}))
      continue;
    return std::nullopt;
  }
  std::optional<int64_t> offset = getConstantIntValue(offsets[last]),
                         size = getConstantIntValue(sizes[last]),
                         stride = getConstantIntValue(strides[last]);
  int64_t extent = type.getDimSize(last);
  if (!offset || !size || !stride || ShapedType::isDynamic(extent) || *size < 1)
    return std::nullopt;
  if (*stride != 1 &&
      (*stride != 2 || *offset > maxOffset || *size * 2 > extent))
    return std::nullopt;
  return PartOfRow{whole, *offset, *size, *stride};
}

std::optional<PartOfRow> norm::matchPart(tensor::ExtractSliceOp slice) {
  // Of every second element: from the first or the second one.
  return matchPartOf(slice, slice.getSource(), slice.getResult(),
                     /*maxOffset=*/1);
}

std::optional<PartOfRow> norm::matchPart(tensor::InsertSliceOp slice) {
  return matchPartOf(slice, slice.getDest(), slice.getSource(),
                     std::numeric_limits<int64_t>::max());
}

//===----------------------------------------------------------------------===//
// Moving parts
//===----------------------------------------------------------------------===//

namespace {
/// A tensor put together from parts of its rows: `tensor` of each part is what
/// goes there.
struct Assembly {
  Value whole;
  SmallVector<PartOfRow> parts;
  /// Whether a part was put together from parts itself.
  bool isNested = false;
};

/// Moves what takes rows apart up and what puts them together down.
class PartMover {
public:
  PartMover(RewriterBase &rewriter, ArrayRef<RowOpInterface> norms)
      : rewriter(rewriter) {
    for (RowOpInterface norm : norms)
      roots.insert(norm);
  }
  void run();

private:
  bool isDerived(Value value, unsigned depth = 0) const;
  std::optional<Assembly> match(Value whole) const;
  bool isUseful(const Assembly &assembly) const;
  Value build(Location loc, Type type, ArrayRef<PartOfRow> parts);
  bool sink(const Assembly &assembly);
  bool lift(tensor::ExtractSliceOp slice);
  bool merge(tensor::ExtractSliceOp slice);
  Value onPart(linalg::LinalgOp op, const PartOfRow &part);
  Value extractAlong(Value tensor, int64_t dim, const PartOfRow &part);

  RewriterBase &rewriter;
  llvm::SmallPtrSet<Operation *, 8> roots;
};
} // namespace

/// Whether `value` is computed from a norm's result, by steps that tiles know.
bool PartMover::isDerived(Value value, unsigned depth) const {
  constexpr unsigned kMaxDepth = 24;
  Operation *def = value.getDefiningOp();
  if (!def || depth > kMaxDepth)
    return false;
  if (roots.contains(def))
    return true;
  if (isElementwiseNeighbour(def))
    return llvm::any_of(cast<linalg::LinalgOp>(def).getDpsInputs(),
                        [&](Value v) { return isDerived(v, depth + 1); });
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(def))
    return isDerived(slice.getSource(), depth + 1);
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(def))
    return isDerived(slice.getSource(), depth + 1);
  if (isa<tensor::ConcatOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
          def))
    return isDerived(def->getOperand(0), depth + 1);
  return false;
}

/// Whether the parts are all of the row, each element once.
static bool coversRow(ArrayRef<PartOfRow> parts, int64_t extent) {
  llvm::SmallBitVector seen(extent);
  for (const PartOfRow &part : parts)
    for (int64_t i = 0; i < part.size; ++i) {
      int64_t at = part.offset + part.stride * i;
      if (at >= extent || seen.test(at))
        return false;
      seen.set(at);
    }
  return seen.all();
}

/// The parts of a concatenation along the innermost dimension.
static SmallVector<PartOfRow> partsOf(tensor::ConcatOp concat) {
  SmallVector<PartOfRow> parts;
  int64_t last = concat.getResultType().getRank() - 1, offset = 0;
  if (static_cast<int64_t>(concat.getDim()) != last)
    return parts;
  for (Value input : concat.getInputs()) {
    int64_t size = cast<RankedTensorType>(input.getType()).getDimSize(last);
    if (ShapedType::isDynamic(size))
      return {};
    // Nothing can be inserted behind the last element.
    if (size != 0)
      parts.push_back({input, offset, size, 1});
    offset += size;
  }
  return parts;
}

/// Whether the groups are single dimensions but for two at the end.
static bool joinsLastTwo(ArrayRef<ReassociationIndices> groups) {
  return !groups.empty() && groups.back().size() == 2 &&
         llvm::all_of(groups.drop_back(),
                      [](const auto &group) { return group.size() == 1; });
}

/// The parts of pairs that are stacked and laid side by side.
static SmallVector<PartOfRow> partsOf(tensor::CollapseShapeOp collapse) {
  auto concat = collapse.getSrc().getDefiningOp<tensor::ConcatOp>();
  if (!concat || concat.getInputs().size() != 2 ||
      !joinsLastTwo(collapse.getReassociationIndices()))
    return {};
  SmallVector<PartOfRow> parts = partsOf(concat);
  for (auto [number, part] : llvm::enumerate(parts)) {
    auto expand = part.tensor.getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand || part.size != 1 ||
        !joinsLastTwo(expand.getReassociationIndices()))
      return {};
    int64_t size = expand.getSrcType().getShape().back();
    if (ShapedType::isDynamic(size))
      return {};
    part = {expand.getSrc(), static_cast<int64_t>(number), size, 2};
  }
  return parts;
}

std::optional<Assembly> PartMover::match(Value whole) const {
  Assembly assembly{whole, {}, false};
  auto type = dyn_cast<RankedTensorType>(whole.getType());
  if (!type || type.getRank() == 0 ||
      ShapedType::isDynamic(type.getShape().back()))
    return std::nullopt;
  if (auto concat = whole.getDefiningOp<tensor::ConcatOp>()) {
    assembly.parts = partsOf(concat);
  } else if (auto collapse = whole.getDefiningOp<tensor::CollapseShapeOp>()) {
    assembly.parts = partsOf(collapse);
  } else {
    auto insert = whole.getDefiningOp<tensor::InsertSliceOp>();
    for (; insert;
         insert = insert.getDest().getDefiningOp<tensor::InsertSliceOp>()) {
      std::optional<PartOfRow> part = matchPart(insert);
      if (!part)
        break;
      assembly.parts.push_back(
          {insert.getSource(), part->offset, part->size, part->stride});
      if (coversRow(assembly.parts, type.getShape().back()))
        break;
    }
  }
  if (assembly.parts.empty() ||
      !coversRow(assembly.parts, type.getShape().back()))
    return std::nullopt;
  SmallVector<PartOfRow> flat;
  for (const PartOfRow &part : assembly.parts) {
    std::optional<Assembly> inner;
    if (part.stride == 1)
      inner = match(part.tensor);
    if (!inner) {
      flat.push_back(part);
      continue;
    }
    assembly.isNested = true;
    for (PartOfRow own : inner->parts) {
      own.offset += part.offset;
      flat.push_back(own);
    }
  }
  assembly.parts = flat;
  return assembly;
}

bool PartMover::isUseful(const Assembly &assembly) const {
  return llvm::all_of(assembly.parts, [&](const PartOfRow &part) {
    return isDerived(part.tensor);
  });
}

/// Puts parts together in a fresh tensor of `type`.
Value PartMover::build(Location loc, Type type, ArrayRef<PartOfRow> parts) {
  auto tensorType = cast<RankedTensorType>(type);
  int64_t rank = tensorType.getRank();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, parts.front().tensor);
  sizes.back() = rewriter.getIndexAttr(tensorType.getShape().back());
  Value whole = tensor::EmptyOp::create(rewriter, loc, sizes,
                                        tensorType.getElementType());
  for (const PartOfRow &part : parts) {
    SmallVector<OpFoldResult> offsets(rank, rewriter.getIndexAttr(0)),
        strides(rank, rewriter.getIndexAttr(1));
    offsets.back() = rewriter.getIndexAttr(part.offset);
    sizes.back() = rewriter.getIndexAttr(part.size);
    strides.back() = rewriter.getIndexAttr(part.stride);
    whole = tensor::InsertSliceOp::create(rewriter, loc, part.tensor, whole,
                                          offsets, sizes, strides);
  }
  return whole;
}

Value PartMover::extractAlong(Value tensor, int64_t dim,
                              const PartOfRow &part) {
  Location loc = tensor.getLoc();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, tensor);
  SmallVector<OpFoldResult> offsets(sizes.size(), rewriter.getIndexAttr(0)),
      strides(sizes.size(), rewriter.getIndexAttr(1));
  offsets[dim] = rewriter.getIndexAttr(part.offset);
  sizes[dim] = rewriter.getIndexAttr(part.size);
  strides[dim] = rewriter.getIndexAttr(part.stride);
  return tensor::ExtractSliceOp::create(rewriter, loc, tensor, offsets, sizes,
                                        strides);
}

/// The loop that runs along the rows of the op's result, if it has one result
/// of which each loop indexes one dimension.
static std::optional<unsigned> findRowLoop(linalg::LinalgOp op) {
  if (!isElementwiseNeighbour(op) || op->getNumResults() != 1)
    return std::nullopt;
  AffineMap map = op.getIndexingMapMatchingResult(op->getResult(0));
  if (!map.isPermutation() || map.getNumResults() == 0)
    return std::nullopt;
  return cast<AffineDimExpr>(map.getResults().back()).getPosition();
}

/// `op` on a part of its result's rows, before the op. Operands that are `part`
/// of already are found in `part.tensor`'s place.
Value PartMover::onPart(linalg::LinalgOp op, const PartOfRow &part) {
  unsigned row = *findRowLoop(op);
  SmallVector<Value> operands;
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    std::optional<unsigned> dim =
        map.getResultPosition(rewriter.getAffineDimExpr(row));
    if (!dim || !isa<RankedTensorType>(input->get().getType())) {
      operands.push_back(input->get());
      continue;
    }
    Value operand;
    if (std::optional<Assembly> assembly = match(input->get());
        assembly && *dim + 1 == map.getNumResults())
      for (const PartOfRow &own : assembly->parts)
        if (own.offset == part.offset && own.size == part.size &&
            own.stride == part.stride)
          operand = own.tensor;
    operands.push_back(operand ? operand
                               : extractAlong(input->get(), *dim, part));
  }
  Location loc = op.getLoc();
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(rewriter, loc, op.getDpsInits()[0]);
  sizes.back() = rewriter.getIndexAttr(part.size);
  Value empty = tensor::EmptyOp::create(
      rewriter, loc, sizes, getElementTypeOrSelf(op->getResult(0).getType()));
  operands.push_back(empty);
  return clone(rewriter, op.getOperation(), empty.getType(), operands)
      ->getResult(0);
}

/// Lets elementwise users of an assembly work on its parts; true if some do.
bool PartMover::sink(const Assembly &assembly) {
  for (OpOperand &use : assembly.whole.getUses()) {
    auto user = dyn_cast<linalg::LinalgOp>(use.getOwner());
    if (!user || !user.isDpsInput(&use))
      continue;
    std::optional<unsigned> row = findRowLoop(user);
    AffineMap map = user.getMatchingIndexingMap(&use);
    if (!row || !map.isPermutation() ||
        map.getResults().back() != rewriter.getAffineDimExpr(*row))
      continue;
    rewriter.setInsertionPoint(user);
    SmallVector<PartOfRow> parts;
    for (PartOfRow part : assembly.parts) {
      part.tensor = onPart(user, part);
      parts.push_back(part);
    }
    rewriter.replaceOp(
        user, build(user.getLoc(), user->getResult(0).getType(), parts));
    return true;
  }
  return false;
}

/// Takes a part of a part from the whole.
bool PartMover::merge(tensor::ExtractSliceOp slice) {
  auto outer = slice.getSource().getDefiningOp<tensor::ExtractSliceOp>();
  std::optional<PartOfRow> part = matchPart(slice), from;
  if (outer)
    from = matchPart(outer);
  if (!part || !from || part->stride * from->stride > 2 || !isDerived(slice))
    return false;
  rewriter.setInsertionPoint(slice);
  int64_t last = slice.getType().getRank() - 1;
  Value merged = extractAlong(outer.getSource(), last,
                              {outer.getSource(),
                               from->offset + from->stride * part->offset,
                               part->size, from->stride * part->stride});
  if (merged.getType() != slice.getType()) {
    rewriter.eraseOp(merged.getDefiningOp());
    return false;
  }
  rewriter.replaceOp(slice, merged);
  return true;
}

/// Lets an elementwise op work on the part of its result that `slice` takes.
bool PartMover::lift(tensor::ExtractSliceOp slice) {
  std::optional<PartOfRow> part = matchPart(slice);
  auto op = slice.getSource().getDefiningOp<linalg::LinalgOp>();
  if (!part || !op || !findRowLoop(op) || !isDerived(slice.getSource()))
    return false;
  rewriter.setInsertionPoint(slice);
  Value value = onPart(op, *part);
  if (value.getType() != slice.getType()) {
    rewriter.eraseOp(value.getDefiningOp());
    return false;
  }
  rewriter.replaceOp(slice, value);
  return true;
}

void PartMover::run() {
  llvm::SmallPtrSet<Block *, 4> blocks;
  for (Operation *root : roots)
    blocks.insert(root->getBlock());
  auto moveSome = [&](Block *block) {
    for (Operation &op : *block) {
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
          slice && (merge(slice) || lift(slice)))
        return true;
      if (op.getNumResults() != 1 ||
          !isa<tensor::ConcatOp, tensor::CollapseShapeOp,
               tensor::InsertSliceOp>(op))
        continue;
      // Of stacked pairs the whole row is what counts.
      if (op.hasOneUse())
        if (auto row = dyn_cast<tensor::CollapseShapeOp>(*op.user_begin());
            row && match(row.getResult()))
          continue;
      std::optional<Assembly> assembly = match(op.getResult(0));
      if (!assembly || !isUseful(*assembly))
        continue;
      if (sink(*assembly))
        return true;
      if (isa<tensor::InsertSliceOp>(op) && !assembly->isNested)
        continue;
      rewriter.setInsertionPoint(&op);
      Value whole =
          build(op.getLoc(), op.getResult(0).getType(), assembly->parts);
      if (whole.getType() == op.getResult(0).getType()) {
        rewriter.replaceOp(&op, whole);
        return true;
      }
    }
    return false;
  };
  // Each step takes an op off a finite path between a norm and its users.
  constexpr unsigned kMaxSteps = 1000;
  for (Block *block : blocks) {
    unsigned steps = 0;
    while (steps++ < kMaxSteps && moveSome(block)) {
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*block)))
      if (isa<linalg::LinalgOp, tensor::ExtractSliceOp, tensor::InsertSliceOp,
              tensor::ConcatOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
              op) &&
          isOpTriviallyDead(&op))
        rewriter.eraseOp(&op);
  }
}

void norm::prepareParts(RewriterBase &rewriter,
                        ArrayRef<RowOpInterface> norms) {
  PartMover(rewriter, norms).run();
}
