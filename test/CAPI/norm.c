/*===- norm.c - Test of the C interface ---------------------------*- C -*-===*\
|*                                                                            *|
|* Part of the norm project, under the Apache License v2.0 with LLVM          *|
|* Exceptions.                                                                *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

// RUN: norm-capi-test 2>&1 | FileCheck %s

#include "norm-c/Dialects.h"
#include "norm-c/Passes.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/IR.h"
#include "mlir-c/Pass.h"
#include "mlir-c/RegisterEverything.h"

#include <stdio.h>
#include <string.h>

static const char *source =
    "func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
    "  %y = norm.rms_norm %x axes [-1] epsilon inside_sqrt 1.0e-3\n"
    "    : tensor<4x8xf32> -> tensor<4x8xf32>\n"
    "  return %y : tensor<4x8xf32>\n"
    "}\n";

static MlirStringRef string(const char *text) {
  return mlirStringRefCreateFromCString(text);
}

static void print(MlirStringRef text, void *userData) {
  (void)userData;
  fwrite(text.data, 1, text.length, stdout);
}

/** A context that knows func (through upstream's registration) and norm. */
static MlirContext createContext(void) {
  MlirContext context = mlirContextCreate();
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  mlirRegisterAllDialects(registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__norm__(), registry);
  mlirContextAppendDialectRegistry(context, registry);
  mlirDialectRegistryDestroy(registry);
  return context;
}

static int lower(MlirContext context, const char *pipeline) {
  MlirModule module = mlirModuleCreateParse(context, string(source));
  if (mlirModuleIsNull(module))
    return 1;
  MlirPassManager passes = mlirPassManagerCreate(context);
  MlirOpPassManager root = mlirPassManagerGetAsOpPassManager(passes);
  int failed =
      mlirLogicalResultIsFailure(
          mlirParsePassPipeline(root, string(pipeline), print, NULL)) ||
      mlirLogicalResultIsFailure(
          mlirPassManagerRunOnOp(passes, mlirModuleGetOperation(module)));
  if (!failed)
    mlirOperationPrint(mlirModuleGetOperation(module), print, NULL);
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
  return failed;
}

static void testDialect(void) {
  MlirContext context = mlirContextCreate();
  MlirDialectHandle handle = mlirGetDialectHandle__norm__();
  MlirStringRef name = mlirDialectHandleGetNamespace(handle);
  // CHECK-LABEL: dialect norm, registered 0, loaded 1
  int registered =
      mlirContextIsRegisteredOperation(context, string("norm.rms_norm"));
  MlirDialect dialect = mlirDialectHandleLoadDialect(handle, context);
  printf("dialect %.*s, registered %d, loaded %d\n", (int)name.length,
         name.data, registered, !mlirDialectIsNull(dialect));
  mlirContextDestroy(context);
}

static void testEpsilon(void) {
  MlirContext context = mlirContextCreate();
  MlirAttribute epsilon =
      normEpsilonAttrGet(context, NormEpsilonMaxOutside, 0.5);
  // CHECK-LABEL: epsilon 1: placement 3, value 0.5
  printf("epsilon %d: placement %d, value %g\n",
         normAttributeIsAEpsilon(epsilon), normEpsilonAttrGetPlacement(epsilon),
         normEpsilonAttrGetValue(epsilon));
  // CHECK-NEXT: #norm.epsilon<max_outside 5.000000e-01>
  mlirAttributePrint(epsilon, print, NULL);
  // CHECK-NEXT: #norm.epsilon<none>
  printf("\n");
  mlirAttributePrint(normEpsilonAttrGet(context, NormEpsilonNone, 0.5), print,
                     NULL);
  // CHECK-NEXT: equal 1, unit is epsilon 0
  MlirAttribute again = normEpsilonAttrGet(context, NormEpsilonMaxOutside, 0.5);
  printf("\nequal %d, unit is epsilon %d\n", mlirAttributeEqual(epsilon, again),
         normAttributeIsAEpsilon(mlirUnitAttrGet(context)));
  mlirContextDestroy(context);
}

static int testPasses(void) {
  MlirContext context = createContext();
  normRegisterAllPasses();
  normRegisterAllPasses();
  // CHECK-LABEL: canonical
  // CHECK: norm.rms_norm %{{.*}} axes [1] epsilon inside_sqrt 1.000000e-03
  printf("canonical\n");
  mlirRegisterAllPasses();
  int failed = lower(context, "builtin.module(canonicalize)");
  // CHECK-LABEL: linalg
  // CHECK-NOT: norm.rms_norm
  // CHECK: linalg.generic
  printf("linalg\n");
  failed |= lower(context, "builtin.module(norm-lower-to-linalg)");
  // CHECK-LABEL: unknown
  // CHECK: norm-no-such-pass
  printf("unknown\n");
  failed |= !lower(context, "builtin.module(norm-no-such-pass)");
  mlirContextDestroy(context);
  return failed;
}

int main(void) {
  testDialect();
  testEpsilon();
  int failed = testPasses();
  // CHECK-LABEL: done 0
  printf("\ndone %d\n", failed);
  return failed;
}
