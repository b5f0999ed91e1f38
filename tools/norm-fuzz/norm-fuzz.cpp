//===- norm-fuzz.cpp - Runs many small programs in one process -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A server for python/norm/fuzz: commands on stdin, one reply each on stdout. A
// command is a line, some with bytes behind it:
//
//   parse N            a module of N bytes of text; what follows works on it
//   passes N           a pass pipeline of N bytes; the module as it was parsed,
//                      transformed by it, becomes the current one
//   roundtrip          prints the current module, plain and generic, and as
//                      bytecode, and reads each again
//   print, generic     replies with the current module's text
//   compile TARGET STRIDES THREADS LEVEL
//                      compiles the current module's @main; threads 0 or 1
//   inputs N           N arrays, each a line `DTYPE RANK DIM.. STRIDE..`
//   (NumPy's
//                      name of the type, strides in elements) and its bytes
//   call               runs what was compiled on them; the reply has the
//   results,
//                      as `DTYPE RANK DIM..` lines with bytes
//
// A reply is `ok N`, or `failed N` where something was refused, and N bytes:
// the diagnostics, or what was asked for.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Norm/RegisterAll.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Support/Signals.h"

#include <cstdio>
#include <cstring>
#include <optional>

using namespace norm_run;
using namespace mlir;
using namespace mlir::norm;

//===----------------------------------------------------------------------===//
// Bytes in and out
//===----------------------------------------------------------------------===//

static bool readLine(std::string &line) {
  line.clear();
  for (int c = std::getchar(); c != EOF; c = std::getchar()) {
    if (c == '\n')
      return true;
    line.push_back(static_cast<char>(c));
  }
  return false;
}

static bool readBytes(char *data, size_t size) {
  return std::fread(data, 1, size, stdin) == size;
}

