//===- Dialects.cpp - C interface to the norm dialect ---------------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "norm-c/Dialects.h"

#include "Norm/IR/NormDialect.h"
#include "Norm/RegisterAll.h"

#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Registration.h"

using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Registration: as MLIR_DEFINE_CAPI_DIALECT_REGISTRATION, but with the external
// models, so that no promise is left open
//===----------------------------------------------------------------------===//

static void insertNormDialect(MlirDialectRegistry registry) {
  registerAllDialects(*unwrap(registry));
}

static MlirDialect loadNormDialect(MlirContext context) {
  DialectRegistry registry;
  registerAllDialects(registry);
  unwrap(context)->appendDialectRegistry(registry);
  return wrap(
      static_cast<Dialect *>(unwrap(context)->getOrLoadDialect<NormDialect>()));
}

static MlirStringRef normDialectNamespace() {
  return wrap(NormDialect::getDialectNamespace());
}

MlirDialectHandle mlirGetDialectHandle__norm__() {
  static MlirDialectRegistrationHooks hooks = {
      insertNormDialect, loadNormDialect, normDialectNamespace};
  return MlirDialectHandle{&hooks};
}

//===----------------------------------------------------------------------===//
// #norm.epsilon
//===----------------------------------------------------------------------===//

MlirAttribute normEpsilonAttrGet(MlirContext context,
                                 NormEpsilonPlacement placement, double value) {
  loadNormDialect(context);
  return wrap(EpsilonAttr::get(
      unwrap(context), static_cast<EpsilonPlacement>(placement), value));
}

bool normAttributeIsAEpsilon(MlirAttribute attribute) {
  return isa<EpsilonAttr>(unwrap(attribute));
}

NormEpsilonPlacement normEpsilonAttrGetPlacement(MlirAttribute epsilon) {
  return static_cast<NormEpsilonPlacement>(
      cast<EpsilonAttr>(unwrap(epsilon)).getPlacement());
}

double normEpsilonAttrGetValue(MlirAttribute epsilon) {
  return cast<EpsilonAttr>(unwrap(epsilon)).getDouble();
}

static_assert(static_cast<int>(EpsilonPlacement::InsideSqrt) ==
                      NormEpsilonInsideSqrt &&
                  static_cast<int>(EpsilonPlacement::OutsideSqrt) ==
                      NormEpsilonOutsideSqrt &&
                  static_cast<int>(EpsilonPlacement::MaxInside) ==
                      NormEpsilonMaxInside &&
                  static_cast<int>(EpsilonPlacement::MaxOutside) ==
                      NormEpsilonMaxOutside &&
                  static_cast<int>(EpsilonPlacement::None) == NormEpsilonNone,
              "the enums of C and C++ must agree");
