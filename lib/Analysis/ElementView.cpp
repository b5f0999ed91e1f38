//===- ElementView.cpp - Elementwise view of tensor IR
//----------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Analysis/ElementView.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::norm::elements;

//===----------------------------------------------------------------------===//
// Frame and Expr
//===----------------------------------------------------------------------===//

View Frame::identity(Value tensor) const {
  View view{tensor, {}};
  for (auto [i, extent] : llvm::enumerate(shape))
    view.index.push_back(extent == 1 ? kUnit : static_cast<int32_t>(i));
  return view;
}

bool Frame::isIdentity(const View &view) const {
  auto type = dyn_cast<RankedTensorType>(view.value.getType());
  return type && type.getRank() == rank() &&
         view.index == identity(view.value).index;
}

SmallVector<int32_t, 6> Frame::properDims() const {
  SmallVector<int32_t, 6> dims;
  for (auto [i, extent] : llvm::enumerate(shape))
    if (extent != 1)
      dims.push_back(static_cast<int32_t>(i));
  return dims;
}

std::optional<llvm::APFloat> Expr::floatConstant() const {
  if (kind != Kind::Constant)
    return std::nullopt;
  if (auto attr = dyn_cast_or_null<FloatAttr>(constant))
    return attr.getValue();
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Moving through IR that computes nothing
//===----------------------------------------------------------------------===//

/// The element of `tensor` at `index`, with dimensions of extent 1 normalized.
/// Nullopt if a larger dimension is read at a constant position.
static std::optional<View> tensorView(Value tensor, ArrayRef<int32_t> index) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  if (!type || type.getRank() != static_cast<int64_t>(index.size()))
    return std::nullopt;
  View view{tensor, {}};
  for (auto [extent, dim] : llvm::zip_equal(type.getShape(), index)) {
    if (extent != 1 && dim == kUnit)
      return std::nullopt;
    view.index.push_back(extent == 1 ? kUnit : dim);
  }
  return view;
}

/// A scalar used in the body of `op`, whose loops run over `loops`.
static View bodyView(Value scalar, linalg::LinalgOp op,
                     ArrayRef<int32_t> loops) {
  if (scalar.getParentBlock() == op.getBlock())
    return View{scalar, SmallVector<int32_t, 6>(loops)};
  return View{scalar, {}};
}

/// The loops of `op` that compute its result's element at `index`; reduction
/// loops are left at kUnit and listed in `reductions`. Nullopt if the result's
/// map does not determine every parallel loop.
static std::optional<SmallVector<int32_t, 6>>
loopsOf(linalg::LinalgOp op, OpResult result, ArrayRef<int32_t> index,
        SmallVectorImpl<unsigned> *reductions) {
  AffineMap map = op.getIndexingMapMatchingResult(result);
  SmallVector<int32_t, 6> loops(op.getNumLoops(), kUnit);
  llvm::SmallBitVector known(op.getNumLoops());
  for (auto [expr, dim] : llvm::zip_equal(map.getResults(), index)) {
    if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
      if (constant.getValue() != 0)
        return std::nullopt;
      continue;
    }
    auto loop = dyn_cast<AffineDimExpr>(expr);
    if (!loop || known[loop.getPosition()])
      return std::nullopt;
    known.set(loop.getPosition());
    loops[loop.getPosition()] = dim;
  }
  for (auto [i, kind] : llvm::enumerate(op.getIteratorTypesArray())) {
    if (known[i])
      continue;
    if (kind != utils::IteratorType::reduction || !reductions)
      return std::nullopt;
    reductions->push_back(i);
  }
  return loops;
}

/// A position in a tensor computed inside the body of `op`: a loop's index, 0,
/// or the index guarded against a broadcast extent, `size == 1 ? 0 : index`.
static std::optional<int32_t> bodyIndex(Value value, linalg::LinalgOp op,
                                        ArrayRef<int32_t> loops) {
  if (matchPattern(value, m_Zero()))
    return kUnit;
  if (auto index = value.getDefiningOp<linalg::IndexOp>())
    return loops[index.getDim()];
  auto select = value.getDefiningOp<arith::SelectOp>();
  if (!select || !matchPattern(select.getTrueValue(), m_Zero()))
    return std::nullopt;
  auto index = select.getFalseValue().getDefiningOp<linalg::IndexOp>();
  auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!index || !compare ||
      compare.getPredicate() != arith::CmpIPredicate::eq ||
      !matchPattern(compare.getRhs(), m_One()))
    return std::nullopt;
  // With the loop's own extent compared to 1, the guard changes nothing.
  for (OpOperand &init : op.getDpsInitsMutable()) {
    AffineMap map = op.getMatchingIndexingMap(&init);
    auto empty = init.get().getDefiningOp<tensor::EmptyOp>();
    if (!empty)
      continue;
    for (auto [i, expr] : llvm::enumerate(map.getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (loop && loop.getPosition() == index.getDim() &&
          empty.getType().isDynamicDim(i) &&
          empty.getDynamicSize(i) == compare.getLhs())
        return loops[index.getDim()];
    }
  }
  return std::nullopt;
}

