//===- NormDialect.cpp - The norm dialect and its attributes -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Norm/IR/NormDialect.h"
#include "Norm/IR/NormOps.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shard/Interfaces/ShardingInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"
#include "mlir/Interfaces/ValueBoundsOpInterface.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::norm;

#include "Norm/IR/NormDialect.cpp.inc"
#include "Norm/IR/NormEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "Norm/IR/NormAttrs.cpp.inc"

/// Interfaces whose implementations are registered with registerAllDialects.
template <typename... OpTys> static void declarePromises(NormDialect &dialect) {
  dialect.declarePromisedInterfaces<ValueBoundsOpInterface, OpTys...>();
  dialect.declarePromisedInterfaces<RuntimeVerifiableOpInterface, OpTys...>();
  dialect.declarePromisedInterfaces<shard::ShardingInterface, OpTys...>();
  dialect.declarePromisedInterfaces<bufferization::BufferizableOpInterface,
                                    OpTys...>();
}

void NormDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "Norm/IR/NormAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Norm/IR/NormOps.cpp.inc"
      >();
  declarePromises<
#define GET_OP_LIST
#include "Norm/IR/NormOps.cpp.inc"
      >(*this);
}

LogicalResult NormDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attr) {
  if (attr.getName() != kStrategyAttrName)
    return success();
  if (!isa<CpuStrategyAttr, GpuStrategyAttr>(attr.getValue()))
    return op->emitOpError("expected '")
           << kStrategyAttrName
           << "' to be a #norm.cpu or #norm.gpu attribute, got "
           << attr.getValue();
  if (!isa<RowOpInterface, scf::ForallOp, scf::ForOp>(op))
    return op->emitOpError("expected '")
           << kStrategyAttrName << "' on a norm op or on a loop over its tiles";
  return success();
}

//===----------------------------------------------------------------------===//
// EpsilonAttr
//===----------------------------------------------------------------------===//

/// placement value | `none`
static FailureOr<EpsilonAttr> parseEpsilonClause(AsmParser &parser) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  std::optional<EpsilonPlacement> placement =
      symbolizeEpsilonPlacement(keyword);
  if (!placement) {
    parser.emitError(loc, "expected inside_sqrt, outside_sqrt, max_inside, "
                          "max_outside or none, got '")
        << keyword << "'";
    return failure();
  }
  double value = 0.0;
  if (*placement != EpsilonPlacement::None && parser.parseFloat(value))
    return failure();
  return EpsilonAttr::get(parser.getContext(), *placement, value);
}

/// Prints a value with the fewest digits, from 7 on, that read back as it:
/// 1.000000e-06, where `printFloat` has 9.9999999999999995E-7.
static void printShortest(AsmPrinter &printer, const APFloat &value) {
  double number = value.convertToDouble();
  for (int digits = 6; value.isFinite() && digits <= 16; ++digits) {
    SmallString<32> text;
    llvm::raw_svector_ostream(text) << llvm::format("%.*e", digits, number);
    double back;
    if (!StringRef(text).getAsDouble(back) && back == number) {
      printer << text;
      return;
    }
  }
  printer.printFloat(value);
}

static void printEpsilonClause(AsmPrinter &printer, EpsilonAttr epsilon) {
  printer << stringifyEpsilonPlacement(epsilon.getPlacement());
  if (epsilon.isNone())
    return;
  printer << " ";
  printShortest(printer, epsilon.getValue());
}

LogicalResult EpsilonAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  EpsilonPlacement placement, APFloat value) {
  if (&value.getSemantics() != &APFloat::IEEEdouble())
    return emitError() << "expected the value of epsilon to be an f64";
  // Nothing is printed after `none`, so nothing may be stored.
  if (placement == EpsilonPlacement::None && !value.isPosZero())
    return emitError() << "expected no value with epsilon none";
  return success();
}

Attribute EpsilonAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<EpsilonAttr> epsilon = parseEpsilonClause(parser);
  if (failed(epsilon) || parser.parseGreater())
    return {};
  return *epsilon;
}

void EpsilonAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printEpsilonClause(printer, *this);
  printer << ">";
}

//===----------------------------------------------------------------------===//
// CpuStrategyAttr
//===----------------------------------------------------------------------===//

