//===- MergeAxes.cpp - norm-merge-axes -------------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The height and width of an image are two axes to whoever wrote the model and
// one to a norm that reduces both: elements in a row in memory. Swept as two,
// a width of 7 leaves most of every vector empty.
//
// What reads and writes around the norm moves along: elementwise ops of the
// same iteration space lose the same loops, or else they would no longer fuse.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormOps.h"
#include "Norm/IR/Remarks.h"
#include "TileNeighbours.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::norm {
#define GEN_PASS_DEF_MERGEAXESPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
/// Which axes of x become one.
class Merging {
public:
  /// Neighbours that `forward` treats alike: reduced, not split into groups,
  /// and both or neither with a scale of its own for each place.
  Merging(RowOpInterface op, const NormContract &forward);

  bool isNeeded() const { return numbers.back() + 1 < int64_t(numbers.size()); }
  /// The groups of x's axes, or of those that some other tensor has.
  SmallVector<ReassociationIndices> groups(ArrayRef<int64_t> axes) const;
  SmallVector<ReassociationIndices> groups() const {
    return groups(llvm::to_vector(llvm::seq<int64_t>(0, numbers.size())));
  }
  /// Where axes are afterwards.
  SmallVector<int64_t> renumber(ArrayRef<int64_t> axes) const;

private:
  /// For each axis, which one it is part of.
  SmallVector<int64_t> numbers;
};

/// The linalg ops that lose the same loops as a norm.
class Followers {
public:
  explicit Followers(const Merging &merging) : groups(merging.groups()) {}

  /// Collects what computes the operands of `op` and what reads its results;
  /// returns why they cannot follow, or nothing.
  StringRef collect(RowOpInterface op);
  LogicalResult collapse(RewriterBase &rewriter);

private:
  bool isFull(Value tensor) const {
    auto type = dyn_cast<RankedTensorType>(tensor.getType());
    return type && type.getRank() == rank;
  }
  StringRef add(linalg::GenericOp op);
  StringRef visitProducer(Value value);
  StringRef visitUsers(Value value);

  SmallVector<ReassociationIndices> groups;
  int64_t rank = 0;
  Block *block = nullptr;
  llvm::SetVector<Operation *> ops;
  llvm::DenseSet<Operation *> consumers;
  /// Values whose producers, and values whose users are still to be looked at.
  SmallVector<Value> read, computed;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which axes
//===----------------------------------------------------------------------===//

Merging::Merging(RowOpInterface op, const NormContract &forward) {
  auto isReduced = [&](int64_t axis) {
    return llvm::is_contained(forward.axes, axis) &&
           axis != op.getGroupedAxis();
  };
  auto isAffine = [&](int64_t axis) {
    return forward.affineAxes && llvm::is_contained(*forward.affineAxes, axis);
  };
  for (int64_t axis = 0; axis < op.getRank(); ++axis) {
    bool joins = axis > 0 && isReduced(axis) && isReduced(axis - 1) &&
                 isAffine(axis) == isAffine(axis - 1);
    numbers.push_back(axis == 0 ? 0 : numbers.back() + (joins ? 0 : 1));
  }
}

SmallVector<ReassociationIndices>
Merging::groups(ArrayRef<int64_t> axes) const {
  SmallVector<ReassociationIndices> found;
  for (auto [dim, axis] : llvm::enumerate(axes)) {
    if (dim == 0 || axis != axes[dim - 1] + 1 ||
        numbers[axis] != numbers[axes[dim - 1]])
      found.emplace_back();
    found.back().push_back(dim);
  }
  return found;
}

SmallVector<int64_t> Merging::renumber(ArrayRef<int64_t> axes) const {
  SmallVector<int64_t> renumbered;
  for (int64_t axis : axes)
    if (!llvm::is_contained(renumbered, numbers[axis]))
      renumbered.push_back(numbers[axis]);
  return renumbered;
}

//===----------------------------------------------------------------------===//
// What follows
//===----------------------------------------------------------------------===//

/// Whether `op` has all loops of x, one for each axis, and sees `operand` as it
/// lies.
static bool sharesSpace(linalg::GenericOp op, AffineMap map, int64_t rank) {
  return op.getNumLoops() == rank && map.isIdentity() &&
         op.hasPureTensorSemantics();
}

StringRef Followers::add(linalg::GenericOp op) {
  SmallVector<utils::IteratorType> loops = op.getIteratorTypesArray();
  for (const ReassociationIndices &group : groups)
    for (int64_t loop : group)
      if (loops[loop] != loops[group.front()])
        return "a neighbour reduces one of them";
  if (op.hasIndexSemantics() ||
      !linalg::areDimSequencesPreserved(op.getIndexingMapsArray(), groups))
    return "a neighbour tells them apart";
  if (ops.insert(op))
    for (OpOperand *input : op.getDpsInputOperands())
      if (op.getMatchingIndexingMap(input).isIdentity())
        read.push_back(input->get());
  return {};
}

StringRef Followers::visitProducer(Value value) {
  if (!isFull(value))
    return {};
  Operation *producer = value.getDefiningOp();
  if (isa_and_nonnull<tensor::ExtractSliceOp, tensor::InsertSliceOp>(producer))
    return "x is a part of a tensor";
  auto generic = dyn_cast_or_null<linalg::GenericOp>(producer);
  if (!generic || generic->getBlock() != block ||
      !isElementwiseNeighbour(generic))
    return {};
  AffineMap map = generic.getIndexingMapMatchingResult(cast<OpResult>(value));
  return sharesSpace(generic, map, rank) ? add(generic)
                                         : StringRef("a neighbour transposes");
}

StringRef Followers::visitUsers(Value value) {
  if (!isFull(value))
    return {};
  for (OpOperand &use : value.getUses()) {
    if (isa<tensor::ExtractSliceOp, tensor::InsertSliceOp>(use.getOwner()))
      return "only a part of a result is read";
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic || generic->getBlock() != block || !generic.isDpsInput(&use))
      continue;
    if (!sharesSpace(generic, generic.getMatchingIndexingMap(&use), rank)) {
      if (isElementwiseNeighbour(generic))
        return "a neighbour transposes";
      continue;
    }
    if (StringRef reason = add(generic); !reason.empty())
      return reason;
    if (consumers.insert(generic).second)
      llvm::append_range(computed, generic->getResults());
  }
  return {};
}

