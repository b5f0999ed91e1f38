//===- ShardingInterfaceImpl.h - Norms over a grid of processes -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef NORM_IR_SHARDINGINTERFACEIMPL_H
#define NORM_IR_SHARDINGINTERFACEIMPL_H

namespace mlir {
class DialectRegistry;
namespace norm {

/// Attaches shard::ShardingInterface to the ops, for upstream's
/// `sharding-propagation` and `shard-partition`; see docs/Sharding.md.
void registerShardingInterfaceExternalModels(DialectRegistry &registry);

} // namespace norm
} // namespace mlir

#endif // NORM_IR_SHARDINGINTERFACEIMPL_H