static std::optional<View> stepBlockArgument(BlockArgument arg,
                                             const View &view) {
  auto op = dyn_cast_or_null<linalg::LinalgOp>(arg.getOwner()->getParentOp());
  if (!op || op.getBlock() != arg.getOwner() || !op.hasPureTensorSemantics())
    return std::nullopt;
  for (OpOperand &operand : op->getOpOperands()) {
    if (op.getMatchingBlockArgument(&operand) != arg)
      continue;
    // The accumulator of a reduction is not an element of its init.
    if (op.isDpsInit(&operand) && op.getNumReductionLoops() != 0)
      return std::nullopt;
    if (!isa<RankedTensorType>(operand.get().getType()))
      return View{operand.get(), {}};
    SmallVector<int32_t, 6> index;
    for (AffineExpr expr : op.getMatchingIndexingMap(&operand).getResults()) {
      if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
        index.push_back(view.index[loop.getPosition()]);
        continue;
      }
      auto constant = dyn_cast<AffineConstantExpr>(expr);
      if (!constant || constant.getValue() != 0)
        return std::nullopt;
      index.push_back(kUnit);
    }
    return tensorView(operand.get(), index);
  }
  return std::nullopt;
}

/// Through a reshape that only adds or drops dimensions of extent 1.
/// `fine` has one entry per dimension of the side with more dimensions.
static std::optional<View>
stepReshape(Value source, ArrayRef<ReassociationIndices> groups, bool expands,
            ArrayRef<int64_t> fineShape, ArrayRef<int32_t> index) {
  SmallVector<int32_t, 6> out;
  if (groups.empty() && !expands)
    out.assign(fineShape.size(), kUnit);
  for (auto [coarse, group] : llvm::enumerate(groups)) {
    SmallVector<int64_t, 4> proper;
    for (int64_t dim : group)
      if (fineShape[dim] != 1)
        proper.push_back(dim);
    if (proper.size() > 1)
      return std::nullopt;
    if (expands) {
      out.push_back(proper.empty() ? kUnit : index[proper.front()]);
      continue;
    }
    for (int64_t dim : group)
      out.push_back(!proper.empty() && dim == proper.front() ? index[coarse]
                                                             : kUnit);
  }
  return tensorView(source, out);
}

static std::optional<View> stepLinalg(linalg::LinalgOp op, const View &view) {
  if (!op.hasPureTensorSemantics() || op.getNumReductionLoops() != 0)
    return std::nullopt;
  if (auto fill = dyn_cast<linalg::FillOp>(op.getOperation()))
    return View{fill.value(), {}};
  auto result = cast<OpResult>(view.value);
  auto loops = loopsOf(op, result, view.index, nullptr);
  if (!loops)
    return std::nullopt;
  Value yielded =
      op.getBlock()->getTerminator()->getOperand(result.getResultNumber());
  return bodyView(yielded, op, *loops);
}

static std::optional<View> stepExtract(tensor::ExtractOp extract,
                                       const View &view) {
  auto op = dyn_cast<linalg::LinalgOp>(extract->getParentOp());
  SmallVector<int32_t, 6> index;
  for (Value position : extract.getIndices()) {
    if (op && !view.index.empty()) {
      std::optional<int32_t> dim = bodyIndex(position, op, view.index);
      if (!dim)
        return std::nullopt;
      index.push_back(*dim);
      continue;
    }
    if (!matchPattern(position, m_Zero()))
      return std::nullopt;
    index.push_back(kUnit);
  }
  return tensorView(extract.getTensor(), index);
}

