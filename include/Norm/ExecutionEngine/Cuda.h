//===- Cuda.h - Running compiled GPU programs on a GPU -*- C -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libnorm_cuda.so has MLIR's CUDA runtime wrappers over CUDA's driver, which it
// opens when a program first needs it: it builds and loads where there is no
// CUDA. Programs need nothing from here; a host that embeds it can give its own
// stream and be told of failures. Plain C, callable after dlopen.
//
// The driver is libcuda.so.1, or what NORM_CUDA_DRIVER names. The device is
// that of the context which is current in the calling thread, else device 0 or
// what mgpuSetDefaultDevice says.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_EXECUTIONENGINE_CUDA_H
#define NORM_EXECUTIONENGINE_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// From now on programs of this thread that ask for a stream get this one (a
/// CUstream; null is CUDA's default stream). They neither wait for it nor
/// destroy it: that is the caller's business.
void normCudaSetStream(void *stream);
/// Programs of this thread make streams of their own again, and wait for them.
void normCudaResetStream(void);

/// Called once for each call that failed; the call returns afterwards, null if
/// it returns something, and what builds on that does nothing.
typedef void (*NormCudaErrorHandler)(const char *message, void *userData);

/// Without a handler (null) a failure is printed to the standard error stream
/// and ends the process with status 70.
void normCudaSetErrorHandler(NormCudaErrorHandler handler, void *userData);

/// How many failures there were, and the text of the last one ("" if none);
/// valid until the next failure.
uint64_t normCudaErrorCount(void);
const char *normCudaLastError(void);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // NORM_EXECUTIONENGINE_CUDA_H
