//===- Options.cpp - What the environment asks of the emulator -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "Diagnostics.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cstdlib>

using namespace norm::emu;
using llvm::StringRef;

bool norm::emu::parseChecks(StringRef text, unsigned &checks,
                            std::string &bad) {
  llvm::SmallVector<StringRef> names;
  text.split(names, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  // A list of names alone switches on those; one that only leaves some out
  // starts from all of them.
  checks =
      !names.empty() && names.front().trim().starts_with("-") ? CheckAll : 0u;
  for (StringRef name : names) {
    name = name.trim();
    bool without = name.consume_front("-");
    auto bits = llvm::StringSwitch<unsigned>(name)
                    .Case("all", CheckAll)
                    .Case("none", 0)
                    .Case("bounds", CheckBounds)
                    .Case("alignment", CheckAlignment)
                    .Case("races", CheckRaces)
                    .Case("uninitialized", CheckUninitialized)
                    .Case("blocks", CheckBlocks)
                    .Case("aliasing", CheckAliasing)
                    .Default(~0u);
    if (bits == ~0u) {
      bad = name.str();
      return false;
    }
    checks = without ? checks & ~bits : checks | bits;
  }
  return true;
}

static void readSeed(Options &result) {
  const char *text = std::getenv("NORM_EMU_SEED");
  if (text && StringRef(text).getAsInteger(0, result.seed))
    failSetup("expected a number in NORM_EMU_SEED, got '" + std::string(text) +
              "'");
}

static void readChecks(Options &result) {
  const char *text = std::getenv("NORM_EMU_CHECK");
  std::string bad;
  if (text && !parseChecks(text, result.checks, bad))
    failSetup("unknown check '" + bad +
              "' in NORM_EMU_CHECK: expected all, none, bounds, alignment, "
              "races, uninitialized, blocks or aliasing");
}

static void readCounters(Options &result) {
  const char *text = std::getenv("NORM_EMU_COUNTERS");
  if (!text || !*text)
    return;
  auto [format, file] = StringRef(text).split(':');
  result.format = llvm::StringSwitch<CounterFormat>(format)
                      .Case("text", CounterFormat::Text)
                      .Case("json", CounterFormat::Json)
                      .Default(CounterFormat::None);
  if (result.format == CounterFormat::None)
    failSetup("expected text, json, text:FILE or json:FILE in "
              "NORM_EMU_COUNTERS, got '" +
              std::string(text) + "'");
  result.counterFile = file.str();
  result.count = true;
}

Options &norm::emu::options() {
  static Options instance = [] {
    Options result;
    readSeed(result);
    readChecks(result);
    readCounters(result);
    return result;
  }();
  return instance;
}
