//===- Remarks.cpp - What passes say of an op -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/Remarks.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::norm;

static thread_local const RemarkCapture::Sink *innermost = nullptr;

RemarkCapture::RemarkCapture(Sink sink)
    : sink(std::move(sink)), outer(innermost) {
  innermost = &this->sink;
}

RemarkCapture::~RemarkCapture() { innermost = outer; }

void norm::emitRemark(remark::RemarkKind kind, Operation *op, StringRef pass,
                      StringRef name, const Twine &text) {
  if (innermost)
    return (*innermost)(kind, op, pass, name, text.str());
  if (!op->getContext()->getRemarkEngine())
    return;
  auto function = op->getParentOfType<FunctionOpInterface>();
  auto options = remark::RemarkOpts::name(name).category(pass).function(
      function ? function.getName() : StringRef());
  switch (kind) {
  case remark::RemarkKind::RemarkMissed:
    remark::missed(op->getLoc(), options) << remark::reason("{0}", text.str());
    return;
  case remark::RemarkKind::RemarkPassed:
    remark::passed(op->getLoc(), options) << text.str();
    return;
  default:
    remark::analysis(op->getLoc(), options) << text.str();
  }
}
