//===- Refusals.cpp - What passes would not do with an op -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "Norm/IR/Remarks.h"
#include "Norm/Transforms/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <tuple>

using namespace mlir;
using namespace mlir::norm;
using namespace mlir::norm::report;

using PassMaker = std::unique_ptr<Pass> (*)();

/// In the order in which their refusals are listed.
static constexpr PassMaker kPasses[] = {
    createSimplifyNormPass, createFoldBatchNormPass, createFoldAffinePass,
    createFuseResidualPass, createConfigureNormPass};

/// Names the op of a number in the location of its copy, which rewrites hand on
/// to what takes its place.
static constexpr StringLiteral kMark = "norm-report#";

/// The numbers of the ops that `loc` came from.
static void findMarks(Location loc, SmallVectorImpl<size_t> &numbers) {
  loc->walk([&](Location part) {
    auto name = dyn_cast<NameLoc>(part);
    size_t number;
    if (name && name.getName().getValue().starts_with(kMark) &&
        !name.getName()
             .getValue()
             .drop_front(kMark.size())
             .getAsInteger(10, number) &&
        !llvm::is_contained(numbers, number))
      numbers.push_back(number);
    return WalkResult::advance();
  });
}

/// The numbers of the ops that a remark on `op` is about: its own, else those
/// of the ops beside it.
static SmallVector<size_t> subjectsOf(Operation *op) {
  SmallVector<size_t> numbers;
  findMarks(op->getLoc(), numbers);
  if (!numbers.empty())
    return numbers;
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp())
      findMarks(def->getLoc(), numbers);
  if (numbers.empty())
    for (Operation *user : op->getUsers())
      findMarks(user->getLoc(), numbers);
  return numbers;
}

/// `C8.real` after `C8.nonzero` and `C10.real` after both.
static auto sortKey(const Refusal &refusal) {
  StringRef rule = refusal.rule;
  StringRef letters = rule.take_while([](char c) { return !llvm::isDigit(c); });
  int64_t number = 0;
  rule.drop_front(letters.size()).getAsInteger(10, number);
  return std::make_tuple(letters, number, StringRef(refusal.condition),
                         StringRef(refusal.reason),
                         StringRef(refusal.location));
}

/// Runs one pass on a copy of `root` and adds what it refuses.
static void addRefusals(Operation *root, ArrayRef<Operation *> ops,
                        std::unique_ptr<Pass> pass,
                        std::vector<std::vector<Refusal>> &all) {
  MLIRContext *context = root->getContext();
  IRMapping mapping;
  OwningOpRef<Operation *> copy(root->clone(mapping));
  for (auto [number, op] : llvm::enumerate(ops))
    mapping.lookup(op)->setLoc(NameLoc::get(
        StringAttr::get(context, kMark + Twine(number)), op->getLoc()));

  std::vector<std::vector<Refusal>> found(ops.size());
  RemarkCapture capture([&](remark::RemarkKind kind, Operation *op,
                            StringRef by, StringRef name, StringRef text) {
    auto [rule, condition] = name.split('.');
    for (size_t number : subjectsOf(op)) {
      std::vector<Refusal> &refusals = found[number];
      // What was refused at first and done in the end is no refusal.
      if (kind == remark::RemarkKind::RemarkPassed)
        llvm::erase_if(refusals, [&, rule = rule](const Refusal &refusal) {
          return refusal.rule == rule;
        });
      if (kind == remark::RemarkKind::RemarkMissed)
        refusals.push_back(
            {by.str(), rule.str(), condition.str(), text.str(),
             locationText(op->getLoc()->findInstanceOf<FileLineColLoc>()
                              ? op->getLoc()
                              : ops[number]->getLoc())});
    }
  });
  // Errors are the business of who runs the pass for its result.
  ScopedDiagnosticHandler quiet(context,
                                [](Diagnostic &) { return success(); });
  PassManager manager(context, root->getName().getStringRef());
  manager.enableVerifier(false);
  manager.addPass(std::move(pass));
  (void)manager.run(*copy);

  for (auto [refusals, more] : llvm::zip_equal(all, found)) {
    llvm::sort(more, [](const Refusal &a, const Refusal &b) {
      return sortKey(a) < sortKey(b);
    });
    more.erase(llvm::unique(more,
                            [](const Refusal &a, const Refusal &b) {
                              return sortKey(a) == sortKey(b);
                            }),
               more.end());
    llvm::move(more, std::back_inserter(refusals));
  }
}

std::vector<std::vector<Refusal>>
report::collectRefusals(Operation *root, ArrayRef<Operation *> ops) {
  std::vector<std::vector<Refusal>> all(ops.size());
  if (!ops.empty())
    for (PassMaker make : kPasses)
      addRefusals(root, ops, make(), all);
  return all;
}
