//===- Arithmetic.cpp - NVVM's intrinsics for arithmetic -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What PTX defines to be an IEEE operation is that. Approximations (`approx`,
// `full`) are computed here to the last place or nearly so; docs/Emulator.md
// says by how much the hardware may differ.
//
//===----------------------------------------------------------------------===//

#include "Retarget.h"
#include "Runtime.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;
using namespace norm::emu;

namespace {
/// The parts of a name such as `fma.rn.ftz.sat.f`.
struct Modifiers {
  Rounding rounding = Rounding::Nearest;
  bool flush = false, saturate = false, quiet = false, unknown = false;
};
} // namespace

static Modifiers readModifiers(ArrayRef<StringRef> parts) {
  Modifiers result;
  for (StringRef part : parts) {
    if (part == "rn" || part == "approx" || part == "full")
      result.rounding = Rounding::Nearest;
    else if (part == "rz")
      result.rounding = Rounding::Zero;
    else if (part == "rm")
      result.rounding = Rounding::Down;
    else if (part == "rp")
      result.rounding = Rounding::Up;
    else if (part == "ftz")
      result.flush = true;
    else if (part == "sat")
      result.saturate = true;
    else if (part == "nan")
      result.quiet = true;
    else if (!is_contained(ArrayRef<StringRef>{"f", "d", "f16", "f16x2", "bf16",
                                               "bf16x2", "f32", "f64", "v2f16",
                                               "v2bf16"},
                           part))
      result.unknown = true;
  }
  return result;
}

/// Numbers below the normal ones become zeros of their sign; in f32 only.
Value *Retarget::flush(Value *value) {
  Type *type = value->getType();
  if (!type->isFloatTy())
    return value;
  Value *magnitude = builder.CreateUnaryIntrinsic(Intrinsic::fabs, value);
  Value *tiny =
      builder.CreateFCmpOLT(magnitude, ConstantFP::get(type, 0x1p-126));
  Value *zero = builder.CreateCopySign(ConstantFP::get(type, 0.0), value);
  return builder.CreateSelect(tiny, zero, value);
}

/// To [0, 1]; NaN becomes 0.
Value *Retarget::saturate(Value *value) {
  Type *type = value->getType();
  Value *low = builder.CreateMaxNum(value, ConstantFP::get(type, 0.0));
  return builder.CreateMinNum(low, ConstantFP::get(type, 1.0));
}

/// Operations of one operand that are an intrinsic of LLVM.
static Intrinsic::ID unaryIntrinsic(StringRef name) {
  return StringSwitch<Intrinsic::ID>(name)
      .Case("sqrt", Intrinsic::sqrt)
      .Case("ex2", Intrinsic::exp2)
      .Case("lg2", Intrinsic::log2)
      .Case("sin", Intrinsic::sin)
      .Case("cos", Intrinsic::cos)
      .Case("tanh", Intrinsic::tanh)
      .Case("fabs", Intrinsic::fabs)
      .Case("floor", Intrinsic::floor)
      .Case("ceil", Intrinsic::ceil)
      .Case("trunc", Intrinsic::trunc)
      .Case("round", Intrinsic::roundeven)
      .Default(Intrinsic::not_intrinsic);
}

/// Rounded to nearest; null if the operation is not known.
static Value *emitNearest(IRBuilder<> &b, StringRef name,
                          ArrayRef<Value *> args, bool quiet) {
  Type *type = args[0]->getType();
  if (Intrinsic::ID id = unaryIntrinsic(name))
    return b.CreateUnaryIntrinsic(id, args[0]);
  if (name == "add")
    return b.CreateFAdd(args[0], args[1]);
  if (name == "mul")
    return b.CreateFMul(args[0], args[1]);
  if (name == "div")
    return b.CreateFDiv(args[0], args[1]);
  if (name == "fma")
    return b.CreateIntrinsic(Intrinsic::fma, {type}, args);
  if (name == "rcp")
    return b.CreateFDiv(ConstantFP::get(type, 1.0), args[0]);
  if (name == "neg")
    return b.CreateFNeg(args[0]);
  if (name == "fmin")
    return b.CreateBinaryIntrinsic(
        quiet ? Intrinsic::minimum : Intrinsic::minnum, args[0], args[1]);
  if (name == "fmax")
    return b.CreateBinaryIntrinsic(
        quiet ? Intrinsic::maximum : Intrinsic::maxnum, args[0], args[1]);
  // What is left is done by the modifier.
  return name == "saturate" ? args[0] : nullptr;
}

