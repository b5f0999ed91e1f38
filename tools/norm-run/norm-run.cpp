//===- norm-run.cpp - Run a function of an MLIR file on arrays -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Emulated.h"
#include "Options.h"
#include "Program.h"
#include "Timing.h"
#include "Values.h"

#include "Norm/ExecutionEngine/Entry.h"
#include "Norm/ExecutionEngine/Jit.h"
#include "Norm/RegisterAll.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/SourceMgr.h"

using namespace norm_run;
using namespace mlir;
using namespace mlir::norm;

// From the OpenMP runtime, whose header is not everywhere.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" void omp_set_num_threads(int);
extern "C" int omp_get_max_threads();
// NOLINTEND(readability-identifier-naming)

//===----------------------------------------------------------------------===//
// What is printed
//===----------------------------------------------------------------------===//

static llvm::Error writeResults(Entry &entry, Program &program,
                                const Options &options) {
  ArrayRef<Array> results = program.getResults();
  for (auto [path, result] : llvm::zip(options.outputs, results))
    if (llvm::Error error = writeNpy(path, result))
      return error;
  if (!options.outputs.empty() || options.compare || options.timedRuns)
    return llvm::Error::success();
  for (auto [i, result] : llvm::enumerate(results)) {
    Type elementType = entry.getResultTypes()[i].getElementType();
    llvm::outs() << "result " << i << ": " << shapeText(result.shape) << " of "
                 << elementType << "\n";
    print(llvm::outs(), elementType, result);
  }
  return llvm::Error::success();
}

/// Prints the error of each result. Returns whether all are small enough.
static llvm::Expected<bool> compareWithReference(Entry &entry, Program &program,
                                                 Program &reference,
                                                 const Options &options) {
  bool isClose = true;
  for (auto [i, result] : llvm::enumerate(program.getResults())) {
    Difference difference = compare(entry.getResultTypes()[i].getElementType(),
                                    result, reference.getResults()[i]);
    llvm::outs() << "result " << i
                 << llvm::format(": max abs error %.3g, relative to max "
                                 "|reference| %.3g",
                                 difference.absolute, difference.relative);
    if (difference.mismatches)
      llvm::outs() << ", NaN or infinity on one side only in "
                   << difference.mismatches << " elements";
    bool isResultClose =
        !options.tolerance || difference.relative <= *options.tolerance;
    if (!isResultClose)
      llvm::outs() << llvm::format(", above the tolerance %.3g",
                                   *options.tolerance);
    llvm::outs() << "\n";
    isClose &= isResultClose;
  }
  return isClose;
}