StringRef Followers::collect(RowOpInterface op) {
  rank = op.getRank();
  block = op->getBlock();
  llvm::append_range(read, op->getOperands());
  llvm::append_range(computed, op->getResults());
  while (!read.empty() || !computed.empty()) {
    bool isRead = !read.empty();
    Value next = isRead ? read.pop_back_val() : computed.pop_back_val();
    if (StringRef reason = isRead ? visitProducer(next) : visitUsers(next);
        !reason.empty())
      return reason;
  }
  return {};
}

LogicalResult Followers::collapse(RewriterBase &rewriter) {
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::CollapseResult> collapsed =
        linalg::collapseOpIterationDims(cast<linalg::LinalgOp>(op), groups,
                                        rewriter);
    if (failed(collapsed))
      return op->emitError("cannot lose loops beside a norm");
    rewriter.replaceOp(op, collapsed->results);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The norm itself
//===----------------------------------------------------------------------===//

namespace {
/// Puts a norm on fewer axes in the place of one.
class Merger {
public:
  Merger(RowOpInterface op, const Merging &merging, RewriterBase &rewriter)
      : op(op), merging(merging), rewriter(rewriter), loc(op.getLoc()) {}

  /// Null if the op cannot be rebuilt.
  Operation *rebuild();
  void replaceBy(Operation *rebuilt);

private:
  void collapse(Value &tensor, ArrayRef<int64_t> axes);
  void adapt(NormContract &contract);

  RowOpInterface op;
  const Merging &merging;
  RewriterBase &rewriter;
  Location loc;
};
} // namespace

void Merger::collapse(Value &tensor, ArrayRef<int64_t> axes) {
  if (!tensor)
    return;
  SmallVector<ReassociationIndices> groups = merging.groups(axes);
  if (groups.size() < axes.size())
    tensor = tensor::CollapseShapeOp::create(rewriter, loc, tensor, groups);
}

void Merger::adapt(NormContract &contract) {
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  collapse(contract.x, all);
  collapse(contract.residual, all);
  if (contract.affineAxes) {
    collapse(contract.scale, *contract.affineAxes);
    collapse(contract.shift, *contract.affineAxes);
    contract.affineAxes = merging.renumber(*contract.affineAxes);
  }
  contract.axes = merging.renumber(contract.axes);
  if (contract.channelAxis)
    contract.channelAxis = merging.renumber({*contract.channelAxis}).front();
}

Operation *Merger::rebuild() {
  rewriter.setInsertionPoint(op);
  if (auto norm = dyn_cast<NormOpInterface>(op.getOperation())) {
    NormContract contract = NormContract::get(norm);
    if (!contract.scale && !contract.shift)
      contract.affineAxes.reset();
    adapt(contract);
    return norm.rebuild(rewriter, loc, contract);
  }
  auto norm = cast<NormBackwardOpInterface>(op.getOperation());
  BackwardContract contract = BackwardContract::get(norm);
  if (!contract.forward.scale && !contract.dscaleType && !contract.dshiftType)
    contract.forward.affineAxes.reset();
  adapt(contract.forward);
  SmallVector<int64_t> all =
      llvm::to_vector(llvm::seq<int64_t>(0, op.getRank()));
  collapse(contract.dy, all);
  collapse(contract.dsum, all);
  return norm.rebuild(rewriter, loc, contract);
}

void Merger::replaceBy(Operation *rebuilt) {
  ReifiedRankedShapedTypeDims extents;
  (void)reifyNormResultShapes(op, rewriter, extents);
  SmallVector<Value> results;
  for (auto [result, merged] :
       llvm::zip_equal(op->getResults(), rebuilt->getResults())) {
    unsigned number = result.getResultNumber();
    SmallVector<ReassociationIndices> groups =
        merging.groups(op.getResultAxes(number));
    Value value = merged;
    if (groups.size() < extents[number].size())
      value = tensor::ExpandShapeOp::create(rewriter, loc, result.getType(),
                                            merged, groups, extents[number]);
    results.push_back(value);
  }
  rewriter.replaceOp(op, results);
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

/// The facts of the op or, of a gradient, of its forward op; nullopt for what
/// is neither.
static std::optional<NormContract> forwardContract(RowOpInterface op) {
  if (auto norm = dyn_cast<NormOpInterface>(op.getOperation()))
    return NormContract::get(norm);
  if (auto norm = dyn_cast<NormBackwardOpInterface>(op.getOperation()))
    return norm.getForwardContract();
  return std::nullopt;
}

/// Upstream takes loops from linalg.generic alone.
static void generalizeNeighbours(RewriterBase &rewriter, Operation *root) {
  SmallVector<linalg::LinalgOp> named;
  root->walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op) &&
        (isElementwiseNeighbour(op) || isa<linalg::ReduceOp>(op)))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    (void)linalg::generalizeNamedOp(rewriter, op);
  }
}

