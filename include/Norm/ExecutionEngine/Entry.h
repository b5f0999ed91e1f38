//===- Entry.h - Functions that can be run on arrays ----------*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_EXECUTIONENGINE_ENTRY_H
#define NORM_EXECUTIONENGINE_ENTRY_H

#include "Norm/ExecutionEngine/Npy.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace mlir::norm {

/// A function of a module, made ready to be compiled and run on arrays: it is
/// the only public one, and its scalar arguments and results have become
/// tensors of rank 0.
class Entry {
public:
  /// Clones `module`. Fails if it has no such function, if the function is
  /// private or has no body, or if one of its types is not a ranked tensor or
  /// scalar of f64, f32, f16, bf16, i1, i8, i16, i32, i64 or index.
  static llvm::Expected<Entry> get(ModuleOp module, StringRef name);

  ModuleOp getModule() { return *module; }
  StringRef getName() { return name; }
  func::FuncOp getFunction();
  ArrayRef<RankedTensorType> getInputTypes() { return inputs; }
  ArrayRef<RankedTensorType> getResultTypes() { return results; }

  /// Checks number, type, rank and static extents of the arrays. `names` are
  /// what messages call them.
  llvm::Error check(ArrayRef<Array> arrays, ArrayRef<std::string> names);

  /// The extents of every result on such arrays. Dynamic extents are computed
  /// by a function cut out of the entry, interpreted where it is simple enough
  /// and otherwise compiled.
  llvm::Expected<SmallVector<SmallVector<int64_t>>>
  inferResultShapes(ArrayRef<Array> arrays);

private:
  OwningOpRef<ModuleOp> module;
  std::string name;
  SmallVector<RankedTensorType> inputs, results;
};

/// The .npy types that stand for an element type, preferred one first. Empty if
/// there is none.
SmallVector<DType> dtypesOf(Type elementType);

} // namespace mlir::norm

#endif // NORM_EXECUTIONENGINE_ENTRY_H
