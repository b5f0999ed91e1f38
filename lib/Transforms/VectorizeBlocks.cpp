//===- VectorizeBlocks.cpp - Blocks of rows of a tile ----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles with sums over their rows (TileEmitter.h): the loops over blocks of R
// rows and over the rows that are left, and what they add to the sums.
//
//===----------------------------------------------------------------------===//

#include "TileEmitter.h"

#include "Norm/IR/NormDialect.h"

using namespace mlir;
using namespace mlir::norm;

FailureOr<SmallVector<Value>>
TileEmitter::emitBlocks(unsigned depth, int axis, int64_t height,
                        const DenseMap<int, Value> &position,
                        ValueRange destinations) {
  if (depth == program.getBlockAxes().size()) {
    Step start;
    start.position = position;
    return emitProgram(axis, height, std::move(start), destinations);
  }
  int along = program.getBlockAxes()[depth];
  std::optional<int64_t> extent = program.getAxis(along).getStaticExtent();
  if (extent == 1)
    return emitBlocks(depth + 1, axis, height, position, destinations);

  Values carried(destinations);
  bool isRows = along == program.getRowAxis();
  auto loopOver = [&](Value lower, Value upper, int64_t step) -> LogicalResult {
    FailureOr<Values> values =
        forLoop(lower, upper, step, carried, [&](Value at, ValueRange inner) {
          DenseMap<int, Value> next = position;
          next[along] = at;
          return emitBlocks(depth + 1, step > 1 ? along : axis,
                            step > 1 ? step : height, next, inner);
        });
    if (failed(values))
      return failure();
    carried = *values;
    // Passes that look for the loop over tiles find this one.
    if (isRows && !carried.empty())
      carried.front().getDefiningOp()->setAttr(
          kStrategyAttrName, loop->getAttr(kStrategyAttrName));
    return success();
  };
  Value start = index(0), end = extentOf(along);
  int64_t step = isRows ? program.getVectorRows() : 1;
  if (step > 1 && (!extent || *extent >= step)) {
    Value whole =
        extent ? index(*extent - *extent % step)
               : Value(arith::SubIOp::create(
                     builder, loc, end,
                     arith::RemUIOp::create(builder, loc, end, index(step))));
    if (failed(loopOver(start, whole, step)))
      return failure();
    start = whole;
    if (extent && *extent % step == 0)
      return carried;
  }
  if (failed(loopOver(start, end, 1)))
    return failure();
  return carried;
}

bool TileEmitter::isRowSum(Value tensor) {
  linalg::GenericOp producer = program.getProducer(tensor);
  return producer && program.isRowSum(producer);
}

Value TileEmitter::startRowSum(Value sum, Value destination) {
  linalg::GenericOp op = program.getProducer(sum);
  unsigned number = cast<OpResult>(stripTensorCasts(sum)).getResultNumber();
  Value start = program.getFillValue(op.getDpsInits()[number]);
  return linalg::FillOp::create(builder, loc, start, destination).getResult(0);
}

FailureOr<Vectorized> TileEmitter::addRows(Value sum, Value destination,
                                           Step &step) {
  sum = stripTensorCasts(sum);
  linalg::GenericOp op = program.getProducer(sum);
  unsigned number = cast<OpResult>(sum).getResultNumber();
  auto combiner = matchCombiner(op, number);
  SmallVector<Vectorized> terms;
  if (failed(combiner) || failed(emitBody(op, step, terms)))
    return failure();
  bool hasRows = rowAxis != TileProgram::kNoAxis;
  Vectorized value = readAt(destination, sum, step);
  Value term = broadcast(terms[number], hasRows, /*toColumns=*/true).value;
  if (!hasRows) {
    value.value = accumulate(combiner->first, value.value, term);
    return value;
  }
  // A row of a product is a product of rows, and may be added as one.
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (product && !product->use_empty())
    product = {};
  Value added = program.sumsRowsFirst() ? Value() : value.value;
  for (int64_t row = 0; row < rows; ++row) {
    auto ofRow = [&](Value rowTerms) -> Value {
      return vector::ExtractOp::create(builder, loc, rowTerms, row);
    };
    Value rowTerm =
        product
            ? Value(arith::MulFOp::create(builder, loc, ofRow(product.getLhs()),
                                          ofRow(product.getRhs())))
            : ofRow(term);
    added = added ? accumulate(combiner->first, added, rowTerm) : rowTerm;
  }
  value.value = program.sumsRowsFirst()
                    ? vector::makeArithReduction(builder, loc, combiner->first,
                                                 value.value, added)
                    : added;
  return value;
}
