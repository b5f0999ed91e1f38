//===- Npy.cpp - Reading and writing .npy files -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/ExecutionEngine/Npy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <optional>

using namespace mlir::norm;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Types and memory
//===----------------------------------------------------------------------===//

namespace {
struct DTypeInfo {
  DType type;
  const char *description;
  unsigned size;
};
} // namespace

static constexpr DTypeInfo kTypes[] = {
    {DType::Bool, "|b1", 1},    {DType::Int8, "|i1", 1},
    {DType::UInt8, "|u1", 1},   {DType::Int16, "<i2", 2},
    {DType::UInt16, "<u2", 2},  {DType::Int32, "<i4", 4},
    {DType::UInt32, "<u4", 4},  {DType::Int64, "<i8", 8},
    {DType::UInt64, "<u8", 8},  {DType::Float16, "<f2", 2},
    {DType::Float32, "<f4", 4}, {DType::Float64, "<f8", 8}};

static const DTypeInfo &infoOf(DType type) {
  return *llvm::find_if(kTypes,
                        [&](const DTypeInfo &i) { return i.type == type; });
}

unsigned mlir::norm::sizeOf(DType type) { return infoOf(type).size; }

StringRef mlir::norm::describe(DType type) { return infoOf(type).description; }

AlignedBytes mlir::norm::allocateAligned(size_t bytes) {
  constexpr size_t kLine = 64;
  // The size of an aligned allocation is a multiple of the alignment.
  size_t rounded = std::max<size_t>(llvm::alignTo(bytes, kLine), kLine);
  return AlignedBytes(static_cast<char *>(std::aligned_alloc(kLine, rounded)),
                      &std::free);
}

int64_t Array::getNumElements() const { return llvm::product_of(shape); }

SmallVector<int64_t> mlir::norm::contiguousStrides(ArrayRef<int64_t> shape,
                                                   bool fortran) {
  SmallVector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    size_t axis = fortran ? i : shape.size() - 1 - i;
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::string mlir::norm::shapeText(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(shape, os, "x");
  return text;
}

//===----------------------------------------------------------------------===//
// The header: a Python dictionary literal
//===----------------------------------------------------------------------===//

namespace {
struct Header {
  std::string description;
  bool fortran = false;
  SmallVector<int64_t> shape;
};

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : text(text) {}

  std::optional<Header> parse() {
    Header header;
    bool hasDescription = false, hasOrder = false, hasShape = false;
    if (!consume("{"))
      return std::nullopt;
    while (!consume("}")) {
      std::optional<std::string> key = parseString();
      if (!key || !consume(":"))
        return std::nullopt;
      if (*key == "descr" && !hasDescription)
        hasDescription = parseDescription(header.description);
      else if (*key == "fortran_order" && !hasOrder)
        hasOrder = parseBool(header.fortran);
      else if (*key == "shape" && !hasShape)
        hasShape = parseShape(header.shape);
      else
        return std::nullopt;
      if (!consume(",") && !text.ltrim().starts_with("}"))
        return std::nullopt;
    }
    if (!hasDescription || !hasOrder || !hasShape || !text.trim().empty())
      return std::nullopt;
    return header;
  }

private:
  StringRef text;

  bool consume(StringRef token) {
    text = text.ltrim();
    return text.consume_front(token);
  }
  std::optional<std::string> parseString() {
    text = text.ltrim();
    char quote = text.empty() ? '\0' : text.front();
    if (quote != '\'' && quote != '"')
      return std::nullopt;
    size_t end = text.find(quote, 1);
    if (end == StringRef::npos)
      return std::nullopt;
    std::string value = text.slice(1, end).str();
    text = text.drop_front(end + 1);
    return value;
  }
  /// A type's name, or the text of a list of fields.
  bool parseDescription(std::string &description) {
    text = text.ltrim();
    if (text.starts_with("[")) {
      size_t end = text.find("]");
      if (end == StringRef::npos)
        return false;
      description = text.take_front(end + 1).str();
      text = text.drop_front(end + 1);
      return true;
    }
    std::optional<std::string> value = parseString();
    if (value)
      description = *value;
    return value.has_value();
  }
  bool parseBool(bool &value) {
    value = consume("True");
    return value || consume("False");
  }
  bool parseShape(SmallVector<int64_t> &shape) {
    if (!consume("("))
      return false;
    while (!consume(")")) {
      int64_t extent;
      text = text.ltrim();
      if (text.consumeInteger(10, extent) || extent < 0)
        return false;
      shape.push_back(extent);
      if (!consume(",") && !text.ltrim().starts_with(")"))
        return false;
    }
    return true;
  }
};
} // namespace

