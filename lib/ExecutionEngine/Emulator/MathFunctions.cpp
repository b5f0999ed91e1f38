//===- MathFunctions.cpp - Arithmetic that the host's instructions lack -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Directed rounding and conversions by way of the C library, functions that
// libdevice has, and conversions that a code generator calls by name.
//
//===----------------------------------------------------------------------===//

#include "Runtime.h"

#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>

using namespace norm::emu;

//===----------------------------------------------------------------------===//
// Directed rounding
//===----------------------------------------------------------------------===//

/// Calls `f` with the rounding mode set. The results must not be computed
/// before or after that, hence the volatile copies.
template <typename T, typename F> static T rounded(uint32_t mode, F f) {
  static const int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD,
                              FE_UPWARD};
  int old = std::fegetround();
  std::fesetround(modes[mode & 3]);
  volatile T result = f();
  std::fesetround(old);
  return result;
}

template <typename T> static T roundedFma(uint32_t mode, T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  return rounded<T>(mode, [&] { return std::fma(T(x), T(y), T(z)); });
}
template <typename T> static T roundedAdd(uint32_t mode, T a, T b) {
  volatile T x = a, y = b;
  return rounded<T>(mode, [&] { return x + y; });
}
template <typename T> static T roundedMul(uint32_t mode, T a, T b) {
  volatile T x = a, y = b;
  return rounded<T>(mode, [&] { return x * y; });
}
template <typename T> static T roundedDiv(uint32_t mode, T a, T b) {
  volatile T x = a, y = b;
  return rounded<T>(mode, [&] { return x / y; });
}
template <typename T> static T roundedSqrt(uint32_t mode, T a) {
  volatile T x = a;
  return rounded<T>(mode, [&] { return std::sqrt(T(x)); });
}
static float narrow(uint32_t mode, double a) {
  volatile double x = a;
  return rounded<float>(mode, [&] { return static_cast<float>(x); });
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

static double toIntegral(uint32_t mode, double a) {
  switch (static_cast<Rounding>(mode)) {
  case Rounding::Zero:
    return std::trunc(a);
  case Rounding::Down:
    return std::floor(a);
  case Rounding::Up:
    return std::ceil(a);
  case Rounding::Nearest:
    break;
  }
  return std::nearbyint(a);
}

/// As PTX's cvt: values out of range become the nearest that is in it, NaN
/// becomes 0.
template <typename T> static T toInteger(uint32_t mode, double a) {
  if (std::isnan(a))
    return 0;
  a = toIntegral(mode, a);
  if (a <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  if (a >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  return static_cast<T>(a);
}

/// To bf16, to nearest even; NaNs stay NaNs.
static uint16_t toBrainFloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// Called by name, in the types that the names stand for.
static __bf16 truncateToBrain(float value) {
  uint16_t bits = toBrainFloat(value);
  __bf16 result;
  std::memcpy(&result, &bits, sizeof(bits));
  return result;
}
/// By way of a float rounded to odd, which leaves the second rounding right.
static __bf16 truncateDoubleToBrain(double value) {
  auto narrowed = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrowed, sizeof(bits));
  if (!std::isnan(value) && static_cast<double>(narrowed) != value) {
    if (std::fabs(static_cast<double>(narrowed)) > std::fabs(value))
      --bits;
    bits |= 1;
    std::memcpy(&narrowed, &bits, sizeof(bits));
  }
  return truncateToBrain(narrowed);
}

static float reciprocalSquareRoot(float x) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}
static double reciprocalSquareRootDouble(double x) {
  return 1.0 / std::sqrt(x);
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

using F1 = float (*)(float);
using D1 = double (*)(double);
using F2 = float (*)(float, float);
using D2 = double (*)(double, double);
using F3 = float (*)(float, float, float);
using D3 = double (*)(double, double, double);

/// A function under its names in C and in libdevice, for float and double.
#define NORM_EMU_NAMES(NAME, FLOAT, DOUBLE)                                    \
  RuntimeFunction(#NAME "f", static_cast<FLOAT>(std::NAME)),                   \
      RuntimeFunction(#NAME, static_cast<DOUBLE>(std::NAME)),                  \
      RuntimeFunction("__nv_" #NAME "f", static_cast<FLOAT>(std::NAME)),       \
      RuntimeFunction("__nv_" #NAME, static_cast<DOUBLE>(std::NAME))
#define NORM_EMU_UNARY(NAME) NORM_EMU_NAMES(NAME, F1, D1)
#define NORM_EMU_BINARY(NAME) NORM_EMU_NAMES(NAME, F2, D2)
#define NORM_EMU_TERNARY(NAME) NORM_EMU_NAMES(NAME, F3, D3)

llvm::ArrayRef<RuntimeFunction> norm::emu::mathFunctions() {
  static const RuntimeFunction table[] = {
      NORM_EMU_UNARY(exp),
      NORM_EMU_UNARY(exp2),
      NORM_EMU_UNARY(expm1),
      NORM_EMU_UNARY(log),
      NORM_EMU_UNARY(log2),
      NORM_EMU_UNARY(log10),
      NORM_EMU_UNARY(log1p),
      NORM_EMU_UNARY(sin),
      NORM_EMU_UNARY(cos),
      NORM_EMU_UNARY(tan),
      NORM_EMU_UNARY(sinh),
      NORM_EMU_UNARY(cosh),
      NORM_EMU_UNARY(tanh),
      NORM_EMU_UNARY(asin),
      NORM_EMU_UNARY(acos),
      NORM_EMU_UNARY(atan),
      NORM_EMU_UNARY(erf),
      NORM_EMU_UNARY(erfc),
      NORM_EMU_UNARY(cbrt),
      NORM_EMU_UNARY(sqrt),
      NORM_EMU_UNARY(floor),
      NORM_EMU_UNARY(ceil),
      NORM_EMU_UNARY(trunc),
      NORM_EMU_UNARY(rint),
      NORM_EMU_UNARY(round),
      NORM_EMU_UNARY(fabs),
      NORM_EMU_BINARY(pow),
      NORM_EMU_BINARY(atan2),
      NORM_EMU_BINARY(fmod),
      NORM_EMU_BINARY(fmax),
      NORM_EMU_BINARY(fmin),
      NORM_EMU_BINARY(copysign),
      NORM_EMU_TERNARY(fma),
      {"__nv_rsqrtf", reciprocalSquareRoot},
      {"__nv_rsqrt", reciprocalSquareRootDouble},
      {"norm_emu_rsqrt_f32", reciprocalSquareRoot},
      {"norm_emu_rsqrt_f64", reciprocalSquareRootDouble},
      {"norm_emu_fma_f32", roundedFma<float>},
      {"norm_emu_fma_f64", roundedFma<double>},
      {"norm_emu_add_f32", roundedAdd<float>},
      {"norm_emu_add_f64", roundedAdd<double>},
      {"norm_emu_mul_f32", roundedMul<float>},
      {"norm_emu_mul_f64", roundedMul<double>},
      {"norm_emu_div_f32", roundedDiv<float>},
      {"norm_emu_div_f64", roundedDiv<double>},
      {"norm_emu_sqrt_f32", roundedSqrt<float>},
      {"norm_emu_sqrt_f64", roundedSqrt<double>},
      {"norm_emu_narrow", narrow},
      {"norm_emu_to_i32", toInteger<int32_t>},
      {"norm_emu_to_u32", toInteger<uint32_t>},
      {"norm_emu_to_i64", toInteger<int64_t>},
      {"norm_emu_to_u64", toInteger<uint64_t>},
      {"__truncsfbf2", truncateToBrain},
      {"__truncdfbf2", truncateDoubleToBrain},
  };
  return table;
}