static llvm::Error timeProgram(MLIRContext *context, Program &program,
                               ArrayRef<Array> inputs, const Options &options) {
  size_t bytes = 0;
  for (const Array &array : inputs)
    bytes += array.getNumBytes();
  for (const Array &array : program.getResults())
    bytes += array.getNumBytes();
  unsigned threads = omp_get_max_threads();
  auto timing = timeBesideCopy(
      context, [&] { program.run(); }, bytes, threads, options.timedRuns);
  if (!timing)
    return timing.takeError();
  auto micros = [](double seconds) { return 1e6 * seconds; };
  llvm::outs() << llvm::format(
      "time: median %.2f us, min %.2f us over %u runs on %u threads\n",
      micros(timing->function.median), micros(timing->function.least),
      options.timedRuns, threads);
  llvm::outs() << llvm::format(
      "copy of the same %.3f MiB: median %.2f us, min %.2f us\n",
      timing->bytes / double(1 << 20), micros(timing->copy.median),
      micros(timing->copy.least));
  llvm::outs() << llvm::format(
      "ratio to the copy: %.3f (copy's median / function's)\n",
      timing->copy.median / timing->function.median);
  llvm::outs() << llvm::format(
      "heap allocations per run: %g; copies of buffers in the code: %lld\n",
      timing->allocationsPerRun,
      static_cast<long long>(program.getNumCopies()));
  llvm::outs() << llvm::format("compiled in %.3f s\n",
                               program.getCompileSeconds());
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// The tool
//===----------------------------------------------------------------------===//

static llvm::Error emit(Entry &entry, const Options &options) {
  if (options.emit == Emit::LLVM &&
      failed(lowerForTarget(entry.getModule(), options.target)))
    return llvm::createStringError("'" + entry.getName() +
                                   "' could not be lowered");
  entry.getModule().print(llvm::outs());
  llvm::outs() << "\n";
  return llvm::Error::success();
}

/// Returns whether results are as close to the reference as asked.
static llvm::Expected<bool> run(ModuleOp module, const Options &options) {
  auto entry = Entry::get(module, options.entry);
  if (!entry)
    return entry.takeError();
  if (options.emit != Emit::None) {
    if (llvm::Error error = emit(*entry, options))
      return error;
    return true;
  }
  if (options.outputs.size() > entry->getResultTypes().size())
    return llvm::createStringError("expected at most " +
                                   Twine(entry->getResultTypes().size()) +
                                   " outputs for '" + options.entry +
                                   "', got " + Twine(options.outputs.size()));

  std::vector<Array> inputs;
  for (const std::string &path : options.inputs) {
    auto array = readNpy(path);
    if (!array)
      return array.takeError();
    inputs.push_back(std::move(*array));
  }
  if (llvm::Error error = entry->check(inputs, options.inputs))
    return error;
  if (options.threads)
    omp_set_num_threads(options.threads);

  auto shapes = entry->inferResultShapes(inputs);
  if (!shapes)
    return shapes.takeError();
  auto runOn = [&](Target target) -> llvm::Expected<Program> {
    ProgramOptions compilation;
    compilation.target = target;
    compilation.strides = stridesOf(inputs);
    if (target == Target::Reference)
      compilation.optimization = 0;
    else if (options.specialize)
      compilation.arrays = inputs;
    if (options.optimization)
      compilation.optimization = *options.optimization;
    auto program = Program::compile(*entry, compilation);
    if (!program)
      return program;
    if (llvm::Error error = program->bind(*entry, inputs, *shapes))
      return error;
    program->run();
    if (llvm::Error error = program->checkGuards())
      return error;
    return program;
  };
  if (options.gpuCounters)
    if (llvm::Error error = countEmulated())
      return error;
  auto program = runOn(options.target);
  if (!program)
    return program.takeError();
  if (llvm::Error error = writeResults(*entry, *program, options))
    return error;
  if (options.gpuCounters)
    llvm::outs() << emulatorCounters();

  bool isClose = true;
  if (options.compare) {
    auto reference = runOn(Target::Reference);
    if (!reference)
      return reference.takeError();
    auto close = compareWithReference(*entry, *program, *reference, options);
    if (!close)
      return close.takeError();
    isClose = *close;
  }
  if (options.timedRuns)
    if (llvm::Error error =
            timeProgram(module.getContext(), *program, inputs, options))
      return error;
  return isClose;
}

/// Prints an error that no diagnostic has told yet.
static int fail(llvm::Error error, bool wasReported = false) {
  std::string message = llvm::toString(std::move(error));
  if (!wasReported)
    llvm::errs() << "norm-run: error: " << message << "\n";
  return 1;
}

int main(int argc, char **argv) {
  auto options = parseOptions(llvm::ArrayRef(argv + 1, argc - 1));
  if (!options)
    return fail(options.takeError());
  if (options->help) {
    llvm::outs() << kUsage;
    return 0;
  }

  DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::norm::registerAllDialects(registry);
  registerJitDialects(registry);
  // One function is compiled, and the threads are the function's.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);

  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler printer(sources, &context);
  unsigned numErrors = 0;
  context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
    numErrors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return failure(); // printed by the handler above
  });
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(options->file, sources, &context);
  if (!module)
    return fail(llvm::createStringError("'" + Twine(options->file) +
                                        "' could not be read"),
                numErrors > 0);
  auto isClose = run(*module, *options);
  if (!isClose)
    return fail(isClose.takeError(), numErrors > 0);
  return *isClose ? 0 : 1;
}