static Error fileError(StringRef path, const Twine &message) {
  return llvm::createStringError(Twine("'") + path + "': " + message);
}

static Expected<DType> parseType(StringRef path, StringRef description) {
  for (const DTypeInfo &info : kTypes)
    if (description == info.description ||
        (info.size == 1 && description.size() == 3 &&
         description.drop_front() == StringRef(info.description).drop_front()))
      return info.type;
  // ml_dtypes writes bf16 as two opaque bytes.
  if (description == "<V2" || description == "|V2")
    return DType::UInt16;
  if (description.contains('O'))
    return fileError(path, "holds Python objects, expected numbers");
  if (description.starts_with(">"))
    return fileError(path, "is big-endian (" + description +
                               "), expected little-endian data");
  return fileError(path, "has the unsupported type " + description);
}

Expected<Array> mlir::norm::readNpy(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return fileError(path, file.getError().message());
  StringRef bytes = (*file)->getBuffer();
  if (!bytes.consume_front("\x93NUMPY"))
    return fileError(path, "is not a .npy file");
  if (bytes.size() < 2)
    return fileError(path, "ends inside its header");
  unsigned version = static_cast<uint8_t>(bytes[0]);
  bytes = bytes.drop_front(2);
  if (version < 1 || version > 3)
    return fileError(path, "has .npy version " + Twine(version) +
                               ", expected 1, 2 or 3");
  size_t lengthSize = version == 1 ? 2 : 4;
  if (bytes.size() < lengthSize)
    return fileError(path, "ends inside its header");
  size_t length = version == 1 ? llvm::support::endian::read16le(bytes.data())
                               : llvm::support::endian::read32le(bytes.data());
  bytes = bytes.drop_front(lengthSize);
  if (bytes.size() < length)
    return fileError(path, "ends inside its header");
  std::optional<Header> header = HeaderParser(bytes.take_front(length)).parse();
  bytes = bytes.drop_front(length);
  if (!header)
    return fileError(path, "has a malformed .npy header");

  Array array;
  Expected<DType> type = parseType(path, header->description);
  if (!type)
    return type.takeError();
  array.type = *type;
  array.shape = header->shape;
  array.strides = contiguousStrides(array.shape, header->fortran);
  uint64_t count = sizeOf(array.type);
  bool overflows = false;
  for (int64_t extent : array.shape)
    overflows |= __builtin_mul_overflow(count, uint64_t(extent), &count);
  if (overflows || count > bytes.size())
    return fileError(path,
                     "is truncated: shape " + shapeText(array.shape) + " of " +
                         describe(array.type) + " needs " +
                         (overflows ? Twine("more than 2^64") : Twine(count)) +
                         " bytes, got " + Twine(bytes.size()));
  if (count < bytes.size())
    return fileError(path, "has " + Twine(bytes.size() - count) +
                               " bytes after its data");
  array.data = allocateAligned(count);
  if (!array.data)
    return fileError(path, "needs more memory than there is");
  std::memcpy(array.data.get(), bytes.data(), count);
  return array;
}

Error mlir::norm::writeNpy(StringRef path, const Array &array) {
  std::string header;
  llvm::raw_string_ostream os(header);
  os << "{'descr': '" << describe(array.type)
     << "', 'fortran_order': False, 'shape': (";
  llvm::interleave(array.shape, os, ", ");
  os << (array.shape.size() == 1 ? ",), }" : "), }");
  constexpr size_t kPreamble = 10, kAlignment = 64;
  size_t padded = llvm::alignTo(kPreamble + header.size() + 1, kAlignment);
  header.append(padded - kPreamble - header.size() - 1, ' ');
  header.push_back('\n');

  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (error)
    return fileError(path, error.message());
  file << StringRef("\x93NUMPY\x01\x00", 8);
  char length[2];
  llvm::support::endian::write16le(length, header.size());
  file << StringRef(length, 2) << header;
  file.write(array.data.get(), array.getNumBytes());
  file.close();
  if (file.has_error()) {
    error = file.error();
    file.clear_error();
    return fileError(path, error.message());
  }
  return Error::success();
}
