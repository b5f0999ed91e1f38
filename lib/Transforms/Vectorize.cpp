//===- Vectorize.cpp - norm-vectorize -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns the linalg ops of a tile into the shared vector form. The tile's
// program (TileProgram.h) is cut into sweeps over the reduced axes: sweep L
// computes every reduction that needs L others before it, the last sweep
// writes every result. Elementwise ops are recomputed in each sweep that needs
// them, from what the tile was given, so nothing the size of a row is ever
// stored. What does not vary along a reduced axis is computed once, between
// sweeps.
//
// A value becomes a vector over the axes it varies along:
//
//   rows x columns   vector<RxC>      rows only      vector<R>
//   columns only     vector<C>        neither        a scalar
//
// Sums are blocked: no accumulator takes more than kMaxChain additions before
// it is folded into the next level, and the tree depends on the reduced extents
// and on C alone.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormOps.h"
#include "TileProgram.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Utils/VectorUtils.h"

namespace mlir::norm {
#define GEN_PASS_DEF_VECTORIZENORMTILESPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

/// The longest chain of additions into one accumulator.
static constexpr int64_t kMaxChain = 128;

namespace {

/// A value of the tile and the vector axes it varies along. Its type is
/// vector<RxC>, vector<R>, vector<C> or a scalar.
struct Vectorized {
  Value value;
  bool hasRows = false, hasColumns = false;
};

/// One step of a sweep: where it is on the reduced axes, and which columns of
/// the vector are inside the tile.
struct Step {
  /// Index along each axis; absent for axes that the step covers as a vector.
  DenseMap<int, Value> position;
  /// How many columns count; null if all C do.
  Value activeColumns;
  /// Full values already computed in this step.
  DenseMap<Value, Vectorized> cache;
};

/// The part of an axis that whole vectors (or single elements) cover, and the
/// rest, which takes a mask.
struct AxisSplit {
  int64_t width;
  Value wholeEnd, end;
  /// Number of whole steps, when static.
  std::optional<int64_t> wholeSteps;
  bool hasWhole, hasRest;
};

/// Emits the vector form of one tile, before its terminator.
class TileEmitter {
public:
  TileEmitter(const TileProgram &program, scf::ForallOp loop, int64_t columns)
      : program(program), loop(loop), loc(loop.getLoc()), columns(columns),
        builder(loop.getTerminator()) {
    if (program.getRowAxis() != TileProgram::kNoAxis)
      rows = *program.getAxis(program.getRowAxis()).getStaticExtent();
  }

  LogicalResult run();

private:
  using Values = SmallVector<Value>;
  using StepFn = function_ref<FailureOr<Values>(Step &, ValueRange carried)>;

  // Sweeps.
  LogicalResult emitReductions(int level);
  LogicalResult emitKeptOps(int level);
  LogicalResult emitOutputs();
  FailureOr<Values> sumOver(unsigned depth, Step &step, ValueRange neutral,
                            ArrayRef<vector::CombiningKind> kinds,
                            StepFn terms);
  FailureOr<Values>
  blockedLoop(int64_t levels, Value lower, Value upper, int64_t step,
              ValueRange inits, ValueRange neutral,
              ArrayRef<vector::CombiningKind> kinds,
              function_ref<FailureOr<Values>(Value, ValueRange)> body);
  FailureOr<Values> visit(unsigned depth, Step &step, ValueRange carried,
                          StepFn body);
  FailureOr<Values>
  forLoop(Value lower, Value upper, int64_t step, ValueRange inits,
          function_ref<FailureOr<Values>(Value, ValueRange)> body);

  // Values.
  FailureOr<Vectorized> get(Value tensor, Step &step);
  Vectorized read(Value tensor, Step &step);
  Value write(Vectorized value, Value source, Value destination, Step &step);
  LogicalResult emitBody(linalg::GenericOp op, Step &step,
                         SmallVectorImpl<Vectorized> &results);
  Vectorized broadcast(Vectorized value, bool toRows, bool toColumns);
  VectorType vectorType(bool hasRows, bool hasColumns, Type elementType);
  Value activeMask(Step &step, ArrayRef<bool> dimIsColumns);