std::optional<View> ViewAnalysis::step(const View &view) const {
  if (auto arg = dyn_cast<BlockArgument>(view.value))
    return stepBlockArgument(arg, view);
  return TypeSwitch<Operation *, std::optional<View>>(
             view.value.getDefiningOp())
      .Case([&](linalg::LinalgOp op) { return stepLinalg(op, view); })
      .Case([&](tensor::ExpandShapeOp op) {
        return stepReshape(op.getSrc(), op.getReassociationIndices(),
                           /*expands=*/true, op.getResultType().getShape(),
                           view.index);
      })
      .Case([&](tensor::CollapseShapeOp op) {
        return stepReshape(op.getSrc(), op.getReassociationIndices(),
                           /*expands=*/false, op.getSrcType().getShape(),
                           view.index);
      })
      .Case([&](tensor::CastOp op) -> std::optional<View> {
        return tensorView(op.getSource(), view.index);
      })
      .Case([&](tensor::SplatOp op) { return View{op.getInput(), {}}; })
      .Case([&](tensor::ExtractOp op) { return stepExtract(op, view); })
      .Default([](Operation *) { return std::nullopt; });
}

View ViewAnalysis::look(View view,
                        llvm::function_ref<void(const View &)> visit) const {
  for (;;) {
    if (visit)
      visit(view);
    std::optional<View> next = step(view);
    if (!next)
      return view;
    view = std::move(*next);
  }
}

//===----------------------------------------------------------------------===//
// What an element is made of
//===----------------------------------------------------------------------===//

static Kind scalarKind(Operation *op) {
  return TypeSwitch<Operation *, Kind>(op)
      .Case<arith::AddFOp>([](auto) { return Kind::Add; })
      .Case<arith::SubFOp>([](auto) { return Kind::Sub; })
      .Case<arith::MulFOp>([](auto) { return Kind::Mul; })
      .Case<arith::DivFOp>([](auto) { return Kind::Div; })
      .Case<arith::MaximumFOp>([](auto) { return Kind::Max; })
      .Case<arith::NegFOp>([](auto) { return Kind::Neg; })
      .Case<math::AbsFOp>([](auto) { return Kind::Abs; })
      .Case<math::SqrtOp>([](auto) { return Kind::Sqrt; })
      .Case<math::RsqrtOp>([](auto) { return Kind::Rsqrt; })
      .Case<math::PowFOp, math::FPowIOp>([](auto) { return Kind::Pow; })
      .Case<arith::ExtFOp>([](auto) { return Kind::Ext; })
      .Case<arith::TruncFOp>([](auto) { return Kind::Trunc; })
      .Case<arith::SelectOp>([](auto) { return Kind::Select; })
      .Case<arith::CmpFOp>([](auto) { return Kind::Compare; })
      .Default([](Operation *) { return Kind::Other; });
}

