//===- CountersPrint.cpp - Counters as text and as JSON -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counters.h"

#include "Options.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace norm::emu;
using llvm::formatv;
using llvm::raw_string_ostream;

/// "argument 10" after "argument 9": numbers by value, other names after them.
static std::vector<std::pair<std::string, const ArrayCounters *>>
inOrder(const KernelCounters &kernel) {
  std::vector<std::pair<std::string, const ArrayCounters *>> arrays;
  for (const auto &[name, array] : kernel.arrays)
    arrays.emplace_back(name, &array);
  auto key = [](llvm::StringRef name) {
    unsigned number = ~0u;
    if (name.consume_front("argument "))
      (void)name.getAsInteger(10, number);
    return number;
  };
  llvm::sort(arrays, [&](const auto &a, const auto &b) {
    return std::make_pair(key(a.first), a.first) <
           std::make_pair(key(b.first), b.first);
  });
  return arrays;
}

static void printTraffic(raw_string_ostream &out, llvm::StringRef name,
                         const char *verb, const Traffic &traffic,
                         uint64_t size) {
  if (!traffic.requests)
    return;
  out << formatv("  {0}: {1} {2} bytes", name, verb, traffic.bytes);
  if (size)
    out << formatv(" ({0:f2} of its {1})", double(traffic.bytes) / size, size);
  out << formatv(", {0} warp accesses, {1:f2} sectors each\n", traffic.requests,
                 double(traffic.sectors) / traffic.requests);
}

std::string Counters::text() const {
  std::string result;
  raw_string_ostream out(result);
  for (const auto &[name, kernel] : kernels) {
    out << formatv("kernel {0}: {1} launches, {2} blocks, {3} threads\n", name,
                   kernel.launches, kernel.blocks, kernel.threads);
    for (const auto &[array, counted] : inOrder(kernel)) {
      printTraffic(out, array, "read", counted->read, counted->size);
      printTraffic(out, array, "written", counted->written, counted->size);
    }
    out << formatv("  shared memory: read {0} bytes, written {1} bytes, {2} "
                   "warp accesses in {3} passes, {4} more for bank conflicts\n",
                   kernel.sharedReadBytes, kernel.sharedWrittenBytes,
                   kernel.sharedRequests, kernel.sharedPasses,
                   kernel.bankConflicts);
    out << formatv("  {0} barriers, {1} shuffles, {2} other exchanges in a "
                   "warp\n",
                   kernel.barriers, kernel.shuffles, kernel.otherExchanges);
  }
  return result;
}

static llvm::json::Object toJson(const Traffic &traffic) {
  return llvm::json::Object{{"bytes", traffic.bytes},
                            {"warp_accesses", traffic.requests},
                            {"sectors", traffic.sectors}};
}

static llvm::json::Object toJson(const std::string &name,
                                 const KernelCounters &kernel) {
  llvm::json::Array arrays;
  for (const auto &[array, counted] : inOrder(kernel))
    arrays.push_back(llvm::json::Object{{"array", array},
                                        {"size", counted->size},
                                        {"read", toJson(counted->read)},
                                        {"written", toJson(counted->written)}});
  return llvm::json::Object{
      {"kernel", name},
      {"launches", kernel.launches},
      {"blocks", kernel.blocks},
      {"threads", kernel.threads},
      {"barriers", kernel.barriers},
      {"shuffles", kernel.shuffles},
      {"other_exchanges", kernel.otherExchanges},
      {"arrays", std::move(arrays)},
      {"shared",
       llvm::json::Object{{"read_bytes", kernel.sharedReadBytes},
                          {"written_bytes", kernel.sharedWrittenBytes},
                          {"warp_accesses", kernel.sharedRequests},
                          {"passes", kernel.sharedPasses},
                          {"bank_conflicts", kernel.bankConflicts}}}};
}

std::string Counters::json() const {
  llvm::json::Array array;
  for (const auto &[name, kernel] : kernels)
    array.push_back(toJson(name, kernel));
  return formatv("{0:2}\n", llvm::json::Value(std::move(array))).str();
}

void norm::emu::printCountersAtEnd() {
  Options &o = options();
  CounterFormat format = std::exchange(o.format, CounterFormat::None);
  if (format == CounterFormat::None)
    return;
  std::string text =
      format == CounterFormat::Json ? counters().json() : counters().text();
  if (o.counterFile.empty()) {
    llvm::errs() << text;
    return;
  }
  std::error_code error;
  llvm::raw_fd_ostream file(o.counterFile, error);
  if (error)
    llvm::errs() << "norm-emu: error: cannot write counters to "
                 << o.counterFile << ": " << error.message() << "\n";
  else
    file << text;
}
