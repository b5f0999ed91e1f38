//===- RowSpace.cpp - Loops over the axes of x ------------------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowSpace.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"

using namespace mlir;
using namespace mlir::norm::reference;
using mlir::norm::RowOpInterface;

Value Elements::operator[](const Indexed &tensor) const {
  if (!tensor)
    return {};
  // One tensor may be an operand twice, read along other axes.
  for (auto [input, value] : llvm::zip_first(inputs, values))
    if (input.value == tensor.value && input.axes == tensor.axes)
      return value;
  llvm_unreachable("expected an input of the loop");
}

//===----------------------------------------------------------------------===//
// Axes and views
//===----------------------------------------------------------------------===//

RowSpace::RowSpace(OpBuilder &builder, Location loc, Value x,
                   ArrayRef<int64_t> reducedAxes,
                   std::optional<int64_t> groupedAxis, int64_t groups)
    : builder(builder), loc(loc), grouped(groupedAxis), groups(groups) {
  extents = tensor::getMixedSizes(builder, loc, full(x).value);
  int64_t rank = static_cast<int64_t>(extents.size());
  all = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  reduced = viewAxes(reducedAxes);
  if (grouped)
    llvm::erase(reduced, *grouped);
  kept = complementAxes(reduced, rank);

  Scalar s(builder, loc);
  Value number = arith::ConstantIndexOp::create(s.b, 1);
  for (int64_t axis : reduced)
    number = arith::MulIOp::create(
        s.b, number,
        getValueOrCreateConstantIndexOp(builder, loc, extents[axis]));
  reducedCount =
      s.widen(arith::IndexCastOp::create(s.b, s.b.getI64Type(), number));
}

RowSpace::RowSpace(RowOpInterface op, OpBuilder &builder)
    : RowSpace(builder, op.getLoc(), op.getInput(), op.getReducedAxes(),
               op.getGroupedAxis(), op.getNumGroups()) {}

SmallVector<int64_t> RowSpace::viewAxes(ArrayRef<int64_t> axesOfX) const {
  SmallVector<int64_t> axes;
  for (int64_t axis : axesOfX) {
    if (axis == grouped)
      axes.push_back(axis);
    axes.push_back(grouped && axis >= *grouped ? axis + 1 : axis);
  }
  return axes;
}

Indexed RowSpace::full(Value tensor) {
  if (!tensor)
    return {};
  int64_t rank = cast<ShapedType>(tensor.getType()).getRank();
  return affine(tensor, llvm::to_vector(llvm::seq<int64_t>(0, rank)));
}

Indexed RowSpace::affine(Value tensor, ArrayRef<int64_t> axesOfX) {
  if (!tensor)
    return {};
  return {view(tensor, axesOfX), viewAxes(axesOfX)};
}

/// Which dimensions of a view are one of the tensor's; `axes` are axes of the
/// space that index the view.
static SmallVector<ReassociationIndices>
dimensionsTogether(ArrayRef<int64_t> axes, int64_t grouped) {
  SmallVector<ReassociationIndices> together;
  for (auto [dim, axis] : llvm::enumerate(axes))
    if (axis == grouped + 1)
      together.back().push_back(static_cast<int64_t>(dim));
    else
      together.push_back({static_cast<int64_t>(dim)});
  return together;
}

/// A tensor with its grouped dimension, if it has one, split in two.
Value RowSpace::view(Value tensor, ArrayRef<int64_t> axesOfX) {
  if (!grouped || !llvm::is_contained(axesOfX, *grouped))
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes;
  SmallVector<int64_t> shape;
  for (auto [dim, axis] : llvm::enumerate(axesOfX)) {
    OpFoldResult size = tensor::getMixedSize(builder, loc, tensor, dim);
    int64_t extent = type.getDimSize(dim);
    if (axis == *grouped) {
      sizes.push_back(builder.getIndexAttr(groups));
      shape.push_back(groups);
      if (!ShapedType::isDynamic(extent)) {
        extent /= groups;
        size = builder.getIndexAttr(extent);
      } else {
        Value number = arith::ConstantIndexOp::create(builder, loc, groups);
        size = arith::DivUIOp::create(builder, loc, cast<Value>(size), number)
                   .getResult();
      }
    }
    sizes.push_back(size);
    shape.push_back(extent);
  }
  return tensor::ExpandShapeOp::create(
      builder, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      dimensionsTogether(viewAxes(axesOfX), *grouped), sizes);
}

Value RowSpace::result(const Indexed &tensor, Type type) {
  Value value = tensor.value;
  if (grouped && llvm::is_contained(tensor.axes, *grouped + 1))
    value = tensor::CollapseShapeOp::create(
        builder, loc, value, dimensionsTogether(tensor.axes, *grouped));
  if (value.getType() == type)
    return value;
  return tensor::CastOp::create(builder, loc, type, value);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value RowSpace::empty(ArrayRef<int64_t> axes, Type type) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t axis : axes)
    sizes.push_back(extents[axis]);
  return tensor::EmptyOp::create(builder, loc, sizes, type);
}