LogicalResult
CpuStrategyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        int64_t rows, int64_t columns, bool, int64_t range,
                        int64_t serialBytes, int64_t streamBytes,
                        int64_t prefetch, bool) {
  if (rows < 1 || rows > 64)
    return emitError() << "expected rows from 1 to 64, got " << rows;
  if (columns < 1 || columns > 1024 || (columns & (columns - 1)))
    return emitError() << "expected columns to be a power of two from 1 to "
                          "1024, got "
                       << columns;
  if (rows * columns > kMostTileElements)
    return emitError() << "expected rows * columns to be at most "
                       << kMostTileElements << ", got " << rows << " * "
                       << columns;
  if (range < 0 || serialBytes < 0 || streamBytes < 0)
    return emitError() << "expected range, serial_bytes and stream_bytes of 0 "
                          "or more, got "
                       << range << ", " << serialBytes << " and "
                       << streamBytes;
  if (prefetch < 0 || prefetch > 2)
    return emitError() << "expected prefetch to be 0, 1 or 2, got " << prefetch;
  return success();
}

//===----------------------------------------------------------------------===//
// GpuStrategyAttr
//===----------------------------------------------------------------------===//

LogicalResult
GpuStrategyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        int64_t threads, int64_t accesses, int64_t width,
                        int64_t columns, int64_t rows, Staging staging, bool) {
  constexpr int64_t kWarp = 32, kMaxBlock = 1024;
  bool isPartOfWarp = threads == 4 || threads == 8 || threads == 16;
  bool isWarps = threads > 0 && threads % kWarp == 0 && threads <= kMaxBlock;
  if (!isPartOfWarp && !isWarps)
    return emitError() << "expected threads to be 4, 8, 16, 32 or a multiple "
                          "of 32 up to 1024, got "
                       << threads;
  if (accesses < 1 || accesses > 64)
    return emitError() << "expected accesses from 1 to 64, got " << accesses;
  if (width < 1 || width > 16 || (width & (width - 1)))
    return emitError() << "expected width to be a power of two from 1 to 16, "
                          "got "
                       << width;
  int64_t most = accesses * threads * width;
  int64_t least = most - threads * width;
  // A vector of columns has more than the one element of other values.
  if (columns < 2)
    return emitError() << "expected columns of 2 or more, got " << columns;
  if (columns <= least || columns > most)
    return emitError() << "expected columns above " << least << " and at most "
                       << most << ", which " << threads << " threads cover by "
                       << accesses << " accesses of " << width << ", got "
                       << columns;
  if (staging == Staging::Shared && columns != most)
    return emitError() << "expected columns of whole accesses in all threads, "
                       << most << ", with staging = shared, got " << columns;
  if (rows < 1 || threads * rows > kMaxBlock || threads * rows % kWarp != 0)
    return emitError() << "expected rows that make whole warps and a block of "
                          "up to 1024 threads with "
                       << threads << " threads a row, got " << rows;
  return success();
}

//===----------------------------------------------------------------------===//
// Custom directives of the ops, used by the generated parsers and printers
//===----------------------------------------------------------------------===//

static ParseResult parseEpsilon(OpAsmParser &parser, EpsilonAttr &epsilon) {
  FailureOr<EpsilonAttr> parsed = parseEpsilonClause(parser);
  if (failed(parsed))
    return failure();
  epsilon = *parsed;
  return success();
}

static void printEpsilon(OpAsmPrinter &printer, Operation *,
                         EpsilonAttr epsilon) {
  printEpsilonClause(printer, epsilon);
}

/// After `momentum`, without a space: ` ` number | `(` %value `:` type `)`
static ParseResult
parseMomentum(OpAsmParser &parser, FloatAttr &momentum,
              std::optional<OpAsmParser::UnresolvedOperand> &operand,
              Type &type) {
  if (succeeded(parser.parseOptionalLParen())) {
    operand.emplace();
    return failure(parser.parseOperand(*operand) ||
                   parser.parseColonType(type) || parser.parseRParen());
  }
  double value;
  if (parser.parseFloat(value))
    return failure();
  momentum = parser.getBuilder().getF64FloatAttr(value);
  return success();
}

static void printMomentum(OpAsmPrinter &printer, Operation *,
                          FloatAttr momentum, Value operand, Type type) {
  if (operand)
    printer << "(" << operand << " : " << type << ")";
  else {
    printer << " ";
    printShortest(printer, momentum.getValue());
  }
}

#define GET_OP_CLASSES
#include "Norm/IR/NormOps.cpp.inc"
