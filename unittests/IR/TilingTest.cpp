//===- TilingTest.cpp - Which tiles are refused, and that nothing is built ===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::norm;

namespace {

using Sizes = SmallVector<OpFoldResult>;

class TilingTest : public FunctionTest {
protected:
  OpFoldResult index(int64_t value) { return builder.getIndexAttr(value); }
  Sizes indices(ArrayRef<int64_t> values) {
    return llvm::map_to_vector(values, [&](int64_t v) { return index(v); });
  }
  NormOpInterface rms(ArrayRef<int64_t> shape, int64_t axis) {
    start({tensor(shape, f32())});
    NormContract contract;
    contract.x = argument(0);
    contract.axes = {axis};
    contract.epsilon = epsilon;
    contract.wantsRstd = true;
    return cast<NormOpInterface>(
        RMSNormOp::create(builder, loc, contract).getOperation());
  }
  size_t opCount() { return body->getOperations().size(); }
};

TEST_F(TilingTest, ReasonNamesTheAxis) {
  NormOpInterface op = rms({4, 8, 2}, 1);
  size_t before = opCount();
  EXPECT_EQ(whyTileIsRefused(op, indices({1, 8, 1})), "");
  EXPECT_EQ(whyTileIsRefused(op, indices({4, 7, 2})),
            "expected a tile that covers reduced axis 1 wholly, got a part of "
            "it");
  EXPECT_EQ(opCount(), before);
}

TEST_F(TilingTest, DynamicExtentsAreComparedByTheirBounds) {
  NormOpInterface op = rms({ShapedType::kDynamic, ShapedType::kDynamic}, 1);
  Value whole = tensor::DimOp::create(builder, loc, argument(0), 1);
  Value ofResult = tensor::DimOp::create(builder, loc, op->getResult(0), 1);
  Value other = tensor::DimOp::create(builder, loc, argument(0), 0);
  EXPECT_EQ(whyTileIsRefused(op, {index(1), OpFoldResult(whole)}), "");
  EXPECT_EQ(whyTileIsRefused(op, {index(1), OpFoldResult(ofResult)}), "");
  EXPECT_NE(whyTileIsRefused(op, {index(1), OpFoldResult(other)}), "");
  EXPECT_NE(whyTileIsRefused(op, {index(1), index(8)}), "");
}

TEST_F(TilingTest, RefusalsBuildNothing) {
  NormOpInterface op = rms({ShapedType::kDynamic, 8}, 1);
  auto tiling = cast<TilingInterface>(op.getOperation());
  size_t before = opCount();
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message = diagnostic.str();
    return success();
  });

  EXPECT_TRUE(failed(tiling.getTiledImplementation(builder, indices({0, 0}),
                                                   indices({2, 4}))));
  EXPECT_EQ(message, "'norm.rms_norm' op expected a tile that covers reduced "
                     "axis 1 wholly, got a part of it");

  // Fusion is asked first, and refused without an error.
  message.clear();
  EXPECT_FALSE(
      tiling.isOpFusableWithConsumerSlice(0, indices({0, 4}), indices({2, 4})));
  EXPECT_TRUE(failed(tiling.generateResultTileValue(builder, 0, indices({0, 4}),
                                                    indices({2, 4}))));
  EXPECT_FALSE(tiling.isOpFusableWithProducerSlices({0}, {indices({0, 4})},
                                                    {indices({2, 4})}));
  EXPECT_TRUE(failed(tiling.getTiledImplementationFromOperandTiles(
      builder, {0}, {indices({0, 4})}, {indices({2, 4})})));
  EXPECT_EQ(message, "");
  EXPECT_EQ(opCount(), before);
}

TEST_F(TilingTest, StatisticTilesTakeWholeRows) {
  NormOpInterface op = rms({4, 8}, 1);
  auto tiling = cast<TilingInterface>(op.getOperation());
  EXPECT_TRUE(
      tiling.isOpFusableWithConsumerSlice(1, indices({2}), indices({2})));
  FailureOr<TilingResult> tile =
      tiling.generateResultTileValue(builder, 1, indices({2}), indices({2}));
  ASSERT_TRUE(succeeded(tile));
  ASSERT_EQ(tile->tiledValues.size(), 1u);
  EXPECT_EQ(tile->tiledValues[0].getType(), tensor({2}, f32()));
  auto tiled = cast<NormOpInterface>(tile->tiledOps[0]);
  EXPECT_EQ(tiled.getInput().getType(), tensor({2, 8}, f32()));
  EXPECT_TRUE(succeeded(verify(*module)));
}

TEST_F(TilingTest, OperandTilesMustAgree) {
  auto data = tensor({4, 8}, f32());
  start({data, data});
  NormContract contract;
  contract.x = argument(0);
  contract.residual = argument(1);
  contract.axes = {1};
  contract.epsilon = epsilon;
  auto op = cast<NormOpInterface>(
      RMSNormOp::create(builder, loc, contract).getOperation());
  EXPECT_EQ(whyOperandTilesAreRefused(op, {0, 1},
                                      {indices({2, 0}), indices({2, 0})},
                                      {indices({1, 8}), indices({1, 8})}),
            "");
  EXPECT_EQ(whyOperandTilesAreRefused(op, {0, 1},
                                      {indices({2, 0}), indices({1, 0})},
                                      {indices({1, 8}), indices({1, 8})}),
            "expected tiles of operands to agree on axis 0, got different "
            "parts of it");
}

} // namespace
