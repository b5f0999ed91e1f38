//===- InterfaceTest.cpp - Facts, attributes and locations ----------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/OperationSupport.h"

#include <limits>

using namespace mlir;
using namespace mlir::norm;

namespace {

using Axes = SmallVector<int64_t>;

TEST(AxesTest, CanonicalAxesResolveNegativesAndSort) {
  EXPECT_EQ(canonicalAxes({-1, 0, -2}, 4), (Axes{0, 2, 3}));
  EXPECT_EQ(canonicalAxes({}, 4), Axes{});
  // Out of range: kept for the verifier to name.
  EXPECT_EQ(canonicalAxes({7, -9}, 4), (Axes{-5, 7}));
}

TEST(AxesTest, ComplementAxes) {
  EXPECT_EQ(complementAxes({1, 3}, 4), (Axes{0, 2}));
  EXPECT_EQ(complementAxes({}, 2), (Axes{0, 1}));
  EXPECT_EQ(complementAxes({0}, 1), Axes{});
}

using StaticExtentTest = FunctionTest;

TEST_F(StaticExtentTest, ProductOfExtents) {
  RankedTensorType type = tensor({2, 3, ShapedType::kDynamic, 0}, f32());
  EXPECT_EQ(staticExtent(type, {0, 1}), 6);
  EXPECT_EQ(staticExtent(type, {}), 1);
  EXPECT_EQ(staticExtent(type, {1, 2}), std::nullopt);
  // An extent of 0 decides, whatever the dynamic ones are.
  EXPECT_EQ(staticExtent(type, {2, 3}), 0);
}

TEST_F(StaticExtentTest, HugeExtentsSaturate) {
  int64_t huge = int64_t(1) << 40;
  EXPECT_EQ(staticExtent(tensor({huge, huge, 3}, f32()), {0, 1, 2}),
            std::numeric_limits<int64_t>::max());
}

//===----------------------------------------------------------------------===//
// #norm.epsilon
//===----------------------------------------------------------------------===//

using EpsilonTest = FunctionTest;

TEST_F(EpsilonTest, NoneStoresNoValue) {
  EXPECT_EQ(EpsilonAttr::get(&context, EpsilonPlacement::None, 1.0),
            EpsilonAttr::get(&context, EpsilonPlacement::None, 0.0));
  EXPECT_TRUE(EpsilonAttr::get(&context, EpsilonPlacement::None, 1.0).isNone());
}

TEST_F(EpsilonTest, IsUniqued) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(EpsilonAttr::get(&context, EpsilonPlacement::InsideSqrt, nan),
            EpsilonAttr::get(&context, EpsilonPlacement::InsideSqrt, nan));
  EXPECT_NE(epsilon,
            EpsilonAttr::get(&context, EpsilonPlacement::OutsideSqrt, 1.0e-5));
  EXPECT_EQ(epsilon.getDouble(), 1.0e-5);
}

TEST_F(EpsilonTest, ValueIsDouble) {
  ScopedDiagnosticHandler quiet(&context,
                                [](Diagnostic &) { return success(); });
  EXPECT_FALSE(EpsilonAttr::getChecked([&] { return emitError(loc); }, &context,
                                       EpsilonPlacement::InsideSqrt,
                                       APFloat(1.0e-5f)));
}

//===----------------------------------------------------------------------===//
// Facts of an op
//===----------------------------------------------------------------------===//

class NormFactsTest : public FunctionTest {
protected:
  /// x, residual, scale and shift of which one axis is kept, with all results.
  NormOpInterface full() {
    auto data = tensor({2, 3, 8}, f32());
    start({data, data, tensor({3, 8}, f32()), tensor({3, 8}, f32())});
    NormContract contract;
    contract.x = argument(0);
    contract.residual = argument(1);
    contract.scale = argument(2);
    contract.shift = argument(3);
    contract.axes = {-1};
    contract.epsilon = epsilon;
    contract.affineAxes = Axes{1, 2};
    contract.wantsMean = contract.wantsVariance = contract.wantsRstd = true;
    contract.sumType = cast<FloatType>(f32());
    return cast<NormOpInterface>(
        LayerNormOp::create(builder, loc, contract).getOperation());
  }
};

