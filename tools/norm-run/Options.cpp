//===- Options.cpp - The command line of norm-run -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include <cmath>

using namespace norm_run;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

// The options are few and LLVM's own, registered by the libraries, are many:
// they are parsed here, so that --help shows these alone.
const char *const norm_run::kUsage =
    R"(usage: norm-run FILE [--entry=NAME] --input=X.npy ... [--output=Y.npy ...]

Compiles a function of an MLIR file and runs it on arrays.

  --entry=NAME           the function (default: main)
  --input=PATH           a .npy file for each argument, in order; bf16 as its
                         bits in <u2; Fortran order becomes a strided view
  --output=PATH          where results go, in order; what is left over is
                         dropped; without any, values are printed
  --target=cpu|reference|gpu-emulated
                         what to compile for (default: cpu); reference is plain
                         f64 loops that round where the specification says;
                         gpu-emulated is kernels for a GPU, run and checked on
                         the CPU (docs/Emulator.md)
  --compare=reference    also run that and print the error of each result
  --tolerance=REL        exit with 1 if an error relative to the greatest
                         magnitude of its result is above REL
  --gpu-counters         print what kernels did to memory, of gpu-emulated
  --specialize           compile for the extents of the arrays, where the
                         function's types have run-time extents
  --optimize=0|1|2|3     LLVM's level (default: 2, and 0 for the reference, which
                         takes longer to compile than to run)
  --time=N               time N runs, beside copies of as many bytes
  --threads=N            number of threads
  --emit=mlir|llvm       print the tensor IR that is compiled, or the module in
                         the LLVM dialect, and do not run it
  --help                 this text
)";

static Error badValue(StringRef name, StringRef expected, StringRef value) {
  return llvm::createStringError("expected " + expected + " for --" + name +
                                 ", got '" + value + "'");
}

static Error parseCount(StringRef name, StringRef value, unsigned &count) {
  if (value.getAsInteger(10, count) || count == 0)
    return badValue(name, "a positive number", value);
  return Error::success();
}

static Error setOption(Options &options, StringRef name, StringRef value) {
  if (name == "entry") {
    options.entry = value.str();
  } else if (name == "input") {
    options.inputs.push_back(value.str());
  } else if (name == "output") {
    options.outputs.push_back(value.str());
  } else if (name == "target") {
    auto target = mlir::norm::parseTarget(value);
    if (!target)
      return badValue(name, "cpu, reference or gpu-emulated", value);
    options.target = *target;
  } else if (name == "compare") {
    if (value != "reference")
      return badValue(name, "reference", value);
    options.compare = true;
  } else if (name == "tolerance") {
    double tolerance;
    if (value.getAsDouble(tolerance) || !(tolerance >= 0) ||
        std::isinf(tolerance))
      return badValue(name, "a number >= 0", value);
    options.tolerance = tolerance;
  } else if (name == "time") {
    return parseCount(name, value, options.timedRuns);
  } else if (name == "threads") {
    return parseCount(name, value, options.threads);
  } else if (name == "optimize") {
    unsigned level;
    if (value.getAsInteger(10, level) || level > 3)
      return badValue(name, "0, 1, 2 or 3", value);
    options.optimization = level;
  } else if (name == "emit") {
    if (value != "mlir" && value != "llvm")
      return badValue(name, "mlir or llvm", value);
    options.emit = value == "mlir" ? Emit::MLIR : Emit::LLVM;
  } else {
    return llvm::createStringError("unknown option --" + name);
  }
  return Error::success();
}

llvm::Expected<Options>
norm_run::parseOptions(llvm::ArrayRef<const char *> arguments) {
  Options options;
  while (!arguments.empty()) {
    StringRef argument = arguments.front();
    arguments = arguments.drop_front();
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    }
    if (argument == "--gpu-counters") {
      options.gpuCounters = true;
      continue;
    }
    if (argument == "--specialize") {
      options.specialize = true;
      continue;
    }
    if (argument == "-" || !argument.starts_with("-")) {
      if (!options.file.empty())
        return llvm::createStringError("expected one file, got '" +
                                       Twine(options.file) + "' and '" +
                                       argument + "'");
      options.file = argument.str();
      continue;
    }
    auto [name, value] = argument.ltrim('-').split('=');
    if (!argument.contains('=')) {
      if (arguments.empty())
        return llvm::createStringError("expected a value after " + argument);
      value = arguments.front();
      arguments = arguments.drop_front();
    }
    if (Error error = setOption(options, name, value))
      return error;
  }
  if (options.file.empty())
    return llvm::createStringError("expected a file, see norm-run --help");
  bool emulated = options.target == mlir::norm::Target::GpuEmulated;
  if (options.gpuCounters && !emulated)
    return llvm::createStringError(
        "expected --target=gpu-emulated with --gpu-counters");
  if (options.timedRuns && emulated)
    return llvm::createStringError(
        "expected another target with --time: the emulator has no time");
  if (options.tolerance && !options.compare)
    return llvm::createStringError(
        "expected --compare=reference with --tolerance");
  return options;
}
