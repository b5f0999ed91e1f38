//===- NormFolds.cpp - Canonical forms of the named ops -------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormOps.h"

using namespace mlir;
using namespace mlir::norm;

LogicalResult norm::useCanonicalSpelling(RowOpInterface op,
                                         ArrayRef<int64_t> defaultAffineAxes,
                                         FloatType defaultComputeType,
                                         PatternRewriter &rewriter) {
  SmallVector<std::pair<StringRef, Attribute>> changes;
  auto propose = [&](StringRef name, Attribute canonical) {
    if (op->getAttr(name) != canonical)
      changes.emplace_back(name, canonical);
  };
  // Some ops of the statistics algebra reduce nothing, or parts alone.
  if (op->hasAttr("axes"))
    propose("axes", rewriter.getDenseI64ArrayAttr(op.getReducedAxes()));
  if (std::optional<int64_t> channel = op.getGroupedAxis())
    propose("channel_axis", rewriter.getI64IntegerAttr(*channel));
  // An op without a default for its affine axes has an empty one.
  if (op->getAttr("affine_axes") ==
          rewriter.getDenseI64ArrayAttr(defaultAffineAxes) &&
      !defaultAffineAxes.empty())
    propose("affine_axes", {});
  if (op->getAttr("compute_type") == TypeAttr::get(defaultComputeType))
    propose("compute_type", {});
  if (changes.empty())
    return rewriter.notifyMatchFailure(op, "spelling is canonical");
  rewriter.modifyOpInPlace(op, [&] {
    for (auto [name, canonical] : changes)
      canonical ? op->setAttr(name, canonical) : (void)op->removeAttr(name);
  });
  return success();
}
