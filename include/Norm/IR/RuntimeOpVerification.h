//===- RuntimeOpVerification.h - Checks of run-time extents ----*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_RUNTIMEOPVERIFICATION_H
#define NORM_IR_RUNTIMEOPVERIFICATION_H

namespace mlir {
class DialectRegistry;
namespace norm {

/// Lets upstream's `generate-runtime-verification` pass assert what the
/// verifiers cannot check where extents are dynamic: V2, V5 to V9 and V15.
void registerRuntimeVerifiableOpInterfaceExternalModels(
    DialectRegistry &registry);

} // namespace norm
} // namespace mlir

#endif // NORM_IR_RUNTIMEOPVERIFICATION_H