TEST_F(NormFactsTest, AxesOfOperandsAndResults) {
  NormOpInterface op = full();
  ASSERT_TRUE(succeeded(verify(*module)));
  EXPECT_EQ(op.getOperandAxes(0), (Axes{0, 1, 2}));
  EXPECT_EQ(op.getOperandAxes(1), (Axes{0, 1, 2}));
  EXPECT_EQ(op.getOperandAxes(2), (Axes{1, 2}));
  EXPECT_EQ(op.getOperandAxes(3), (Axes{1, 2}));
  EXPECT_EQ(op.getResultAxes(0), (Axes{0, 1, 2}));
  for (unsigned statistic : {1, 2, 3})
    EXPECT_EQ(op.getResultAxes(statistic), (Axes{0, 1}));
  EXPECT_EQ(op.getResultAxes(4), (Axes{0, 1, 2}));
  EXPECT_EQ(op.getDependentAxes(), Axes{2});
  EXPECT_TRUE(op.isCentred());
  EXPECT_TRUE(op.isShiftInvariant());
}

TEST_F(NormFactsTest, AxesWithoutResidual) {
  start({tensor({2, 8}, f32()), tensor({8}, f32())});
  auto op = RMSNormOp::create(builder, loc, argument(0), Value(), argument(1),
                              ArrayRef<int64_t>{1}, epsilon);
  EXPECT_EQ(op.getOperandAxes(1), Axes{1});
  EXPECT_EQ(op.getShift(), argument(1));
}

TEST_F(NormFactsTest, BoundOfTheOutput) {
  start({tensor({2, 9}, f32()), tensor({9}, f32())});
  NormContract contract;
  contract.x = argument(0);
  contract.axes = {1};
  contract.epsilon = epsilon;
  contract.correction = 1;
  auto op = LayerNormOp::create(builder, loc, contract);
  EXPECT_EQ(op.getOutputNormBound(), std::sqrt(8.0));
  contract.scale = argument(1);
  EXPECT_EQ(LayerNormOp::create(builder, loc, contract).getOutputNormBound(),
            std::nullopt);
}

TEST_F(NormFactsTest, ScaleInvarianceNeedsNoEpsilon) {
  start({tensor({2, 8}, f32())});
  auto none = EpsilonAttr::get(&context, EpsilonPlacement::None, 0.0);
  auto build = [&](EpsilonAttr value) {
    return RMSNormOp::create(builder, loc, argument(0), Value(), Value(),
                             ArrayRef<int64_t>{1}, value);
  };
  EXPECT_TRUE(build(none).isScaleInvariant());
  EXPECT_FALSE(build(epsilon).isScaleInvariant());
}

TEST_F(NormFactsTest, ContractRebuildsTheOp) {
  NormOpInterface op = full();
  auto again = LayerNormOp::create(builder, loc, NormContract::get(op));
  ASSERT_TRUE(succeeded(verify(*module)));
  // The contract has the canonical axes; nothing else differs.
  cast<LayerNormOp>(op.getOperation()).setAxes({2});
  EXPECT_TRUE(OperationEquivalence::isEquivalentTo(
      op, again, OperationEquivalence::IgnoreLocations));
}

TEST_F(NormFactsTest, BadAxesAreRefusedNotUsed) {
  start({tensor({2, 8}, f32())});
  for (int64_t axis :
       {int64_t(2), int64_t(-3), std::numeric_limits<int64_t>::min(),
        std::numeric_limits<int64_t>::max()}) {
    ScopedDiagnosticHandler quiet(&context,
                                  [](Diagnostic &) { return success(); });
    auto op = LayerNormOp::create(builder, loc, argument(0), Value(), Value(),
                                  ArrayRef<int64_t>{axis}, epsilon);
    EXPECT_TRUE(failed(verify(*module)));
    op->erase();
  }
}

//===----------------------------------------------------------------------===//
// Locations: what an op replaced stays known
//===----------------------------------------------------------------------===//

TEST_F(NormFactsTest, DecompositionKeepsTheLocation) {
  Location fused = FusedLoc::get(
      &context, {FileLineColLoc::get(&context, "model.py", 1, 1),
                 FileLineColLoc::get(&context, "model.py", 2, 1)});
  start({tensor({ShapedType::kDynamic, ShapedType::kDynamic}, bf16())});
  auto op = LayerNormOp::create(builder, fused, argument(0), Value(), Value(),
                                ArrayRef<int64_t>{1}, epsilon);
  EXPECT_EQ(builder.clone(*op)->getLoc(), fused);

  Block scratch;
  builder.setInsertionPointToStart(&scratch);
  FailureOr<SmallVector<Value>> values = op.decomposeOperation(builder);
  ASSERT_TRUE(succeeded(values));
  EXPECT_EQ(values->size(), 1u);
  for (Operation &part : scratch)
    part.walk<WalkOrder::PreOrder>([&](Operation *nested) {
      // A fill's region is upstream's to build.
      if (isa_and_nonnull<linalg::FillOp>(nested->getParentOp()))
        return;
      EXPECT_EQ(nested->getLoc(), fused)
          << nested->getName().getStringRef().str();
    });
  scratch.clear();
}

} // namespace