/// Folds an operation on constants with MLIR's own folders.
static Attribute foldScalar(const ViewAnalysis &views, Operation *op,
                            ArrayRef<View> operands) {
  SmallVector<Attribute, 3> constants;
  for (const View &operand : operands) {
    Expr expr = views.expand(operand);
    if (!expr.is(Kind::Constant))
      return {};
    constants.push_back(expr.constant);
  }
  // On tensors the folders want dense attributes; nothing writes constants so.
  if (llvm::any_of(op->getResultTypes(), llvm::IsaPred<ShapedType>))
    return {};
  // MLIR folds only those narrowings that lose nothing.
  if (auto trunc = dyn_cast<arith::TruncFOp>(op)) {
    auto value = dyn_cast<FloatAttr>(constants.front());
    if (!value || trunc.getRoundingmode())
      return {};
    auto type = cast<FloatType>(trunc.getType());
    llvm::APFloat rounded = value.getValue();
    bool losesInfo = false;
    rounded.convert(type.getFloatSemantics(),
                    llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return FloatAttr::get(type, rounded);
  }
  SmallVector<OpFoldResult, 1> results;
  if (failed(op->fold(constants, results)) || results.size() != 1)
    return {};
  if (auto attr = dyn_cast<Attribute>(results.front()))
    return attr;
  // x - 0 folds to x, an operand.
  for (auto [operand, constant] : llvm::zip_equal(op->getOperands(), constants))
    if (operand == cast<Value>(results.front()))
      return constant;
  return {};
}

/// `x < c ? c : x` and its mirror images: a maximum, whichever way the
/// comparison takes NaN.
static bool isSelectedMaximum(const ViewAnalysis &views, Expr &expr) {
  Expr condition = views.expand(expr.operands[0]);
  if (!condition.is(Kind::Compare) || condition.operands.size() != 2)
    return false;
  auto predicate = cast<arith::CmpFOp>(condition.operation).getPredicate();
  View lhs = condition.operands[0], rhs = condition.operands[1];
  switch (predicate) {
  case arith::CmpFPredicate::ULT:
  case arith::CmpFPredicate::OLT:
  case arith::CmpFPredicate::ULE:
  case arith::CmpFPredicate::OLE:
    std::swap(lhs, rhs);
    break;
  case arith::CmpFPredicate::UGT:
  case arith::CmpFPredicate::OGT:
  case arith::CmpFPredicate::UGE:
  case arith::CmpFPredicate::OGE:
    break;
  default:
    return false;
  }
  // Now: lhs > rhs selects operands[1].
  if (!views.same(lhs, expr.operands[1]) || !views.same(rhs, expr.operands[2]))
    return false;
  expr.kind = Kind::Max;
  expr.operands = {lhs, rhs};
  return true;
}

/// `op` on its operands; a leaf if it is not elementwise.
Expr ViewAnalysis::scalarOperation(const View &view, Operation *op) const {
  Expr expr;
  expr.type = getElementTypeOrSelf(view.value.getType());
  bool elementwise = op->getNumResults() == 1 &&
                     op->hasTrait<OpTrait::Elementwise>() &&
                     op->getNumRegions() == 0;
  if (!elementwise)
    return expr;
  auto body = dyn_cast_or_null<linalg::LinalgOp>(op->getParentOp());
  for (Value operand : op->getOperands()) {
    View read = view.isTensor() ? View{operand, view.index}
                : body          ? bodyView(operand, body, view.index)
                                : View{operand, {}};
    // A scalar operand of a tensor operation (arith.select's condition).
    if (view.isTensor() && !read.isTensor())
      read.index.clear();
    expr.operands.push_back(std::move(read));
  }
  expr.kind = scalarKind(op);
  expr.operation = op;
  return expr;
}

Expr ViewAnalysis::expandUnfolded(const View &unresolved) const {
  View view = look(unresolved);
  Operation *op = view.value.getDefiningOp();
  if (!op || isa<arith::ConstantOp, linalg::LinalgOp>(op))
    return expand(view);
  return scalarOperation(view, op);
}

Expr ViewAnalysis::expandOperation(const View &view, Operation *op) const {
  Expr expr = scalarOperation(view, op);
  if (expr.is(Kind::Leaf))
    return expr;
  if (Attribute folded = foldScalar(*this, op, expr.operands)) {
    expr.kind = Kind::Constant;
    expr.constant = folded;
    return expr;
  }
  if (expr.is(Kind::Select)) {
    Expr condition = expand(expr.operands[0]);
    if (condition.is(Kind::Constant))
      if (auto value = dyn_cast<IntegerAttr>(condition.constant))
        return expand(expr.operands[value.getValue().isZero() ? 2 : 1]);
    isSelectedMaximum(*this, expr);
  }
  return expr;
}

/// The value combined with the accumulator in a body `acc (+) value`.
static Value combinedValue(linalg::LinalgOp op, OpResult result,
                           Operation *&combiner) {
  BlockArgument accumulator = op.getMatchingBlockArgument(
      op.getDpsInitOperand(result.getResultNumber()));
  Value yielded =
      op.getBlock()->getTerminator()->getOperand(result.getResultNumber());
  combiner = yielded.getDefiningOp();
  if (!combiner || combiner->getNumOperands() != 2 || !accumulator.hasOneUse())
    return {};
  if (combiner->getOperand(0) == accumulator)
    return combiner->getOperand(1);
  if (combiner->getOperand(1) == accumulator)
    return combiner->getOperand(0);
  return {};
}

Expr ViewAnalysis::expandReduction(const View &view) const {
  auto result = cast<OpResult>(view.value);
  auto op = cast<linalg::LinalgOp>(result.getOwner());
  Expr expr;
  expr.type = getElementTypeOrSelf(result.getType());
  if (!op.hasPureTensorSemantics())
    return expr;
  SmallVector<unsigned, 4> reductions;
  auto loops = loopsOf(op, result, view.index, &reductions);
  Operation *combiner = nullptr;
  Value addend = combinedValue(op, result, combiner);
  if (!loops || !addend)
    return expr;

  // The loops summed over are bound variables: name them after the frame
  // dimensions that the result is not read at, in order. Any injective choice
  // is right; this one makes the summed value read at the frame's own indices.
  SmallVector<int64_t, 4> ranges = op.getStaticLoopRanges();
  SmallVector<int32_t, 6> free;
  for (int32_t dim : frame.properDims())
    if (!llvm::is_contained(view.index, dim))
      free.push_back(dim);
  for (unsigned loop : reductions) {
    int64_t extent = ranges[loop];
    if (extent == 1)
      continue;
    auto *dim = llvm::find_if(
        free, [&](int32_t dim) { return frame.shape[dim] == extent; });
    if (dim == free.end())
      return expr;
    (*loops)[loop] = *dim;
    expr.axes.push_back(*dim);
    free.erase(dim);
    expr.count =
        ShapedType::isDynamic(extent) || ShapedType::isDynamic(expr.count)
            ? ShapedType::kDynamic
            : expr.count * extent;
  }
  llvm::sort(expr.axes);
  expr.kind = Kind::Reduce;
  expr.operation = op;
  expr.isSum = isa<arith::AddFOp>(combiner);
  expr.operands.push_back(bodyView(addend, op, *loops));
  OpOperand *init = op.getDpsInitOperand(result.getResultNumber());
  std::optional<View> start = tensorView(init->get(), view.index);
  if (start)
    if (auto value = expand(*start).floatConstant())
      expr.startsAtZero = value->isZero();
  return expr;
}

Expr ViewAnalysis::expand(const View &unresolved) const {
  View view = look(unresolved);
  Expr expr;
  expr.type = getElementTypeOrSelf(view.value.getType());
  Operation *op = view.value.getDefiningOp();
  if (!op)
    return expr;
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    Attribute value = constant.getValue();
    if (auto dense = dyn_cast<DenseElementsAttr>(value))
      value = dense.isSplat() ? dense.getSplatValue<Attribute>() : Attribute();
    if (!isa_and_present<FloatAttr, IntegerAttr>(value))
      return expr;
    expr.kind = Kind::Constant;
    expr.constant = value;
    return expr;
  }
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.getNumReductionLoops() != 0 ? expandReduction(view) : expr;
  return expandOperation(view, op);
}

