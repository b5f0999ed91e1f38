//===- Images.cpp - What images of device code a module has -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only for messages, so whatever is not understood is left out.
//
//===----------------------------------------------------------------------===//

#include "Images.h"

#include <cstdint>
#include <cstring>

using namespace norm::cuda;

template <typename T> static T load(const char *p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

static constexpr uint32_t fatbinMagic = 0xBA55ED50;
static constexpr char elfMagic[] = "\x7f"
                                   "ELF";

/// The flags of a cubin hold the chip in their lowest byte; since ABI version 8
/// in the one above it.
static std::string describeElf(const char *data) {
  constexpr size_t abiVersion = 8, flags = 48;
  auto bits = load<uint32_t>(data + flags);
  unsigned chip = data[abiVersion] >= 8 ? bits >> 8 & 0xFF : bits & 0xFF;
  return "machine code for sm_" + std::to_string(chip);
}

/// A header of 16 bytes, then images, each with a header of its own that says
/// what it is (1 PTX, 2 machine code), how long it is and for which chip.
static std::string describeFatbin(const char *data) {
  const char *image = data + load<uint16_t>(data + 6);
  const char *end = image + load<uint64_t>(data + 8);
  std::string out;
  while (image + 32 <= end) {
    auto kind = load<uint16_t>(image);
    auto header = load<uint32_t>(image + 4);
    auto size = load<uint64_t>(image + 8);
    auto chip = load<uint32_t>(image + 28);
    if (header < 32 || size > size_t(end - image))
      break;
    out += (out.empty() ? "" : ", ") +
           std::string(kind == 1 ? "PTX" : "machine code") + " for sm_" +
           std::to_string(chip);
    image += header + size;
  }
  return out.empty() ? "a fatbin without images" : out;
}

static std::string describePtx(const char *data, size_t size) {
  std::string text(data, size ? strnlen(data, size) : std::strlen(data));
  constexpr char target[] = ".target ";
  size_t begin = text.find(target);
  if (begin == std::string::npos)
    return "no image of a known kind";
  begin += sizeof(target) - 1;
  size_t end =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789", begin);
  return "PTX for " + text.substr(begin, end - begin);
}

std::string norm::cuda::describeImages(const void *p, size_t size) {
  const char *data = static_cast<const char *>(p);
  if (!size || size >= 64) {
    if (std::strncmp(data, elfMagic, 4) == 0)
      return describeElf(data);
    if (load<uint32_t>(data) == fatbinMagic)
      return describeFatbin(data);
  }
  return describePtx(data, size);
}
