//===- RotaryTest.cpp - Norms and rotary embeddings -----------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fixture.h"

#include "Norm/Analysis/Constants.h"
#include "Norm/Analysis/Rotary.h"

using namespace mlir;
using namespace mlir::norm;

namespace {

/// C34: a norm of [3, 8] along its last axis, with a gain.
class RotaryTest : public FunctionTest {
protected:
  template <typename OpTy>
  NormOpInterface norm(ArrayRef<double> gain, SmallVector<int64_t> axes = {1},
                       SmallVector<int64_t> affineAxes = {1}) {
    start({tensor({3, 8}, f32()), tensor({8}, f32())});
    NormContract contract;
    contract.x = argument(0);
    contract.axes = axes;
    contract.epsilon = epsilon;
    if (!gain.empty()) {
      contract.scale = createConstant(
          builder, loc, tensor({affineAxes[0] == 0 ? 3 : 8}, f32()), gain);
      contract.affineAxes = affineAxes;
    }
    return cast<NormOpInterface>(
        OpTy::create(builder, loc, contract).getOperation());
  }
};

TEST_F(RotaryTest, NoGainCommutes) {
  NormOpInterface op = norm<RMSNormOp>({});
  EXPECT_TRUE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::HalfSplit));
  EXPECT_TRUE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::Interleaved));
}

TEST_F(RotaryTest, GainsInHalves) {
  NormOpInterface op = norm<RMSNormOp>({1, 2, 3, 4, 1, 2, 3, 4});
  EXPECT_TRUE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::HalfSplit));
  EXPECT_FALSE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::Interleaved));
}

TEST_F(RotaryTest, GainsInNeighbours) {
  NormOpInterface op = norm<L2NormOp>({1, 1, 2, 2, 3, 3, 4, 4});
  EXPECT_FALSE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::HalfSplit));
  EXPECT_TRUE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::Interleaved));
}

TEST_F(RotaryTest, GainsAlongAnotherAxis) {
  NormOpInterface op = norm<RMSNormOp>({1, 2, 3}, {1}, {0});
  EXPECT_TRUE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::HalfSplit));
}

TEST_F(RotaryTest, AMeanMoves) {
  NormOpInterface op = norm<LayerNormOp>({});
  EXPECT_FALSE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::HalfSplit));
}

TEST_F(RotaryTest, AnAxisThatIsNotReduced) {
  NormOpInterface op = norm<RMSNormOp>({}, {0});
  EXPECT_FALSE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::HalfSplit));
}

TEST_F(RotaryTest, AGainThatIsNoConstant) {
  NormOpInterface op = norm<RMSNormOp>({1});
  NormContract contract = NormContract::get(op);
  contract.scale = argument(1);
  op = cast<NormOpInterface>(op.rebuild(builder, loc, contract));
  EXPECT_FALSE(commutesWithRotaryEmbedding(op, 1, RotaryLayout::HalfSplit));
}

} // namespace