static void reply(bool isFine, StringRef text) {
  std::printf("%s %zu\n", isFine ? "ok" : "failed", text.size());
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

//===----------------------------------------------------------------------===//
// The server
//===----------------------------------------------------------------------===//

namespace {
class Server {
public:
  explicit Server(MLIRContext &context) : context(context) {
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      note(diagnostic);
      return success();
    });
  }

  /// Handles one command. Returns false on input that is no command.
  bool handle(StringRef line) {
    messages.clear();
    SmallVector<StringRef> words;
    line.split(words, ' ', -1, /*KeepEmpty=*/false);
    if (words.empty())
      return false;
    if (words[0] == "parse" || words[0] == "passes") {
      std::string text;
      size_t size;
      if (words.size() != 2 || words[1].getAsInteger(10, size))
        return false;
      text.resize(size);
      if (!readBytes(text.data(), size))
        return false;
      reply(words[0] == "parse" ? parse(text) : runPasses(text), messages);
      return true;
    }
    if (words[0] == "inputs")
      return words.size() == 2 && readInputs(words[1]);
    if (words[0] == "compile")
      return words.size() == 5 && compile(ArrayRef(words).drop_front());
    if (words[0] == "roundtrip")
      reply(current && checkRoundtrip(), messages);
    else if (words[0] == "print" || words[0] == "generic")
      reply(static_cast<bool>(current),
            current ? printed(*current, words[0] == "generic") : "");
    else if (words[0] == "call")
      call(ArrayRef(words).drop_front());
    else
      return false;
    return true;
  }

private:
  MLIRContext &context;
  OwningOpRef<ModuleOp> parsed, current;
  std::optional<Entry> entry;
  std::optional<Program> program;
  std::vector<Array> inputs;
  std::string messages;

  void note(Diagnostic &diagnostic) {
    llvm::raw_string_ostream os(messages);
    StringRef severity;
    switch (diagnostic.getSeverity()) {
    case DiagnosticSeverity::Error:
      severity = "error: ";
      break;
    case DiagnosticSeverity::Warning:
      severity = "warning: ";
      break;
    case DiagnosticSeverity::Note:
      severity = "note: ";
      break;
    case DiagnosticSeverity::Remark:
      return;
    }
    os << severity << diagnostic << "\n";
    for (Diagnostic &attached : diagnostic.getNotes())
      note(attached);
  }

  void note(llvm::Error error) {
    messages += "error: " + llvm::toString(std::move(error)) + "\n";
  }

  bool parse(StringRef text) {
    program.reset();
    entry.reset();
    current = nullptr;
    parsed = parseSourceString<ModuleOp>(text, &context);
    if (parsed)
      current = parsed->clone();
    return static_cast<bool>(parsed);
  }

  bool runPasses(StringRef text) {
    if (!parsed)
      return false;
    current = parsed->clone();
    PassManager pm(&context, ModuleOp::getOperationName());
    llvm::raw_string_ostream os(messages);
    if (failed(parsePassPipeline(text, pm, os)))
      return false;
    if (succeeded(pm.run(*current)))
      return true;
    current = nullptr;
    return false;
  }

  static std::string printed(ModuleOp module, bool isGeneric) {
    std::string text;
    llvm::raw_string_ostream os(text);
    OpPrintingFlags flags;
    if (isGeneric)
      flags.printGenericOpForm();
    module.print(os, flags);
    return text;
  }

  bool checkRoundtrip() {
    std::string plain = printed(*current, false), bytecode;
    llvm::raw_string_ostream os(bytecode);
    if (failed(writeBytecodeToFile(*current, os))) {
      messages += "error: not written as bytecode\n";
      return false;
    }
    std::pair<StringRef, std::string> forms[] = {
        {"plain", plain},
        {"generic", printed(*current, true)},
        {"bytecode", bytecode}};
    for (auto &[name, text] : forms) {
      OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, &context);
      if (!again) {
        messages += ("error: the " + name + " form is not read again\n").str();
        return false;
      }
      if (printed(*again, false) != plain) {
        messages += ("error: the " + name + " form changes when read\n").str();
        return false;
      }
    }
    return true;
  }

  bool compile(ArrayRef<StringRef> words) {
    ProgramOptions options;
    std::optional<Target> target = parseTarget(words[0]);
    auto strides = llvm::StringSwitch<std::optional<EntryStrides>>(words[1])
                       .Case("dispatch", EntryStrides::Dispatch)
                       .Case("any", EntryStrides::Any)
                       .Case("unit", EntryStrides::Unit)
                       .Default(std::nullopt);
    if (!target || !strides || words[3].getAsInteger(10, options.optimization))
      return false;
    options.target = *target;
    options.strides = *strides;
    options.threads = words[2] == "1";
    program.reset();
    entry.reset();
    reply(current && compile(options), messages);
    return true;
  }

  bool compile(const ProgramOptions &options) {
    auto found = Entry::get(*current, "main");
    if (!found) {
      note(found.takeError());
      return false;
    }
    entry = std::move(*found);
    auto compiled = Program::compile(*entry, options);
    if (!compiled) {
      note(compiled.takeError());
      return false;
    }
    program = std::move(*compiled);
    return true;
  }

  bool readInputs(StringRef number) {
    size_t count;
    if (number.getAsInteger(10, count))
      return false;
    inputs.clear();
    for (size_t i = 0; i < count; ++i) {
      std::optional<Array> array = readArray();
      if (!array)
        return false;
      inputs.push_back(std::move(*array));
    }
    reply(true, "");
    return true;
  }

  static std::optional<Array> readArray() {
    static constexpr DType kTypes[] = {
        DType::Bool,    DType::Int8,    DType::Int16,
        DType::UInt16,  DType::Int32,   DType::Int64,
        DType::Float16, DType::Float32, DType::Float64};
    std::string line;
    if (!readLine(line))
      return std::nullopt;
    SmallVector<StringRef> words;
    StringRef(line).split(words, ' ');
    Array array;
    const DType *type = llvm::find_if(kTypes, [&](DType candidate) {
      return describe(candidate) == words[0];
    });
    size_t rank;
    if (type == std::end(kTypes) || words.size() < 2 ||
        words[1].getAsInteger(10, rank) || words.size() != 2 + 2 * rank)
      return std::nullopt;
    array.type = *type;
    for (size_t i = 0; i < 2 * rank; ++i) {
      int64_t value;
      if (words[2 + i].getAsInteger(10, value))
        return std::nullopt;
      (i < rank ? array.shape : array.strides).push_back(value);
    }
    array.data = allocateAligned(array.getNumBytes());
    if (!array.data || !readBytes(array.data.get(), array.getNumBytes()))
      return std::nullopt;
    return array;
  }

  void call(ArrayRef<StringRef> shapes) {
    std::string results;
    bool isFine = program && callOn(shapes, results);
    reply(isFine, isFine ? results : messages);
  }

  /// The results' shapes: as they are said to be, or inferred.
  llvm::Expected<SmallVector<SmallVector<int64_t>>>
  shapesOf(ArrayRef<StringRef> words) {
    if (words.empty())
      return entry->inferResultShapes(inputs);
    SmallVector<SmallVector<int64_t>> shapes;
    for (auto [word, type] : llvm::zip(words, entry->getResultTypes())) {
      SmallVector<StringRef> parts;
      word.split(parts, 'x', -1, /*KeepEmpty=*/false);
      SmallVector<int64_t> shape(parts.size() - 1);
      for (size_t i = 1; i < parts.size(); ++i)
        if (parts[i].getAsInteger(10, shape[i - 1]))
          shape.clear();
      if (failed(verifyCompatibleShape(shape, type.getShape())))
        return llvm::createStringError("expected a shape of the result's type");
      shapes.push_back(std::move(shape));
    }
    if (shapes.size() != entry->getResultTypes().size())
      return llvm::createStringError("expected a shape of every result");
    return shapes;
  }

  bool callOn(ArrayRef<StringRef> words, std::string &text) {
    std::vector<std::string> names(inputs.size(), "input");
    if (llvm::Error error = entry->check(inputs, names)) {
      note(std::move(error));
      return false;
    }
    auto shapes = shapesOf(words);
    if (!shapes) {
      note(shapes.takeError());
      return false;
    }
    if (llvm::Error error = program->bind(*entry, inputs, *shapes)) {
      note(std::move(error));
      return false;
    }
    program->run();
    if (llvm::Error error = program->checkGuards()) {
      note(std::move(error));
      return false;
    }
    llvm::raw_string_ostream os(text);
    for (const Array &result : program->getResults()) {
      os << describe(result.type) << " " << result.shape.size();
      for (int64_t extent : result.shape)
        os << " " << extent;
      os << "\n";
      os.write(result.data.get(), result.getNumBytes());
    }
    return true;
  }
};
} // namespace

int main(int, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::norm::registerAllDialects(registry);
  registerJitDialects(registry);
  mlir::registerAllPasses();
  mlir::norm::registerAllPasses();
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  Server server(context);
  std::string line;
  while (readLine(line))
    if (!server.handle(line)) {
      llvm::errs() << "norm-fuzz: error: not a command: " << line << "\n";
      return 1;
    }
  return 0;
}
