//===- RegisterAll.h - Everything an embedding compiler registers -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_REGISTERALL_H
#define NORM_REGISTERALL_H

namespace mlir {
class DialectRegistry;
namespace norm {

/// Registers the dialect and the external models its ops promise.
void registerAllDialects(DialectRegistry &registry);

/// Registers every pass and pipeline of the project by its flag.
void registerAllPasses();

} // namespace norm
} // namespace mlir

#endif // NORM_REGISTERALL_H