  // Extents and constants.
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value extentOf(int axis) {
    return getValueOrCreateConstantIndexOp(builder, loc,
                                           program.getAxis(axis).extent);
  }
  void eraseProgram();
  AxisSplit splitAxis(int axis);
  /// The step inside `outer` at `position` along `axis`.
  Step advance(const Step &outer, int axis, Value position, Value active);
  /// Reads and writes at one place: the indices of `tensor` for a step, and
  /// the vector's dimensions in memory order.
  void locate(Value tensor, Step &step, Values &indices,
              SmallVectorImpl<AffineExpr> &dims,
              SmallVectorImpl<bool> &dimIsColumns);

  const TileProgram &program;
  scf::ForallOp loop;
  Location loc;
  int64_t columns, rows = 1;
  OpBuilder builder;
  /// The tile before any reduced axis is entered.
  Step base;
  /// Values that do not vary along a reduced axis.
  DenseMap<Value, Vectorized> kept;
};

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

VectorType TileEmitter::vectorType(bool hasRows, bool hasColumns,
                                   Type elementType) {
  SmallVector<int64_t> shape;
  if (hasRows)
    shape.push_back(rows);
  if (hasColumns)
    shape.push_back(columns);
  return VectorType::get(shape, elementType);
}

Vectorized TileEmitter::broadcast(Vectorized value, bool toRows,
                                  bool toColumns) {
  if (value.hasRows == toRows && value.hasColumns == toColumns)
    return value;
  Type elementType = getElementTypeOrSelf(value.value);
  VectorType type = vectorType(toRows, toColumns, elementType);
  Value source = value.value;
  // vector<R> lines up with the trailing dimension unless made vector<Rx1>.
  if (value.hasRows && !value.hasColumns)
    source = vector::ShapeCastOp::create(
        builder, loc, VectorType::get({rows, 1}, elementType), source);
  return {vector::BroadcastOp::create(builder, loc, type, source), toRows,
          toColumns};
}

void TileEmitter::locate(Value tensor, Step &step, Values &indices,
                         SmallVectorImpl<AffineExpr> &dims,
                         SmallVectorImpl<bool> &dimIsColumns) {
  for (auto [dim, axis] : llvm::enumerate(program.getAxesOf(tensor))) {
    bool isColumns = axis == program.getColumnAxis();
    if (isColumns ||
        (axis != TileProgram::kNoAxis && axis == program.getRowAxis())) {
      dims.push_back(builder.getAffineDimExpr(dim));
      dimIsColumns.push_back(isColumns);
    }
    auto it = step.position.find(axis);
    indices.push_back(it == step.position.end() ? index(0) : it->second);
  }
}

/// The mask of a vector whose dimensions are as given; null if all is active.
Value TileEmitter::activeMask(Step &step, ArrayRef<bool> dimIsColumns) {
  if (!step.activeColumns || !llvm::is_contained(dimIsColumns, true))
    return {};
  SmallVector<int64_t> shape;
  Values bounds;
  for (bool isColumns : dimIsColumns) {
    shape.push_back(isColumns ? columns : rows);
    bounds.push_back(isColumns ? step.activeColumns : index(rows));
  }
  return vector::CreateMaskOp::create(
      builder, loc, VectorType::get(shape, builder.getI1Type()), bounds);
}

Vectorized TileEmitter::read(Value tensor, Step &step) {
  tensor = stripTensorCasts(tensor);
  auto type = cast<RankedTensorType>(tensor.getType());
  Values indices;
  SmallVector<AffineExpr> dims;
  SmallVector<bool> dimIsColumns;
  locate(tensor, step, indices, dims, dimIsColumns);
  if (dims.empty())
    return {tensor::ExtractOp::create(builder, loc, tensor, indices)};

  SmallVector<int64_t> shape = llvm::map_to_vector(
      dimIsColumns, [&](bool isColumns) { return isColumns ? columns : rows; });
  Value padding = arith::ConstantOp::create(
      builder, loc, builder.getZeroAttr(type.getElementType()));
  AffineMap map = AffineMap::get(type.getRank(), 0, dims, builder.getContext());
  auto inBounds =
      builder.getBoolArrayAttr(SmallVector<bool>(dims.size(), true));
  Value value = vector::TransferReadOp::create(
      builder, loc, VectorType::get(shape, type.getElementType()), tensor,
      indices, AffineMapAttr::get(map), padding, activeMask(step, dimIsColumns),
      inBounds);
  // Columns before rows in memory: bring them into the order of the form.
  if (dims.size() == 2 && dimIsColumns.front())
    value = vector::TransposeOp::create(builder, loc, value,
                                        ArrayRef<int64_t>{1, 0});
  return {value, llvm::is_contained(dimIsColumns, false),
          llvm::is_contained(dimIsColumns, true)};
}

Value TileEmitter::write(Vectorized value, Value source, Value destination,
                         Step &step) {
  auto type = cast<RankedTensorType>(destination.getType());
  Values indices;
  SmallVector<AffineExpr> dims;
  SmallVector<bool> dimIsColumns;
  locate(source, step, indices, dims, dimIsColumns);
  if (dims.empty())
    return tensor::InsertOp::create(builder, loc, value.value, destination,
                                    indices);
  value = broadcast(value, llvm::is_contained(dimIsColumns, false),
                    llvm::is_contained(dimIsColumns, true));
  Value vector = value.value;
  if (dims.size() == 2 && dimIsColumns.front())
    vector = vector::TransposeOp::create(builder, loc, vector,
                                         ArrayRef<int64_t>{1, 0});
  AffineMap map = AffineMap::get(type.getRank(), 0, dims, builder.getContext());
  auto inBounds =
      builder.getBoolArrayAttr(SmallVector<bool>(dims.size(), true));
  return vector::TransferWriteOp::create(
             builder, loc, type, vector, destination, indices,
             AffineMapAttr::get(map), activeMask(step, dimIsColumns), inBounds)
      .getResult();
}

FailureOr<Vectorized> TileEmitter::get(Value tensor, Step &step) {
  if (!isa<RankedTensorType>(tensor.getType()))
    return Vectorized{tensor};
  tensor = stripTensorCasts(tensor);
  if (auto it = kept.find(tensor); it != kept.end())
    return it->second;
  if (auto it = step.cache.find(tensor); it != step.cache.end())
    return it->second;
  if (Value scalar = program.getFillValue(tensor))
    return Vectorized{scalar};
  linalg::GenericOp producer = program.getProducer(tensor);
  if (!producer)
    return step.cache[tensor] = read(tensor, step);
  SmallVector<Vectorized> results;
  if (failed(emitBody(producer, step, results)))
    return failure();
  for (auto [result, value] : llvm::zip_equal(producer->getResults(), results))
    step.cache[result] = value;
  return step.cache[tensor];
}

/// One scalar op of a body, on vectors over the axes its operands vary along.
static FailureOr<SmallVector<Vectorized>>
emitElementwise(Operation &op, ArrayRef<Value> operands, bool hasRows,
                bool hasColumns, ArrayRef<int64_t> shape, OpBuilder &builder) {
  SmallVector<Type> types;
  for (Type type : op.getResultTypes())
    types.push_back(shape.empty() ? type : VectorType::get(shape, type));
  OperationState state(op.getLoc(), op.getName());
  state.addOperands(operands);
  state.addTypes(types);
  state.addAttributes(op.getAttrs());
  Operation *created = builder.create(state);
  SmallVector<Vectorized> results;
  for (Value result : created->getResults())
    results.push_back({result, hasRows, hasColumns});
  return results;
}

LogicalResult TileEmitter::emitBody(linalg::GenericOp op, Step &step,
                                    SmallVectorImpl<Vectorized> &results) {
  DenseMap<Value, Vectorized> env;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(&operand);
    // A destination's old elements matter only to reductions, and there the
    // terms are what is asked for.
    if (argument.use_empty() ||
        (op.isDpsInit(&operand) && program.isReduction(op)))
      continue;
    FailureOr<Vectorized> value = get(operand.get(), step);
    if (failed(value))
      return failure();
    env[argument] = *value;
  }