/// Takes back what splits axes only to be merged again.
static void cancelReshapes(RewriterBase &rewriter, Operation *root) {
  SmallVector<tensor::CollapseShapeOp> reshapes;
  root->walk([&](tensor::CollapseShapeOp op) { reshapes.push_back(op); });
  for (tensor::CollapseShapeOp collapse : reshapes) {
    auto expand = collapse.getSrc().getDefiningOp<tensor::ExpandShapeOp>();
    if (!expand || expand.getSrcType() != collapse.getResultType() ||
        expand.getReassociationIndices() != collapse.getReassociationIndices())
      continue;
    rewriter.replaceOp(collapse, expand.getSrc());
    if (expand->use_empty())
      rewriter.eraseOp(expand);
  }
  // Neighbours asked for the extents of what they read, which is expanded now.
  SmallVector<tensor::ExpandShapeOp> expanded;
  root->walk([&](tensor::ExpandShapeOp op) { expanded.push_back(op); });
  for (tensor::ExpandShapeOp op : expanded)
    resolveExtents(rewriter, op);
  RewritePatternSet patterns(rewriter.getContext());
  tensor::populateFoldTensorEmptyPatterns(patterns);
  walkAndApplyPatterns(root, std::move(patterns));
}

namespace {
struct MergeAxes : public norm::impl::MergeAxesPassBase<MergeAxes> {
  void runOnOperation() override {
    SmallVector<RowOpInterface> norms;
    getOperation()->walk([&](RowOpInterface op) {
      // A strategy that somebody chose is about the axes as they are.
      if (op->hasAttr(kStrategyAttrName))
        return;
      std::optional<NormContract> forward = forwardContract(op);
      if (forward && !llvm::is_contained(op.getInput().getType().getShape(), 0))
        if (op.getRank() > 0 && Merging(op, *forward).isNeeded())
          norms.push_back(op);
    });
    if (norms.empty())
      return;
    IRRewriter rewriter(&getContext());
    prepareElementwise(rewriter, getOperation());
    generalizeNeighbours(rewriter, getOperation());
    for (RowOpInterface op : norms)
      if (failed(merge(rewriter, op)))
        return signalPassFailure();
    cancelReshapes(rewriter, getOperation());
  }

  static LogicalResult merge(RewriterBase &rewriter, RowOpInterface op) {
    Merging merging(op, *forwardContract(op));
    Followers followers(merging);
    if (StringRef reason = followers.collect(op); !reason.empty()) {
      emitRemark(remark::RemarkKind::RemarkMissed, op, "norm-merge-axes",
                 "neighbours", "axes are not merged: " + reason);
      return success();
    }
    Merger merger(op, merging, rewriter);
    Operation *rebuilt = merger.rebuild();
    if (!rebuilt)
      return success();
    rebuilt->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    merger.replaceBy(rebuilt);
    return followers.collapse(rewriter);
  }
};
} // namespace
