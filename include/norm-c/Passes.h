/*===- Passes.h - C interface to the passes on norm ops ---------*- C -*-===*\
|*                                                                            *|
|* Part of the norm project, under the Apache License v2.0 with LLVM          *|
|* Exceptions.                                                                *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef NORM_C_PASSES_H
#define NORM_C_PASSES_H

#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Registers every pass and pipeline of the project by its flag, for
 *  mlirParsePassPipeline and mlirOpPassManagerAddPipeline. May be called more
 *  than once. */
MLIR_CAPI_EXPORTED void normRegisterAllPasses(void);

#ifdef __cplusplus
}
#endif

#endif /* NORM_C_PASSES_H */