std::optional<Value *> Retarget::rewriteArithmetic(StringRef name,
                                                   CallInst &ci) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  Modifiers modifiers = readModifiers(ArrayRef(parts).drop_front());
  Type *type = ci.getType();
  if (modifiers.unknown || !type->isFPOrFPVectorTy() || ci.arg_size() == 0)
    return std::nullopt;
  StringRef operation = parts.front();
  SmallVector<Value *> args(ci.args());
  if (any_of(args, [&](Value *arg) { return arg->getType() != type; }))
    return std::nullopt;
  if (modifiers.flush)
    for (Value *&arg : args)
      arg = flush(arg);
  bool named = type->isFloatTy() || type->isDoubleTy();
  std::string suffix = type->isFloatTy() ? "_f32" : "_f64";
  Value *value = nullptr;
  if (operation == "rsqrt" && named)
    value = call("norm_emu_rsqrt" + suffix, type, args);
  else if (modifiers.rounding == Rounding::Nearest)
    value = emitNearest(builder, operation, args, modifiers.quiet);
  else if (named) {
    if (operation == "rcp") {
      operation = "div";
      args.insert(args.begin(), ConstantFP::get(type, 1.0));
    }
    if (!is_contained(ArrayRef<StringRef>{"fma", "add", "mul", "div", "sqrt"},
                      operation))
      return std::nullopt;
    args.insert(args.begin(),
                builder.getInt32(static_cast<uint32_t>(modifiers.rounding)));
    value = call(("norm_emu_" + operation + suffix).str(), type, args);
  }
  if (!value)
    return std::nullopt;
  if (modifiers.flush)
    value = flush(value);
  if (modifiers.saturate || operation == "saturate")
    value = saturate(value);
  return value;
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// Between numbers of 32 and 64 bits (`f2i.rz`, `i2d.rn`, `d2f.rz`), and from
/// two f32 to a pair of 16-bit floats (`ff2bf16x2.rn`), whose upper half comes
/// first.
std::optional<Value *> Retarget::rewriteConversion(StringRef name,
                                                   CallInst &ci) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  if (parts.size() < 2 || !(parts[0].contains('2')))
    return std::nullopt;
  Modifiers modifiers = readModifiers(ArrayRef(parts).drop_front());
  if (modifiers.unknown || ci.arg_size() == 0)
    return std::nullopt;
  Value *value = ci.getArgOperand(0);
  Type *type = ci.getType(), *f64 = builder.getDoubleTy();
  bool nearest = modifiers.rounding == Rounding::Nearest;
  if (parts[0] == "ff2bf16x2" || parts[0] == "ff2f16x2") {
    if (!nearest)
      return std::nullopt;
    Type *half = type->getScalarType();
    Value *pair = PoisonValue::get(type);
    pair = builder.CreateInsertElement(
        pair, builder.CreateFPTrunc(ci.getArgOperand(1), half), uint64_t(0));
    return builder.CreateInsertElement(pair, builder.CreateFPTrunc(value, half),
                                       uint64_t(1));
  }
  if (modifiers.flush)
    value = flush(value);
  if (parts[0] == "f2bf16" || parts[0] == "f2f16") {
    if (!nearest)
      return std::nullopt;
    return builder.CreateFPTrunc(value, type);
  }
  if (parts[0] == "f2h")
    return builder.CreateBitCast(
        builder.CreateFPTrunc(value, builder.getHalfTy()), type);
  Value *mode = builder.getInt32(static_cast<uint32_t>(modifiers.rounding));
  if (parts[0] == "d2f") {
    value = call("norm_emu_narrow", type, {mode, value});
    return modifiers.flush ? flush(value) : value;
  }
  auto [from, to] = parts[0].split('2');
  if (from == "f" || from == "d") {
    auto function = StringSwitch<StringRef>(to)
                        .Case("i", "norm_emu_to_i32")
                        .Case("ui", "norm_emu_to_u32")
                        .Case("ll", "norm_emu_to_i64")
                        .Case("ull", "norm_emu_to_u64")
                        .Default("");
    if (function.empty())
      return std::nullopt;
    if (value->getType() != f64)
      value = builder.CreateFPExt(value, f64);
    return call(function, type, {mode, value});
  }
  if (from != "i" && from != "ui")
    return std::nullopt;
  // 32 bits are exact in f64, so that one rounding decides.
  value = from == "i" ? builder.CreateSIToFP(value, f64)
                      : builder.CreateUIToFP(value, f64);
  return to == "d" ? value : call("norm_emu_narrow", type, {mode, value});
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

std::optional<Value *> Retarget::rewriteInteger(StringRef name, CallInst &ci) {
  Type *i32 = builder.getInt32Ty(), *i64 = builder.getInt64Ty();
  auto bitsOf = [&](unsigned i) {
    return builder.CreateBitCast(ci.getArgOperand(i), i64);
  };
  if (name == "d2i.lo")
    return builder.CreateTrunc(bitsOf(0), i32);
  if (name == "d2i.hi")
    return builder.CreateTrunc(builder.CreateLShr(bitsOf(0), 32), i32);
  if (name == "lohi.i2d") {
    Value *low = builder.CreateZExt(ci.getArgOperand(0), i64);
    Value *high = builder.CreateZExt(ci.getArgOperand(1), i64);
    return builder.CreateBitCast(
        builder.CreateOr(low, builder.CreateShl(high, 32)),
        builder.getDoubleTy());
  }
  if (name == "prmt")
    return call(
        "norm_emu_permute", i32,
        {ci.getArgOperand(0), ci.getArgOperand(1), ci.getArgOperand(2)});
  if (name.consume_front("mulhi.")) {
    Type *type = ci.getType();
    unsigned bits = type->getIntegerBitWidth();
    Type *wide = builder.getIntNTy(2 * bits);
    bool isUnsigned = name.starts_with("u");
    auto extend = [&](Value *v) {
      return isUnsigned ? builder.CreateZExt(v, wide)
                        : builder.CreateSExt(v, wide);
    };
    Value *product = builder.CreateMul(extend(ci.getArgOperand(0)),
                                       extend(ci.getArgOperand(1)));
    return builder.CreateTrunc(builder.CreateLShr(product, bits), type);
  }
  return std::nullopt;
}
