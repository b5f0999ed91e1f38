/*===- Dialects.h - C interface to the norm dialect -----------*- C -*-===*\
|*                                                                            *|
|* Part of the norm project, under the Apache License v2.0 with LLVM          *|
|* Exceptions.                                                                *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef NORM_C_DIALECTS_H
#define NORM_C_DIALECTS_H

#include "mlir-c/IR.h"

#ifdef __cplusplus
extern "C" {
#endif

/** mlirGetDialectHandle__norm__(). Inserting it into a registry also inserts
 *  the external models that the ops promise. */
MLIR_DECLARE_CAPI_DIALECT_REGISTRATION(Norm, norm);

/** Where epsilon enters the factor of a statistic s. */
typedef enum NormEpsilonPlacement {
  NormEpsilonInsideSqrt = 0,  /**< 1 / sqrt(s + epsilon) */
  NormEpsilonOutsideSqrt = 1, /**< 1 / (sqrt(s) + epsilon) */
  NormEpsilonMaxInside = 2,   /**< 1 / sqrt(max(s, epsilon)) */
  NormEpsilonMaxOutside = 3,  /**< 1 / max(sqrt(s), epsilon) */
  NormEpsilonNone = 4         /**< 1 / sqrt(s) */
} NormEpsilonPlacement;

/** The `epsilon` attribute of a norm op; loads the dialect if needed. `value`
 *  is ignored for NormEpsilonNone. */
MLIR_CAPI_EXPORTED MlirAttribute normEpsilonAttrGet(
    MlirContext context, NormEpsilonPlacement placement, double value);

/** Whether `attribute` is such an attribute. */
MLIR_CAPI_EXPORTED bool normAttributeIsAEpsilon(MlirAttribute attribute);

/** Its parts; the value of NormEpsilonNone is 0. */
MLIR_CAPI_EXPORTED NormEpsilonPlacement
normEpsilonAttrGetPlacement(MlirAttribute epsilon);
MLIR_CAPI_EXPORTED double normEpsilonAttrGetValue(MlirAttribute epsilon);

#ifdef __cplusplus
}
#endif

#endif /* NORM_C_DIALECTS_H */
