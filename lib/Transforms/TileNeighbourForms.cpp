//===- TileNeighbourForms.cpp - Neighbours as linalg.generic -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileNeighbours.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;
using namespace mlir::norm;

/// linalg.map as a generic op: upstream generalizes the others only.
static void generalizeMap(RewriterBase &rewriter, linalg::MapOp op) {
  if (!op.hasPureTensorSemantics())
    return;
  auto linalgOp = cast<linalg::LinalgOp>(op.getOperation());
  rewriter.setInsertionPoint(op);
  auto generic = linalg::GenericOp::create(
      rewriter, op.getLoc(), op->getResultTypes(), linalgOp.getDpsInputs(),
      linalgOp.getDpsInits(), linalgOp.getIndexingMapsArray(),
      linalgOp.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op.getMapper(), generic.getRegion(),
                              generic.getRegion().begin());
  Block &body = generic.getRegion().front();
  for (Value init : linalgOp.getDpsInits())
    if (body.getNumArguments() < generic->getNumOperands())
      body.addArgument(getElementTypeOrSelf(init.getType()), op.getLoc());
  rewriter.replaceOp(op, generic);
}

/// Destinations whose elements are not read become fresh ones, so that the op
/// does not seem to read what it writes over.
static void freshenDestinations(RewriterBase &rewriter, linalg::LinalgOp op) {
  if (!isElementwiseNeighbour(op))
    return;
  rewriter.setInsertionPoint(op);
  for (OpOperand &init : op.getDpsInitsMutable()) {
    if (init.get().getDefiningOp<tensor::EmptyOp>())
      continue;
    Type element = getElementTypeOrSelf(init.get().getType());
    // Of an input, if one is as large: what repeats a scalar need not exist.
    Value like = init.get();
    for (OpOperand *input : op.getDpsInputOperands())
      if (input->get() != like &&
          isa<RankedTensorType>(input->get().getType()) &&
          !input->get().getDefiningOp<tensor::SplatOp>() &&
          op.getMatchingIndexingMap(input) ==
              op.getMatchingIndexingMap(&init)) {
        like = input->get();
        break;
      }
    Value empty = tensor::EmptyOp::create(
        rewriter, op.getLoc(),
        tensor::getMixedSizes(rewriter, op.getLoc(), like), element);
    if (empty.getType() == init.get().getType())
      rewriter.modifyOpInPlace(op, [&] { init.set(empty); });
  }
}

/// The scalar that `tensor` repeats, made where `rewriter` is; null if it is
/// not known to.
static Value getSplatScalar(RewriterBase &rewriter, Value tensor) {
  if (auto splat = tensor.getDefiningOp<tensor::SplatOp>())
    return splat.getInput();
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    if (fill.getInputs()[0].getType() == getElementTypeOrSelf(tensor.getType()))
      return fill.getInputs()[0];
  DenseElementsAttr elements;
  if (!matchPattern(tensor, m_Constant(&elements)) || !elements.isSplat())
    return {};
  return arith::ConstantOp::create(
      rewriter, tensor.getLoc(),
      cast<TypedAttr>(elements.getSplatValue<Attribute>()));
}

/// Reads what repeats one scalar as a scalar of the body.
static void inlineSplats(RewriterBase &rewriter, linalg::GenericOp op) {
  if (!isElementwiseNeighbour(op))
    return;
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  llvm::BitVector inlined(op->getNumOperands());
  rewriter.setInsertionPointToStart(op.getBody());
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (Value scalar = getSplatScalar(rewriter, input->get())) {
      rewriter.replaceAllUsesWith(op.getMatchingBlockArgument(input), scalar);
      inlined.set(input->getOperandNumber());
      continue;
    }
    inputs.push_back(input->get());
    maps.push_back(op.getMatchingIndexingMap(input));
  }
  if (inlined.none())
    return;
  for (OpOperand &init : op.getDpsInitsMutable())
    maps.push_back(op.getMatchingIndexingMap(&init));
  rewriter.setInsertionPoint(op);
  auto slimmer = linalg::GenericOp::create(
      rewriter, op.getLoc(), op->getResultTypes(), inputs, op.getOutputs(),
      maps, op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op.getRegion(), slimmer.getRegion(),
                              slimmer.getRegion().begin());
  slimmer.getBody()->eraseArguments(inlined);
  rewriter.replaceOp(op, slimmer);
}

static bool makesMasks(Operation *op) {
  return isElementwiseNeighbour(op) &&
         llvm::any_of(op->getResultTypes(), [](Type type) {
           return getElementTypeOrSelf(type).isInteger(1);
         });
}

/// Fuses the op that makes a mask into the elementwise op that reads it by
/// `use`: no memory holds what a vector holds as bits.
static LogicalResult fuseMask(RewriterBase &rewriter, OpOperand *use) {
  auto user = dyn_cast<linalg::LinalgOp>(use->getOwner());
  if (!user || !isElementwiseNeighbour(user) || !user.isDpsInput(use))
    return failure();
  rewriter.setInsertionPoint(user);
  if (!isa<linalg::GenericOp>(user)) {
    FailureOr<linalg::GenericOp> generic =
        linalg::generalizeNamedOp(rewriter, user);
    if (failed(generic))
      return failure();
    use = &(*generic)->getOpOperand(use->getOperandNumber());
  }
  if (!linalg::areElementwiseOpsFusable(use))
    return failure();
  Operation *producer = use->get().getDefiningOp(), *owner = use->getOwner();
  rewriter.setInsertionPoint(owner);
  FailureOr<linalg::ElementwiseOpFusionResult> fused =
      linalg::fuseElementwiseOps(rewriter, use);
  if (failed(fused))
    return failure();
  for (const auto &replacement : fused->replacements)
    if (replacement.first.getDefiningOp() == owner)
      rewriter.replaceAllUsesWith(replacement.first, replacement.second);
  rewriter.eraseOp(owner);
  if (producer->use_empty())
    rewriter.eraseOp(producer);
  return success();
}

/// Fuses one mask; false if none can be fused any more.
static bool fuseSomeMask(RewriterBase &rewriter, Operation *root) {
  WalkResult result = root->walk([&](linalg::GenericOp op) {
    if (!makesMasks(op))
      return WalkResult::advance();
    resolveExtents(rewriter, op);
    for (OpOperand &use : op->getUses())
      if (use.getOwner()->getBlock() == op->getBlock() &&
          succeeded(fuseMask(rewriter, &use)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return result.wasInterrupted();
}

template <typename OpT>
static void forEach(Operation *root, function_ref<void(OpT)> visit) {
  SmallVector<OpT> ops;
  root->walk([&](OpT op) { ops.push_back(op); });
  for (OpT op : ops)
    visit(op);
}

void norm::prepareElementwise(RewriterBase &rewriter, Operation *root) {
  RewritePatternSet patterns(rewriter.getContext());
  linalg::populateElementwiseToLinalgConversionPatterns(patterns);
  walkAndApplyPatterns(root, std::move(patterns));
  forEach<linalg::MapOp>(
      root, [&](linalg::MapOp op) { generalizeMap(rewriter, op); });
  forEach<linalg::LinalgOp>(
      root, [&](linalg::LinalgOp op) { freshenDestinations(rewriter, op); });
  forEach<linalg::GenericOp>(
      root, [&](linalg::GenericOp op) { inlineSplats(rewriter, op); });
  while (fuseSomeMask(rewriter, root)) {
  }
}
