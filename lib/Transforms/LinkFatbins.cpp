//===- LinkFatbins.cpp - norm-link-fatbins -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fatbin is a header of 16 bytes (a magic number, a version, its own length,
// and the length of what follows) and images that follow each other, each with
// a header that says what it is and for which chip. So the images of several
// are put behind one header; CUDA's `fatbinary` writes the same bytes when it
// is given all of them at once.
//
//===----------------------------------------------------------------------===//

#include "Norm/Transforms/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"

namespace mlir::norm {
#define GEN_PASS_DEF_LINKFATBINSPASS
#include "Norm/Transforms/Passes.h.inc"
} // namespace mlir::norm

using namespace mlir;
namespace endian = llvm::support::endian;

static constexpr size_t kHeaderBytes = 16, kSizeOffset = 8;

/// The images of a fatbin; nullopt of what is none.
static std::optional<StringRef> findImages(StringRef fatbin) {
  constexpr uint32_t magic = 0xBA55ED50;
  constexpr size_t headerOffset = 6;
  if (fatbin.size() < kHeaderBytes || endian::read32le(fatbin.data()) != magic)
    return std::nullopt;
  size_t header = endian::read16le(fatbin.data() + headerOffset);
  uint64_t size = endian::read64le(fatbin.data() + kSizeOffset);
  if (header != kHeaderBytes || size > fatbin.size() - header)
    return std::nullopt;
  return fatbin.substr(header, size);
}

/// Several fatbins as one, or nullopt where one of the objects is none.
static std::optional<SmallString<0>> link(ArrayAttr objects) {
  SmallString<0> linked;
  for (auto object : objects.getAsRange<gpu::ObjectAttr>()) {
    StringRef fatbin = object.getObject().getValue();
    std::optional<StringRef> images = findImages(fatbin);
    if (object.getFormat() != gpu::CompilationTarget::Fatbin || !images)
      return std::nullopt;
    if (linked.empty())
      linked = fatbin.take_front(kHeaderBytes);
    linked += *images;
  }
  endian::write64le(linked.data() + kSizeOffset, linked.size() - kHeaderBytes);
  return linked;
}

namespace {
struct LinkFatbins : public norm::impl::LinkFatbinsPassBase<LinkFatbins> {
  using Base::Base;

  void runOnOperation() override {
    for (auto binary : getOperation().getOps<gpu::BinaryOp>()) {
      ArrayAttr objects = binary.getObjects();
      if (objects.size() < 2)
        continue;
      std::optional<SmallString<0>> linked = link(objects);
      if (!linked) {
        binary.emitOpError("has objects for ")
            << objects.size()
            << " targets, and one is loaded: expected fatbins, to be linked";
        return signalPassFailure();
      }
      auto first = cast<gpu::ObjectAttr>(objects[0]);
      Attribute all = gpu::ObjectAttr::get(
          first.getTarget(), gpu::CompilationTarget::Fatbin,
          StringAttr::get(&getContext(), *linked), first.getProperties(),
          first.getKernels());
      binary.setObjectsAttr(ArrayAttr::get(&getContext(), all));
    }
  }
};
} // namespace
