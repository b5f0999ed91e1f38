//===- ValueBoundsOpInterfaceImpl.h - Bounds of norm results -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_VALUEBOUNDSOPINTERFACEIMPL_H
#define NORM_IR_VALUEBOUNDSOPINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
namespace norm {

/// Attaches ValueBoundsOpInterface to the ops: every extent of a result equals
/// the extent of x that it stands for.
void registerValueBoundsOpInterfaceExternalModels(DialectRegistry &registry);

} // namespace norm
} // namespace mlir

#endif // NORM_IR_VALUEBOUNDSOPINTERFACEIMPL_H
