//===- BufferizableOpInterfaceImpl.h - Refusal of norm ops -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define NORM_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
namespace norm {

/// Attaches a BufferizableOpInterface to norm ops whose bufferization is an
/// error that names the pass to run first.
void registerBufferizableOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace norm
} // namespace mlir

#endif // NORM_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
