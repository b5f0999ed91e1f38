//===- roof.cpp - What moving bytes costs on this machine -----------------===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies that a norm is measured against, with plain and with non-temporal
// stores, and a loop that calls compiled code without an interpreter in
// between. Built on first use by native.py; without builtin functions, so that
// no copy becomes a call of memcpy.
//
//===----------------------------------------------------------------------===//

#include <cstddef>
#include <cstdint>
#include <omp.h>

namespace {

/// A cache line of floats.
typedef float Line __attribute__((vector_size(64), aligned(4), may_alias));
typedef float AlignedLine __attribute__((vector_size(64), may_alias));

/// Up to this many bytes read and written, threads cost more than they give.
constexpr size_t kSerialBytes = 256 * 1024;

template <bool isStreaming> void store(float *target, Line value) {
  if constexpr (isStreaming)
    __builtin_nontemporal_store(value, reinterpret_cast<AlignedLine *>(target));
  else
    *reinterpret_cast<Line *>(target) = value;
}

Line load(const float *source) {
  return *reinterpret_cast<const Line *>(source);
}

/// Streamed stores must be visible before a thread says that it is done.
void fence() {
#ifdef __x86_64__
  __builtin_ia32_sfence();
#endif
}

/// Calls body(first, last) for the whole lines of `bytes`, a range a thread.
template <typename Body>
void forRanges(size_t bytes, unsigned arrays, Body body) {
  size_t lines = bytes / sizeof(Line);
  if (bytes * arrays <= kSerialBytes)
    return body(0, lines);
#pragma omp parallel
  {
    size_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    body(lines * thread / threads, lines * (thread + 1) / threads);
  }
}

template <bool isStreaming>
void copy(float *target, const float *source, size_t bytes) {
  forRanges(bytes, 2, [=](size_t first, size_t last) {
#pragma unroll 4
    for (size_t i = first; i < last; ++i)
      store<isStreaming>(target + 16 * i, load(source + 16 * i));
    if (isStreaming)
      fence();
  });
}

template <bool isStreaming>
void copyTwo(float *target0, const float *source0, float *target1,
             const float *source1, size_t bytes) {
  forRanges(bytes, 4, [=](size_t first, size_t last) {
#pragma unroll 4
    for (size_t i = first; i < last; ++i) {
      store<isStreaming>(target0 + 16 * i, load(source0 + 16 * i));
      store<isStreaming>(target1 + 16 * i, load(source1 + 16 * i));
    }
    if (isStreaming)
      fence();
  });
}

template <bool isStreaming>
void triad(float *target, const float *source0, const float *source1,
           size_t bytes) {
  forRanges(bytes, 3, [=](size_t first, size_t last) {
#pragma unroll 4
    for (size_t i = first; i < last; ++i)
      store<isStreaming>(target + 16 * i, load(source0 + 16 * i) +
                                              0.5f * load(source1 + 16 * i));
    if (isStreaming)
      fence();
  });
}

} // namespace

extern "C" {

// Arrays lie on cache lines; a rest of less than a line is left out.

void roof_copy(float *target, const float *source, size_t bytes) {
  copy<false>(target, source, bytes);
}
void roof_copy_nt(float *target, const float *source, size_t bytes) {
  copy<true>(target, source, bytes);
}
void roof_copy2(float *target0, const float *source0, float *target1,
                const float *source1, size_t bytes) {
  copyTwo<false>(target0, source0, target1, source1, bytes);
}
void roof_copy2_nt(float *target0, const float *source0, float *target1,
                   const float *source1, size_t bytes) {
  copyTwo<true>(target0, source0, target1, source1, bytes);
}
void roof_triad(float *target, const float *source0, const float *source1,
                size_t bytes) {
  triad<false>(target, source0, source1, bytes);
}
void roof_triad_nt(float *target, const float *source0, const float *source1,
                   size_t bytes) {
  triad<true>(target, source0, source1, bytes);
}

/// A function of up to 12 words, and the words.
struct BoundCall {
  void *function;
  int64_t count;
  void *words[12];
};

/// Makes `count` calls one after the other, `times` times.
void repeat_calls(const BoundCall *calls, int64_t count, int64_t times) {
  using Word = void *;
  for (int64_t t = 0; t < times; ++t)
    for (const BoundCall *call = calls; call != calls + count; ++call) {
      Word const *w = call->words;
      if (call->count <= 6) {
        auto function =
            reinterpret_cast<void (*)(Word, Word, Word, Word, Word, Word)>(
                call->function);
        function(w[0], w[1], w[2], w[3], w[4], w[5]);
      } else {
        auto function =
            reinterpret_cast<void (*)(Word, Word, Word, Word, Word, Word, Word,
                                      Word, Word, Word, Word, Word)>(
                call->function);
        function(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9],
                 w[10], w[11]);
      }
    }
}

} // extern "C"