  auto lookup = [&](Value value) {
    auto it = env.find(value);
    // Not from this body: a scalar of the surrounding code.
    return it == env.end() ? Vectorized{value} : it->second;
  };
  SetVector<Operation *> combiners;
  for (auto [number, argument] : llvm::enumerate(op.getRegionOutputArgs()))
    if (program.isReduction(op))
      for (Operation *user : argument.getUsers())
        combiners.insert(user);

  for (Operation &bodyOp : op.getBody()->without_terminator()) {
    if (combiners.contains(&bodyOp))
      continue;
    if (bodyOp.hasTrait<OpTrait::ConstantLike>()) {
      env[bodyOp.getResult(0)] = {builder.clone(bodyOp)->getResult(0)};
      continue;
    }
    if (!OpTrait::hasElementwiseMappableTraits(&bodyOp))
      return bodyOp.emitError("cannot vectorize '")
             << bodyOp.getName() << "' in a tile: expected an elementwise op";
    SmallVector<Vectorized> inputs = llvm::map_to_vector(
        bodyOp.getOperands(), [&](Value value) { return lookup(value); });
    bool hasRows = llvm::any_of(inputs, [](auto &v) { return v.hasRows; });
    bool hasColumns =
        llvm::any_of(inputs, [](auto &v) { return v.hasColumns; });
    SmallVector<Value> operands =
        llvm::map_to_vector(inputs, [&](Vectorized v) {
          return broadcast(v, hasRows, hasColumns).value;
        });
    SmallVector<int64_t> shape;
    if (hasRows)
      shape.push_back(rows);
    if (hasColumns)
      shape.push_back(columns);
    FailureOr<SmallVector<Vectorized>> emitted =
        emitElementwise(bodyOp, operands, hasRows, hasColumns, shape, builder);
    for (auto [result, value] : llvm::zip_equal(bodyOp.getResults(), *emitted))
      env[result] = value;
  }

