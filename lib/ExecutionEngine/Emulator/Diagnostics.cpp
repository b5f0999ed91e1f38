//===- Diagnostics.cpp - What the emulator says when a program is wrong -*- C++
//-*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Diagnostics.h"

#include "Counters.h"

#include <cstdio>
#include <iostream>
#include <unistd.h>

using namespace norm::emu;

namespace {
struct State {
  ErrorHandler handler = nullptr;
  void *userData = nullptr;
  uint64_t count = 0;
  std::string last;
};
} // namespace

static State &state() {
  static State instance;
  return instance;
}

/// `prefix` is empty where the location stands in for it, as in a compiler.
static void renderLine(std::string &out, const Site *site, const char *severity,
                       const std::string &message) {
  out += site && !site->location.empty() ? site->location : "norm-emu";
  out += ": ";
  out += severity;
  out += ": ";
  out += message;
  out += '\n';
  if (!site)
    return;
  for (const std::string &caller : site->callers)
    out += caller + ": note: inlined into this call\n";
  if (site->location.empty())
    out += "  " + site->text + "\n";
}

std::string norm::emu::render(const Failure &failure, llvm::StringRef context) {
  std::string out;
  renderLine(out, failure.site, "error", failure.message);
  if (!context.empty())
    out += "norm-emu: note: " + context.str() + "\n";
  if (!failure.note.empty())
    renderLine(out, failure.noteSite, "note", failure.note);
  if (failure.site && failure.site->location.empty())
    out += "norm-emu: note: the module has no debug locations; run "
           "ensure-debug-info-scope-on-llvm-func on it to see lines\n";
  return out;
}

void norm::emu::setErrorHandler(ErrorHandler handler, void *userData) {
  state().handler = handler;
  state().userData = userData;
}

uint64_t norm::emu::errorCount() { return state().count; }

const std::string &norm::emu::lastError() { return state().last; }

/// Ends the process from inside compiled code: its destructors cannot run any
/// more, but what the program printed so far must not be lost.
[[noreturn]] static void endProcess() {
  std::cout.flush();
  std::fflush(nullptr);
  printCountersAtEnd();
  _exit(failureStatus);
}

void norm::emu::deliver(const std::string &text) {
  State &s = state();
  ++s.count;
  s.last = text;
  if (s.handler) {
    s.handler(s.last.c_str(), s.userData);
    return;
  }
  std::cout.flush();
  std::fflush(nullptr);
  std::fputs(text.c_str(), stderr);
  endProcess();
}

void norm::emu::failCall(const std::string &message) {
  deliver("norm-emu: error: " + message + "\n");
}

void norm::emu::failSetup(const std::string &message) {
  std::fprintf(stderr, "norm-emu: error: %s\n", message.c_str());
  _exit(failureStatus);
}
