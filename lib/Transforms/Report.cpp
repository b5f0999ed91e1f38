//===- Report.cpp - norm-report -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "Norm/IR/NormDialect.h"
#include "Report/Report.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FileSystem.h"

namespace mlir::norm {
#define GEN_PASS_DEF_REPORTPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

namespace {
struct Report : public norm::impl::ReportPassBase<Report> {
  using ReportPassBase::ReportPassBase;

  /// Those of the passes that it runs on a copy.
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<affine::AffineDialect, arith::ArithDialect,
                    linalg::LinalgDialect, math::MathDialect, NormDialect,
                    tensor::TensorDialect>();
  }

  void runOnOperation() override {
    report::Facts facts = report::collect(getOperation());
    auto print = [&](llvm::raw_ostream &os) {
      format == ReportFormat::Text ? report::printText(os, facts)
                                   : report::printJson(os, facts);
    };
    markAllAnalysesPreserved();
    if (file.empty())
      return print(llvm::outs());
    std::error_code error;
    llvm::raw_fd_ostream os(file, error);
    if (error) {
      getOperation()->emitError()
          << "cannot write the report to '" << file << "': " << error.message();
      return signalPassFailure();
    }
    print(os);
  }
};
} // namespace