  for (auto [number, yielded] :
       llvm::enumerate(op.getBody()->getTerminator()->getOperands())) {
    if (!program.isReduction(op)) {
      results.push_back(lookup(yielded));
      continue;
    }
    // The term: the combiner's operand that is not the accumulator.
    Operation *combiner = yielded.getDefiningOp();
    Value accumulator = op.getRegionOutputArgs()[number];
    results.push_back(lookup(combiner->getOperand(0) == accumulator
                                 ? combiner->getOperand(1)
                                 : combiner->getOperand(0)));
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

FailureOr<SmallVector<Value>>
TileEmitter::forLoop(Value lower, Value upper, int64_t step, ValueRange inits,
                     function_ref<FailureOr<Values>(Value, ValueRange)> body) {
  auto forOp =
      scf::ForOp::create(builder, loc, lower, upper, index(step), inits);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(forOp.getBody());
  FailureOr<Values> yielded =
      body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  if (failed(yielded))
    return failure();
  // A loop without carried values comes with its terminator.
  if (!inits.empty())
    scf::YieldOp::create(builder, loc, *yielded);
  return Values(forOp.getResults());
}

/// How many levels of loops keep chains of `steps` additions within kMaxChain.
static int64_t chainLevels(std::optional<int64_t> steps) {
  // A run-time count gets the levels that cover 2^28 steps; outer ones that
  // run once add the neutral element and change nothing.
  if (!steps)
    return 4;
  int64_t levels = 1;
  for (int64_t rest = *steps; rest > kMaxChain;
       rest = llvm::divideCeil(rest, kMaxChain))
    ++levels;
  return levels;
}

FailureOr<SmallVector<Value>> TileEmitter::blockedLoop(
    int64_t levels, Value lower, Value upper, int64_t step, ValueRange inits,
    ValueRange neutral, ArrayRef<vector::CombiningKind> kinds,
    function_ref<FailureOr<Values>(Value, ValueRange)> body) {
  if (levels == 1)
    return forLoop(lower, upper, step, inits, body);
  int64_t span = step;
  for (int64_t level = 1; level < levels; ++level)
    span *= kMaxChain;
  return forLoop(
      lower, upper, span, inits,
      [&](Value start, ValueRange carried) -> FailureOr<Values> {
        Value end = arith::MinUIOp::create(
            builder, loc,
            arith::AddIOp::create(builder, loc, start, index(span)), upper);
        FailureOr<Values> block = blockedLoop(levels - 1, start, end, step,
                                              neutral, neutral, kinds, body);
        if (failed(block))
          return failure();
        for (auto [value, sum, kind] : llvm::zip_equal(*block, carried, kinds))
          value = vector::makeArithReduction(builder, loc, kind, sum, value);
        return block;
      });
}

/// Reduces `terms` over the reduced axes from `depth` on, starting from the
/// neutral elements.
FailureOr<SmallVector<Value>>
TileEmitter::sumOver(unsigned depth, Step &step, ValueRange neutral,
                     ArrayRef<vector::CombiningKind> kinds, StepFn terms) {
  if (depth == program.getReducedAxes().size())
    return terms(step, neutral);
  int axis = program.getReducedAxes()[depth];
  auto add = [&](Value position, Value active,
                 ValueRange carried) -> FailureOr<Values> {
    Step inner = advance(step, axis, position, active);
    FailureOr<Values> values = sumOver(depth + 1, inner, neutral, kinds, terms);
    if (failed(values))
      return failure();
    for (auto [value, sum, kind] : llvm::zip_equal(*values, carried, kinds))
      value = vector::makeArithReduction(builder, loc, kind, sum, value);
    return values;
  };

  AxisSplit split = splitAxis(axis);
  Values sums(neutral);
  if (split.hasWhole) {
    FailureOr<Values> whole = blockedLoop(
        chainLevels(split.wholeSteps), index(0), split.wholeEnd, split.width,
        neutral, neutral, kinds, [&](Value position, ValueRange carried) {
          return add(position, Value(), carried);
        });
    if (failed(whole))
      return failure();
    sums = *whole;
  }
  if (!split.hasRest)
    return sums;
  Value rest = arith::SubIOp::create(builder, loc, split.end, split.wholeEnd);
  return add(split.wholeEnd, rest, sums);
}

/// Runs `body` over the reduced axes from `depth` on, carrying tensors.
FailureOr<SmallVector<Value>> TileEmitter::visit(unsigned depth, Step &step,
                                                 ValueRange carried,
                                                 StepFn body) {
  if (depth == program.getReducedAxes().size())
    return body(step, carried);
  int axis = program.getReducedAxes()[depth];
  auto at = [&](Value position, Value active, ValueRange tensors) {
    Step inner = advance(step, axis, position, active);
    return visit(depth + 1, inner, tensors, body);
  };
  AxisSplit split = splitAxis(axis);
  Values tensors(carried);
  if (split.hasWhole) {
    FailureOr<Values> whole =
        forLoop(index(0), split.wholeEnd, split.width, carried,
                [&](Value position, ValueRange inner) {
                  return at(position, Value(), inner);
                });
    if (failed(whole))
      return failure();
    tensors = *whole;
  }
  if (!split.hasRest)
    return tensors;
  Value rest = arith::SubIOp::create(builder, loc, split.end, split.wholeEnd);
  return at(split.wholeEnd, rest, tensors);
}

AxisSplit TileEmitter::splitAxis(int axis) {
  AxisSplit split;
  split.width = axis == program.getColumnAxis() ? columns : 1;
  split.end = split.wholeEnd = extentOf(axis);
  std::optional<int64_t> extent = program.getAxis(axis).getStaticExtent();
  split.hasWhole = !extent || *extent >= split.width;
  split.hasRest = split.width > 1 && (!extent || *extent % split.width != 0);
  if (extent)
    split.wholeSteps = *extent / split.width;
  if (!split.hasRest)
    return split;
  split.wholeEnd = extent ? index(*split.wholeSteps * split.width)
                          : Value(arith::SubIOp::create(
                                builder, loc, split.end,
                                arith::RemUIOp::create(builder, loc, split.end,
                                                       index(split.width))));
  return split;
}

Step TileEmitter::advance(const Step &outer, int axis, Value position,
                          Value active) {
  Step inner;
  inner.position = outer.position;
  inner.position[axis] = position;
  inner.activeColumns =
      axis == program.getColumnAxis() ? active : outer.activeColumns;
  return inner;
}

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

namespace {
/// One result of a reduction and how it is accumulated.
struct Accumulation {
  linalg::GenericOp op;
  unsigned result;
  vector::CombiningKind kind;
  TypedAttr neutral;
  bool hasRows, hasColumns;
};
} // namespace

/// How result number `result` of a reduction combines its terms.
static FailureOr<std::pair<vector::CombiningKind, TypedAttr>>
matchCombiner(linalg::GenericOp op, unsigned result) {
  SmallVector<Operation *> combiners;
  Value term = matchReduction(op.getRegionOutputArgs(), result, combiners);
  if (!term || combiners.size() != 1)
    return op.emitError("cannot vectorize this reduction in a tile: expected "
                        "one combining op per result");
  std::optional<vector::CombiningKind> kind =
      linalg::getCombinerOpKind(combiners.front());
  std::optional<TypedAttr> neutral =
      arith::getNeutralElement(combiners.front());
  if (!kind || !neutral)
    return op.emitError("cannot vectorize this reduction in a tile: '")
           << combiners.front()->getName() << "' is not a known combiner";
  return std::make_pair(*kind, *neutral);
}

LogicalResult TileEmitter::emitReductions(int level) {
  SmallVector<Accumulation> sums;
  Values neutral;
  SmallVector<vector::CombiningKind> kinds;
  for (linalg::GenericOp op : program.getOps()) {
    if (!program.isReduction(op) || program.getLevel(op) != level)
      continue;
    for (OpResult result : op->getResults()) {
      auto combiner = matchCombiner(op, result.getResultNumber());
      if (failed(combiner))
        return failure();
      if (!program.getFillValue(op.getDpsInits()[result.getResultNumber()]))
        return op.emitError("cannot vectorize this reduction in a tile: "
                            "expected a filled destination");
      SmallVector<int> axes = program.getAxesOf(result);
      bool hasRows = program.getRowAxis() != TileProgram::kNoAxis &&
                     llvm::is_contained(axes, program.getRowAxis());
      bool hasColumns = program.isColumnReduced() ||
                        llvm::is_contained(axes, program.getColumnAxis());
      sums.push_back({op, result.getResultNumber(), combiner->first,
                      combiner->second, hasRows, hasColumns});
      kinds.push_back(combiner->first);
      Value zero = arith::ConstantOp::create(builder, loc, combiner->second);
      neutral.push_back(broadcast({zero}, hasRows, hasColumns).value);
    }
  }
  if (sums.empty())
    return success();

  FailureOr<Values> totals = sumOver(
      0, base, neutral, kinds,
      [&](Step &step, ValueRange neutrals) -> FailureOr<Values> {
        Values terms;
        SmallVector<Vectorized> current;
        for (auto [number, sum] : llvm::enumerate(sums)) {
          if (sum.result == 0) {
            current.clear();
            if (failed(emitBody(sum.op, step, current)))
              return failure();
          }
          Value term =
              broadcast(current[sum.result], sum.hasRows, sum.hasColumns).value;
          // Columns beyond the tile must not count, whatever a masked lane
          // computed.
          if (step.activeColumns && program.isColumnReduced()) {
            SmallVector<bool> dims(sum.hasRows ? 1 : 0, false);
            dims.push_back(true);
            term = arith::SelectOp::create(builder, loc, activeMask(step, dims),
                                           term, neutrals[number]);
          }
          terms.push_back(term);
        }
        return terms;
      });
  if (failed(totals))
    return failure();

  for (auto [sum, total] : llvm::zip_equal(sums, *totals)) {
    Value init = program.getFillValue(sum.op.getDpsInits()[sum.result]);
    Vectorized value;
    if (program.isColumnReduced()) {
      Value acc = broadcast({init}, sum.hasRows, false).value;
      SmallVector<bool> reducedDims(sum.hasRows ? 1 : 0, false);
      reducedDims.push_back(true);
      value = {vector::MultiDimReductionOp::create(builder, loc, total, acc,
                                                   reducedDims, sum.kind),
               sum.hasRows, false};
    } else {
      Value acc = broadcast({init}, sum.hasRows, sum.hasColumns).value;
      value = {vector::makeArithReduction(builder, loc, sum.kind, total, acc),
               sum.hasRows, sum.hasColumns};
    }
    kept[sum.op->getResult(sum.result)] = value;
  }
  return success();
}

LogicalResult TileEmitter::emitKeptOps(int level) {
  for (linalg::GenericOp op : program.getOps()) {
    if (program.isReduction(op) || program.isFull(op) ||
        program.getLevel(op) != level)
      continue;
    SmallVector<Vectorized> results;
    if (failed(emitBody(op, base, results)))
      return failure();
    for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
      kept[result] = value;
  }
  return success();
}

LogicalResult TileEmitter::emitOutputs() {
  Values full, fullDestinations;
  SmallVector<tensor::ParallelInsertSliceOp> fullOutputs;
  for (tensor::ParallelInsertSliceOp output : program.getOutputs()) {
    Value source = output.getSource();
    Value destination = tensor::ExtractSliceOp::create(
        builder, loc, cast<RankedTensorType>(source.getType()),
        output.getDest(), output.getMixedOffsets(), output.getMixedSizes(),
        output.getMixedStrides());
    bool isFull = llvm::any_of(program.getAxesOf(source), [&](int axis) {
      return axis != TileProgram::kNoAxis && program.getAxis(axis).isReduced;
    });
    if (isFull) {
      full.push_back(source);
      fullDestinations.push_back(destination);
      fullOutputs.push_back(output);
      continue;
    }
    FailureOr<Vectorized> value = get(source, base);
    if (failed(value))
      return failure();
    output.getSourceMutable().assign(write(*value, source, destination, base));
  }
  if (full.empty())
    return success();
  FailureOr<Values> written = visit(
      0, base, fullDestinations,
      [&](Step &step, ValueRange carried) -> FailureOr<Values> {
        Values tensors;
        for (auto [source, destination] : llvm::zip_equal(full, carried)) {
          FailureOr<Vectorized> value = get(source, step);
          if (failed(value))
            return failure();
          tensors.push_back(write(*value, source, destination, step));
        }
        return tensors;
      });
  if (failed(written))
    return failure();
  for (auto [output, tensor] : llvm::zip_equal(fullOutputs, *written))
    output.getSourceMutable().assign(tensor);
  return success();
}

/// Erases the ops that the vector form replaces, and makes what asked for the
/// extents of their results ask for the axes'.
void TileEmitter::eraseProgram() {
  for (linalg::GenericOp op : llvm::reverse(program.getOps())) {
    for (OpResult result : op->getResults()) {
      SmallVector<int> axes = program.getAxesOf(result);
      for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
        auto dim = dyn_cast<tensor::DimOp>(user);
        if (!dim || !dim.getConstantIndex())
          continue;
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(dim);
        dim.replaceAllUsesWith(extentOf(axes[*dim.getConstantIndex()]));
        dim.erase();
      }
    }
    op.erase();
  }
}

LogicalResult TileEmitter::run() {
  // Kept columns: the tile holds up to C of them.
  if (!program.isColumnReduced() &&
      program.getAxis(program.getColumnAxis()).getStaticExtent() != columns)
    base.activeColumns = extentOf(program.getColumnAxis());

  int last = 0;
  for (linalg::GenericOp op : program.getOps())
    last = std::max(last, program.getLevel(op));
  for (int level = 0; level <= last; ++level)
    if (failed(emitKeptOps(level)) || failed(emitReductions(level)))
      return failure();
  if (failed(emitOutputs()))
    return failure();
  eraseProgram();
  return success();
}

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

namespace {
struct VectorizeNormTiles
    : public norm::impl::VectorizeNormTilesPassBase<VectorizeNormTiles> {
  void runOnOperation() override {
    SmallVector<scf::ForallOp> loops = findTileLoops(getOperation());
    for (scf::ForallOp loop : loops)
      if (failed(vectorize(loop)))
        return signalPassFailure();
  }

  static LogicalResult vectorize(scf::ForallOp loop) {
    auto strategy = loop->getAttrOfType<CpuStrategyAttr>(kStrategyAttrName);
    generalizeNamedOps(loop);
    auto hasWork = [](Operation &op) { return isa<linalg::GenericOp>(op); };
    // A tile that is in vector form already.
    if (!strategy || llvm::none_of(loop.getBody()->getOperations(), hasWork))
      return success();
    FailureOr<TileProgram> program = TileProgram::analyze(loop);
    if (failed(program))
      return failure();
    return TileEmitter(*program, loop, strategy.getColumns()).run();
  }

  static void generalizeNamedOps(scf::ForallOp loop) {
    SmallVector<linalg::LinalgOp> named;
    for (Operation &op : loop.getBody()->getOperations())
      if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        if (!isa<linalg::GenericOp, linalg::FillOp>(op))
          named.push_back(linalgOp);
    IRRewriter rewriter(loop.getContext());
    for (linalg::LinalgOp op : named) {
      rewriter.setInsertionPoint(op);
      (void)linalg::generalizeNamedOp(rewriter, op);
    }
  }
};
} // namespace
