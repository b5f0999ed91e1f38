//===- GpuKernelAbi.cpp - norm-gpu-kernel-abi -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::norm {
#define GEN_PASS_DEF_GPUKERNELABIPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// What a kernel does with a buffer
//===----------------------------------------------------------------------===//

/// Whether all that is done with a pointer is loading from it, and computing
/// with its number.
static bool isOnlyRead(Value pointer) {
  return llvm::all_of(pointer.getUsers(), [&](Operation *user) {
    if (auto address = dyn_cast<LLVM::GEPOp>(user))
      return isOnlyRead(address);
    return isa<LLVM::LoadOp, LLVM::PtrToIntOp>(user);
  });
}

/// Whether numbers become pointers, to whatever.
static bool makesPointers(LLVM::LLVMFuncOp kernel) {
  return kernel.walk([](LLVM::IntToPtrOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

namespace {
/// A buffer that a launch passes: pointers to what was allocated and to its
/// first element, the offset, sizes and strides.
struct KernelBuffer {
  Value root;
  unsigned firstArgument;
  bool isIdentified, isOnlyRead;

  /// Whether a write through one of two may be seen through the other.
  bool conflictsWith(const KernelBuffer &other) const {
    if (isOnlyRead && other.isOnlyRead)
      return false;
    return !isIdentified || !other.isIdentified || root == other.root;
  }
};
} // namespace

static Value findRoot(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return buffer;
}

static bool isIdentified(Value root, bool distinct) {
  if (isa_and_nonnull<memref::AllocOp, gpu::AllocOp>(root.getDefiningOp()))
    return true;
  auto argument = dyn_cast<BlockArgument>(root);
  return distinct && argument &&
         isa<func::FuncOp>(argument.getOwner()->getParentOp());
}

static FailureOr<SmallVector<KernelBuffer>>
findBuffers(gpu::LaunchFuncOp launch, LLVM::LLVMFuncOp kernel, bool distinct) {
  SmallVector<KernelBuffer> buffers;
  unsigned argument = 0;
  for (Value operand : launch.getKernelOperands()) {
    auto type = dyn_cast<MemRefType>(operand.getType());
    if (type) {
      Value root = findRoot(operand);
      buffers.push_back(
          {root, argument, isIdentified(root, distinct), /*isOnlyRead=*/false});
    }
    argument += type ? 3 + 2 * type.getRank() : 1;
  }
  if (argument != kernel.getNumArguments())
    return launch.emitOpError("expected a kernel that takes the descriptors of "
                              "its memrefs, ")
           << argument << " arguments, got " << kernel.getNumArguments();
  bool isOpaque = makesPointers(kernel);
  for (KernelBuffer &buffer : buffers)
    buffer.isOnlyRead =
        !isOpaque && isOnlyRead(kernel.getArgument(buffer.firstArgument)) &&
        isOnlyRead(kernel.getArgument(buffer.firstArgument + 1));
  return buffers;
}

/// Threads of a multiprocessor that registers shall suffice for: 640 leave each
/// 96. Left to itself, ptxas aims at more of some small blocks, and spills;
/// with 80 it spills where a thread has 32 elements of x, a residual and 16-bit
/// results, and with 96 where it shifts these. Kernels that shift are those
/// with moves that keep words in their place (ThreadsShift.cpp).
static int32_t countProcessorThreads(LLVM::LLVMFuncOp kernel) {
  bool shifts =
      kernel.walk([](LLVM::InlineAsmOp) { return WalkResult::interrupt(); })
          .wasInterrupted();
  return shifts ? 512 : 640;
}

/// Every launch is of one size, not of at most that.
static void setBlockSize(LLVM::LLVMFuncOp kernel,
                         ArrayRef<gpu::LaunchFuncOp> list) {
  std::optional<SmallVector<int32_t>> known;
  for (gpu::LaunchFuncOp launch : list) {
    gpu::KernelDim3 block = launch.getBlockSizeOperandValues();
    SmallVector<int32_t> sizes;
    for (Value size : {block.x, block.y, block.z})
      if (std::optional<int64_t> constant = getConstantIntValue(size))
        sizes.push_back(*constant);
    if (sizes.size() != 3 || llvm::is_contained(sizes, 0) ||
        (known && *known != sizes))
      return;
    known = sizes;
  }
  kernel->removeAttr(NVVM::NVVMDialect::getMaxntidAttrName());
  kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  DenseI32ArrayAttr::get(kernel.getContext(), *known));
  int32_t threads = llvm::product_of(*known, int32_t{1});
  kernel->setAttr(
      NVVM::NVVMDialect::getMinctasmAttrName(),
      IntegerAttr::get(IntegerType::get(kernel.getContext(), 32),
                       std::max(countProcessorThreads(kernel) / threads, 1)));
}

/// Upstream makes dynamic shared memory a variable of no size, which ptxas
/// gives a byte, and which others may follow.
static void makeSharedExternal(gpu::GPUModuleOp module) {
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    auto type = dyn_cast<LLVM::LLVMArrayType>(global.getType());
    if (!type || type.getNumElements() != 0 ||
        global.getAddrSpace() != unsigned(NVVM::NVVMMemorySpace::Shared))
      continue;
    global.setLinkage(LLVM::Linkage::External);
    global.setAlignment(
        std::max<uint64_t>(global.getAlignment().value_or(1), 16));
  }
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static LogicalResult checkKernels(gpu::GPUModuleOp module) {
  SymbolTable symbols(module);
  WalkResult result = module.walk([&](Operation *op) {
    if (op == module)
      return WalkResult::advance();
    if (!isa_and_nonnull<LLVM::LLVMDialect, NVVM::NVVMDialect>(
            op->getDialect())) {
      op->emitOpError("expected a kernel in the LLVM and NVVM dialects alone");
      return WalkResult::interrupt();
    }
    auto call = dyn_cast<LLVM::CallOp>(op);
    if (!call || !call.getCallee())
      return WalkResult::advance();
    auto callee = symbols.lookup<LLVM::LLVMFuncOp>(*call.getCallee());
    if (callee && !callee.isExternal())
      return WalkResult::advance();
    op->emitOpError("calls '")
        << *call.getCallee()
        << "', which is no part of the kernel: expected code that needs no "
           "library";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct GpuKernelAbi : public norm::impl::GpuKernelAbiPassBase<GpuKernelAbi> {
  using Base::Base;

  void runOnOperation() override {
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
      if (failed(checkKernels(module)))
        return signalPassFailure();
      makeSharedExternal(module);
    }
    SymbolTableCollection symbols;
    // A kernel that is launched twice takes what holds for both.
    DenseMap<Operation *, SmallVector<gpu::LaunchFuncOp>> launches;
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (auto kernel = symbols.lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(
              launch, launch.getKernelAttr()))
        launches[kernel].push_back(launch);
    });
    for (auto &[kernel, list] : launches)
      if (failed(annotate(cast<LLVM::LLVMFuncOp>(kernel), list)))
        return signalPassFailure();
  }

  LogicalResult annotate(LLVM::LLVMFuncOp kernel,
                         ArrayRef<gpu::LaunchFuncOp> list) {
    std::optional<SmallVector<bool>> distinctOnes;
    SmallVector<KernelBuffer> buffers;
    for (gpu::LaunchFuncOp launch : list) {
      auto found = findBuffers(launch, kernel, distinct);
      if (failed(found))
        return failure();
      buffers = *found;
      SmallVector<bool> alone;
      for (const KernelBuffer &buffer : buffers)
        alone.push_back(llvm::none_of(buffers, [&](const KernelBuffer &other) {
          return &other != &buffer && buffer.conflictsWith(other);
        }));
      if (!distinctOnes)
        distinctOnes = alone;
      for (auto [known, now] : llvm::zip_equal(*distinctOnes, alone))
        known = known && now;
    }
    setBlockSize(kernel, list);
    auto unit = UnitAttr::get(&getContext());
    for (auto [buffer, isAlone] : llvm::zip_equal(buffers, *distinctOnes))
      for (unsigned argument :
           {buffer.firstArgument, buffer.firstArgument + 1}) {
        if (buffer.isOnlyRead)
          kernel.setArgAttr(argument, LLVM::LLVMDialect::getReadonlyAttrName(),
                            unit);
        if (isAlone)
          kernel.setArgAttr(argument, LLVM::LLVMDialect::getNoAliasAttrName(),
                            unit);
      }
    return success();
  }
};
} // namespace
