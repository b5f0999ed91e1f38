//===- Remarks.h - What passes say of an op -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_REMARKS_H
#define NORM_IR_REMARKS_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"
#include <functional>

namespace mlir::norm {

/// A remark of `pass` on `op`, at its location: a `missed` one, with the text
/// as its reason, says why something was left as it is.
void emitRemark(remark::RemarkKind kind, Operation *op, StringRef pass,
                StringRef name, const Twine &text);

/// While it lives, `emitRemark` on this thread calls `sink` and nothing else.
class RemarkCapture {
public:
  using Sink =
      std::function<void(remark::RemarkKind kind, Operation *op, StringRef pass,
                         StringRef name, StringRef text)>;

  explicit RemarkCapture(Sink sink);
  ~RemarkCapture();
  RemarkCapture(const RemarkCapture &) = delete;
  RemarkCapture &operator=(const RemarkCapture &) = delete;

private:
  Sink sink;
  const Sink *outer;
};

} // namespace mlir::norm

#endif // NORM_IR_REMARKS_H
