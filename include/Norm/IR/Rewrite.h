//===- Rewrite.h - Rewrites that say why they do not apply -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_REWRITE_H
#define NORM_IR_REWRITE_H

#include "Norm/IR/NormInterfaces.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::norm {

/// What the rewrites of a pass may do, and under which name they speak.
struct RewritePolicy {
  /// The category of remarks: the pass's argument.
  StringRef pass;
  /// Whether results may round otherwise (gate R).
  bool real = false;
  /// What may be assumed of values (gate N).
  bool nnan = false, ninf = false, nsz = false;
};

/// One of the rewrites of docs/Rewrites.md, as it speaks in remarks. A
/// condition is named in lower case with dashes; remarks are called
/// `<id>.<condition>`.
///
/// Conditions that the match itself needs (an operand that is a constant, say)
/// are `refuse`d; facts beyond the match are `require`d, and a test can switch
/// each of them off with --norm-disable-precondition=<id>.<condition>.
class Rule {
public:
  Rule(StringLiteral id, const RewritePolicy &policy)
      : id(id), policy(policy) {}

  /// Fails, with a `missed` remark that names the condition and gives the
  /// reason.
  LogicalResult refuse(Operation *op, StringRef condition,
                       const Twine &reason) const;
  /// Succeeds if `holds`, and refuses otherwise.
  LogicalResult require(Operation *op, StringRef condition, bool holds,
                        const Twine &reason) const;
  /// Requires that the policy lets results round otherwise: condition `real`.
  LogicalResult requireReal(Operation *op) const;
  /// Require the assumptions of gate N: conditions `nnan`, `ninf`, `nsz`.
  LogicalResult requireNoNaN(Operation *op) const;
  LogicalResult requireNoInf(Operation *op) const;
  LogicalResult requireNoSignedZero(Operation *op) const;
  /// A `passed` remark named after the rule.
  void applied(Operation *op, const Twine &what) const;

  StringRef getId() const { return id; }
  const RewritePolicy &getPolicy() const { return policy; }

private:
  StringLiteral id;
  RewritePolicy policy;
};

/// A rewrite of any op that implements an interface.
template <typename InterfaceT>
class RulePattern : public OpInterfaceRewritePattern<InterfaceT> {
public:
  RulePattern(MLIRContext *context, StringLiteral id,
              const RewritePolicy &policy, PatternBenefit benefit = 1)
      : OpInterfaceRewritePattern<InterfaceT>(context, benefit),
        rule(id, policy) {}

protected:
  Rule rule;
};

/// The results of a norm by their role; null where it has none.
struct NormResults {
  Value y, mean, variance, rstd, sum, runningMean, runningVariance;

  static NormResults get(NormOpInterface op);
};

/// The op with other facts, before `op`, with the discardable attributes of
/// `op` (its strategy among them). Null if it cannot be rebuilt. `op` stays.
NormOpInterface rebuildNorm(RewriterBase &rewriter, NormOpInterface op,
                            const NormContract &contract);

/// Replaces the results of `op`, cast where their types are less or more
/// static, and erases it. A result that is used must have a replacement.
void replaceNorm(RewriterBase &rewriter, NormOpInterface op,
                 const NormResults &replacements);

/// Both: `op` becomes the op of this contract. Fails, and changes nothing, if
/// it cannot be rebuilt.
LogicalResult replaceByContract(RewriterBase &rewriter, NormOpInterface op,
                                const NormContract &contract);

/// The rewrites that keep all information and have one direction: part of
/// `canonicalize`.
void populateCanonicalizeNormPatterns(RewritePatternSet &patterns,
                                      const RewritePolicy &policy);

} // namespace mlir::norm

#endif // NORM_IR_REWRITE_H
