//===- BuildersTest.cpp - Building and asking norm ops in C++ --*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

using namespace mlir;
using namespace mlir::norm;

namespace {

using BuildersTest = FunctionTest;

TEST_F(BuildersTest, ShortBuilderTakesOperandsAxesAndEpsilon) {
  start({tensor({4, 8}, f32()), tensor({8}, f32()), tensor({8}, f32())});
  auto op = LayerNormOp::create(builder, loc, argument(0), argument(1),
                                argument(2), ArrayRef<int64_t>{1}, epsilon);
  EXPECT_EQ(op.getY().getType(), argument(0).getType());
  EXPECT_EQ(op.getScale(), argument(1));
  EXPECT_EQ(op.getShift(), argument(2));
  EXPECT_FALSE(op.getMean());
  EXPECT_FALSE(op.getSum());
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(BuildersTest, AbsentParametersAreNull) {
  start({tensor({4, 8}, f32())});
  auto op = RMSNormOp::create(builder, loc, argument(0), Value(), Value(),
                              ArrayRef<int64_t>{1}, epsilon);
  EXPECT_EQ(op->getNumOperands(), 1u);
  EXPECT_FALSE(op.getScale());
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(BuildersTest, ContractHasEveryFactAndReadsBack) {
  auto data = tensor({2, 3, 8}, bf16());
  start({data, data, tensor({3}, f32())});
  NormContract contract;
  contract.x = argument(0);
  contract.residual = argument(1);
  contract.scale = argument(2);
  contract.axes = {2};
  contract.epsilon = epsilon;
  contract.affineAxes = SmallVector<int64_t>{1};
  contract.correction = 1;
  contract.scaleOffset = 1.0;
  contract.resultType = cast<FloatType>(f32());
  contract.wantsMean = contract.wantsRstd = true;
  contract.sumRounding = SumRounding::Compute;
  contract.sumType = cast<FloatType>(bf16());
  auto op = LayerNormOp::create(builder, loc, contract);
  ASSERT_TRUE(succeeded(verify(*module)));

  EXPECT_EQ(op.getY().getType(), tensor({2, 3, 8}, f32()));
  EXPECT_EQ(op.getMean().getType(), tensor({2, 3}, f32()));
  EXPECT_FALSE(op.getVariance());
  EXPECT_EQ(op.getRstd().getType(), tensor({2, 3}, f32()));
  EXPECT_EQ(op.getSum().getType(), data);

  NormContract read =
      NormContract::get(cast<NormOpInterface>(op.getOperation()));
  EXPECT_EQ(read.residual, contract.residual);
  EXPECT_EQ(read.affineAxes, contract.affineAxes);
  EXPECT_EQ(read.correction, 1);
  EXPECT_EQ(read.scaleOffset, 1.0);
  EXPECT_EQ(read.sumRounding, SumRounding::Compute);
  EXPECT_TRUE(read.wantsMean && !read.wantsVariance && read.wantsRstd);
  EXPECT_EQ(read.sumType, contract.sumType);
}

TEST_F(BuildersTest, InterfaceResolvesAxesAndDefaults) {
  start({tensor({2, ShapedType::kDynamic, 8, 4}, bf16())});
  auto op = RMSNormOp::create(builder, loc, argument(0), Value(), Value(),
                              ArrayRef<int64_t>{-1, 2}, epsilon);
  auto norm = cast<NormOpInterface>(op.getOperation());
  EXPECT_EQ(norm.getReducedAxes(), (SmallVector<int64_t>{2, 3}));
  EXPECT_EQ(norm.getKeptAxes(), (SmallVector<int64_t>{0, 1}));
  EXPECT_EQ(norm.getAffineAxesOrDefault(), (SmallVector<int64_t>{2, 3}));
  EXPECT_EQ(norm.getStaticReducedCount(), 32);
  EXPECT_EQ(norm.getComputeTypeOrDefault(), f32());
  EXPECT_FALSE(norm.isCentred());
  EXPECT_FALSE(norm.isScaleInvariant());
  ASSERT_TRUE(norm.getOutputNormBound().has_value());
  EXPECT_DOUBLE_EQ(*norm.getOutputNormBound(), std::sqrt(32.0));
}

TEST_F(BuildersTest, NoBoundOrCountForDynamicRows) {
  start({tensor({4, ShapedType::kDynamic}, f32())});
  auto op = LayerNormOp::create(builder, loc, argument(0), Value(), Value(),
                                ArrayRef<int64_t>{1}, epsilon);
  auto norm = cast<NormOpInterface>(op.getOperation());
  EXPECT_FALSE(norm.getStaticReducedCount().has_value());
  EXPECT_FALSE(norm.getOutputNormBound().has_value());
  EXPECT_TRUE(norm.isShiftInvariant());
}

} // namespace