/// A loop over `loops` whose results `resultAxes` index. The body gets the
/// inputs' elements and then, in a reduction, the running results.
SmallVector<Indexed> RowSpace::loop(ArrayRef<int64_t> loops,
                                    ArrayRef<Indexed> inputs,
                                    ArrayRef<int64_t> resultAxes,
                                    ArrayRef<Type> resultTypes, Values body) {
  bool isReduction = loops.size() != resultAxes.size();
  MLIRContext *context = builder.getContext();
  auto mapOf = [&](ArrayRef<int64_t> axes) {
    SmallVector<AffineExpr> exprs;
    for (int64_t axis : axes)
      exprs.push_back(getAffineDimExpr(
          std::distance(loops.begin(), llvm::find(loops, axis)), context));
    return AffineMap::get(loops.size(), 0, exprs, context);
  };
  SmallVector<AffineMap> maps;
  SmallVector<Value> ins, outs;
  SmallVector<Type> types;
  for (const Indexed &input : inputs) {
    ins.push_back(input.value);
    maps.push_back(mapOf(input.axes));
  }
  for (Type type : resultTypes) {
    Value out = empty(resultAxes, type);
    if (isReduction) {
      Value zero =
          arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
      out = linalg::FillOp::create(builder, loc, zero, out).getResult(0);
    }
    outs.push_back(out);
    types.push_back(out.getType());
    maps.push_back(mapOf(resultAxes));
  }
  SmallVector<utils::IteratorType> iterators;
  for (int64_t axis : loops)
    iterators.push_back(llvm::is_contained(resultAxes, axis)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      builder, loc, types, ins, outs, maps, iterators,
      [&](OpBuilder &inner, Location innerLoc, ValueRange args) {
        Scalar scalar(inner, innerLoc);
        SmallVector<Value> values = body(scalar, args);
        linalg::YieldOp::create(scalar.b, values);
      });
  SmallVector<Indexed> results;
  for (Value result : generic.getResults())
    results.push_back({result, SmallVector<int64_t>(resultAxes)});
  return results;
}

/// `inputs` without absent tensors and repetitions.
static SmallVector<Indexed> present(ArrayRef<Indexed> inputs) {
  SmallVector<Indexed> found;
  for (const Indexed &input : inputs)
    if (input && llvm::none_of(found, [&](const Indexed &other) {
          return other.value == input.value && other.axes == input.axes;
        }))
      found.push_back(input);
  return found;
}

SmallVector<Indexed> RowSpace::map(ArrayRef<int64_t> axes,
                                   ArrayRef<Indexed> inputs,
                                   ArrayRef<Type> types, Body body) {
  SmallVector<Indexed> read = present(inputs);
  return loop(axes, read, axes, types, [&](Scalar &s, ValueRange in) {
    return body(s, Elements(read, in));
  });
}

Indexed RowSpace::map(ArrayRef<int64_t> axes, ArrayRef<Indexed> inputs,
                      Type type, function_ref<Value(Scalar &, Elements)> body) {
  return map(axes, inputs, ArrayRef<Type>(type),
             [&](Scalar &s, Elements in) -> SmallVector<Value> {
               return {body(s, in)};
             })[0];
}

SmallVector<Indexed> RowSpace::sums(ArrayRef<int64_t> axes,
                                    ArrayRef<Indexed> inputs, unsigned number,
                                    Body terms) {
  Type f64 = builder.getF64Type();
  SmallVector<Indexed> read = present(inputs);
  // Where nothing is left to sum over, each sum is its only term.
  if (axes.size() == all.size())
    return map(axes, inputs, SmallVector<Type>(number, f64), terms);
  SmallVector<Indexed> raw = loop(
      all, read, axes, SmallVector<Type>(2 * number, f64),
      [&](Scalar &s, ValueRange in) {
        ValueRange running = in.drop_front(read.size());
        SmallVector<Value> next;
        for (auto [i, term] : llvm::enumerate(terms(s, Elements(read, in)))) {
          auto [sum, error] =
              s.accumulate(term, running[2 * i], running[2 * i + 1]);
          next.append({sum, error});
        }
        return next;
      });
  return map(axes, raw, SmallVector<Type>(number, f64),
             [&](Scalar &s, Elements in) {
               SmallVector<Value> sums;
               for (unsigned i = 0; i < number; ++i)
                 sums.push_back(s.finish(in[raw[2 * i]], in[raw[2 * i + 1]]));
               return sums;
             });
}
