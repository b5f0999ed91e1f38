//===- Emulator.h - Running GPU programs without a GPU -*- C -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libnorm_emu.so stands in for MLIR's CUDA runtime wrappers: a program that
// gpu-to-llvm made, with its device code as bitcode, runs on the CPU and is
// checked while it runs. docs/Emulator.md describes it. Programs need nothing
// from here; a host that embeds the emulator can set what the environment
// variables set, and read the counters. Plain C, callable after dlopen.
//
//===----------------------------------------------------------------------===//

#ifndef NORM_EXECUTIONENGINE_EMULATOR_H
#define NORM_EXECUTIONENGINE_EMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Called once for a launch or a call that failed, with the text that would
/// have been printed. The call that failed returns afterwards, the program goes
/// on.
typedef void (*NormEmuErrorHandler)(const char *message, void *userData);

/// Without a handler (null) a failure is printed to the standard error stream
/// and ends the process with status 70.
void normEmuSetErrorHandler(NormEmuErrorHandler handler, void *userData);

/// How many failures there were, and the text of the last one ("" if none);
/// valid until the next failure.
uint64_t normEmuErrorCount(void);
const char *normEmuLastError(void);

/// As NORM_EMU_SEED: 0 runs blocks, warps and lanes in ascending order, any
/// other value in one that it determines.
void normEmuSetSeed(uint64_t seed);

/// As NORM_EMU_CHECK: `all`, `none`, or names of checks, separated by commas.
/// False, with nothing changed, if a name is unknown.
bool normEmuSetChecks(const char *checks);

/// Starts or stops counting. Counters add up until they are reset.
void normEmuEnableCounters(bool enable);
void normEmuResetCounters(void);

/// The counters of all kernels so far; valid until the next call of either.
const char *normEmuCountersText(void);
const char *normEmuCountersJson(void);

/// Lets kernels touch `size` bytes of the host's memory, until it is taken
/// back. False if no range that was given starts at `data`.
void normEmuRegister(void *data, size_t size);
bool normEmuUnregister(void *data);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // NORM_EXECUTIONENGINE_EMULATOR_H
