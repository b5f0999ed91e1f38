//===- Print.cpp - printf on the device -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What gpu.printf calls: vprintf with a structure that has the arguments one
// after the other, integers as they are and floats as doubles.
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"
#include "llvm/Support/MathExtras.h"

#include <cstdio>
#include <cstring>
#include <string>

using namespace norm::emu;

/// The next argument, at a multiple of its size.
template <typename T> static T next(const char *arguments, size_t &offset) {
  offset = llvm::alignTo(offset, sizeof(T));
  T value;
  std::memcpy(&value, arguments + offset, sizeof(T));
  offset += sizeof(T);
  return value;
}

/// Prints one argument by a conversion, `%-8.3f`, whose last letter is `kind`.
static void printOne(const std::string &conversion, char kind,
                     const char *arguments, size_t &offset) {
  const char *format = conversion.c_str();
  bool isLong = conversion.find_first_of("lzj") != std::string::npos;
  if (std::strchr("fFeEgGaA", kind))
    std::printf(format, next<double>(arguments, offset));
  else if (kind == 's')
    std::printf(format, next<const char *>(arguments, offset));
  else if (kind == 'p')
    std::printf(format, next<void *>(arguments, offset));
  else if (isLong)
    std::printf(format, next<int64_t>(arguments, offset));
  else
    std::printf(format, next<int32_t>(arguments, offset));
}

int norm::emu::printFormatted(const char *format, const char *arguments) {
  size_t offset = 0;
  while (*format) {
    size_t plain = std::strcspn(format, "%");
    std::fwrite(format, 1, plain, stdout);
    format += plain;
    if (!*format)
      break;
    size_t length = 1 + std::strspn(format + 1, "-+ #0123456789.hlzj");
    char kind = format[length];
    std::string conversion(format, kind ? length + 1 : length);
    format += conversion.size();
    if (kind == '%')
      std::fputc('%', stdout);
    else if (kind && std::strchr("diuxXocfFeEgGaAsp", kind))
      printOne(conversion, kind, arguments, offset);
    else
      std::fputs(conversion.c_str(), stdout);
  }
  std::fflush(stdout);
  return 0;
}