View ViewAnalysis::stripExt(
    View view, llvm::function_ref<void(const View &)> visit) const {
  for (;;) {
    view = look(std::move(view), visit);
    Expr expr = expand(view);
    if (!expr.is(Kind::Ext))
      return view;
    view = expr.operands.front();
  }
}

//===----------------------------------------------------------------------===//
// Equality
//===----------------------------------------------------------------------===//

bool ViewAnalysis::sameImpl(View a, View b, bool exact, unsigned &fuel) const {
  a = exact ? stripExt(std::move(a)) : look(std::move(a));
  b = exact ? stripExt(std::move(b)) : look(std::move(b));
  if (a == b)
    return true;
  if (fuel == 0)
    return false;
  --fuel;
  Expr ea = expand(a), eb = expand(b);
  if (ea.kind != eb.kind || ea.type != eb.type || ea.is(Kind::Leaf))
    return false;
  if (ea.is(Kind::Constant))
    return ea.constant == eb.constant;
  if (ea.operands.size() != eb.operands.size() || ea.axes != eb.axes ||
      ea.isSum != eb.isSum || ea.startsAtZero != eb.startsAtZero)
    return false;
  if ((ea.is(Kind::Other) || ea.is(Kind::Compare)) &&
      (ea.operation->getName() != eb.operation->getName() ||
       ea.operation->getDiscardableAttrDictionary() !=
           eb.operation->getDiscardableAttrDictionary() ||
       ea.operation->getPropertiesAsAttribute() !=
           eb.operation->getPropertiesAsAttribute()))
    return false;
  if (ea.is(Kind::Reduce) && !ea.isSum)
    return false;
  if (llvm::all_of(llvm::zip_equal(ea.operands, eb.operands), [&](auto pair) {
        return sameImpl(std::get<0>(pair), std::get<1>(pair), false, fuel);
      }))
    return true;
  if (!ea.is(Kind::Add) && !ea.is(Kind::Mul))
    return false;
  return sameImpl(ea.operands[0], eb.operands[1], false, fuel) &&
         sameImpl(ea.operands[1], eb.operands[0], false, fuel);
}

bool ViewAnalysis::same(const View &a, const View &b) const {
  unsigned fuel = 64;
  return sameImpl(a, b, /*exact=*/false, fuel);
}

bool ViewAnalysis::sameExact(const View &a, const View &b) const {
  unsigned fuel = 64;
  return sameImpl(a, b, /*exact=*/true, fuel);
}

std::optional<View>
norm::elements::lastTensor(const ViewAnalysis &views, const View &view,
                           bool throughExt,
                           llvm::function_ref<bool(const View &)> accept) {
  std::optional<View> last;
  auto visit = [&](const View &seen) {
    if (seen.isTensor() && accept(seen))
      last = seen;
  };
  if (throughExt)
    views.stripExt(view, visit);
  else
    views.look(view, visit);
  return last;
}
