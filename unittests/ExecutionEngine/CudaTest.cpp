//===- CudaTest.cpp - A host that embeds libnorm_cuda -*- C++ -*-===//
//
// Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Failures that a handler is told of, where there is no driver, and what
// messages say of images. Programs over a driver are in test/Cuda.
//
//===----------------------------------------------------------------------===//

#include "Norm/ExecutionEngine/Cuda.h"
#include "../../lib/ExecutionEngine/Cuda/Images.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
void *mgpuModuleLoad(void *data, size_t size);
void mgpuModuleUnload(void *module);
void *mgpuModuleGetFunction(void *module, const char *name);
void mgpuLaunchKernel(void *function, intptr_t gridX, intptr_t gridY,
                      intptr_t gridZ, intptr_t blockX, intptr_t blockY,
                      intptr_t blockZ, int32_t shared, void *stream,
                      void **arguments, void **extra, size_t count);
void *mgpuStreamCreate();
void mgpuStreamSynchronize(void *stream);
void mgpuStreamDestroy(void *stream);
void *mgpuMemAlloc(uint64_t size, void *stream, bool hostShared);
}

using norm::cuda::describeImages;

namespace {

TEST(Cuda, TellsAHandlerOnceThatThereIsNoDriver) {
  setenv("NORM_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  std::vector<std::string> errors;
  normCudaSetErrorHandler(
      [](const char *message, void *list) {
        static_cast<std::vector<std::string> *>(list)->emplace_back(message);
      },
      &errors);
  // A module is not looked at, and a stream of the caller not asked for.
  char data[] = "PTX";
  void *module = mgpuModuleLoad(data, sizeof(data));
  int mark = 0;
  normCudaSetStream(&mark);
  EXPECT_EQ(mgpuStreamCreate(), &mark);
  mgpuStreamSynchronize(&mark);
  mgpuStreamDestroy(&mark);
  normCudaResetStream();
  EXPECT_TRUE(errors.empty());

  void *function = mgpuModuleGetFunction(module, "kernel");
  EXPECT_EQ(function, nullptr);
  mgpuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr, 0);
  EXPECT_EQ(mgpuMemAlloc(16, nullptr, false), nullptr);
  EXPECT_EQ(mgpuStreamCreate(), nullptr);
  mgpuModuleUnload(module);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].find("norm-cuda: error: no CUDA driver: cannot open "
                           "/nowhere/libcuda.so.1"),
            0u)
      << errors[0];
  EXPECT_EQ(normCudaErrorCount(), 1u);
  EXPECT_EQ(normCudaLastError(), errors[0]);
  normCudaSetErrorHandler(nullptr, nullptr);
}

TEST(Cuda, NamesImages) {
  EXPECT_EQ(describeImages(".version 8.3\n.target sm_90a, debug\n", 0),
            "PTX for sm_90a");
  EXPECT_EQ(describeImages("text", 4), "no image of a known kind");

  char elf[64] = "\x7f"
                 "ELF";
  elf[48] = 80;
  EXPECT_EQ(describeImages(elf, sizeof(elf)), "machine code for sm_80");
  // Since CUDA 12.8 the chip is one byte further.
  elf[8] = 8;
  elf[48] = 4;
  elf[49] = 100;
  EXPECT_EQ(describeImages(elf, sizeof(elf)), "machine code for sm_100");
}

TEST(Cuda, NamesAllImagesOfAFatbin) {
  struct Image {
    uint16_t kind, version;
    uint32_t header;
    uint64_t size;
    char rest[12];
    uint32_t chip;
  };
  struct {
    uint32_t magic = 0xBA55ED50;
    uint16_t version = 1, header = 16;
    uint64_t size = 3 * sizeof(Image);
    Image images[3] = {{2, 0, sizeof(Image), 0, {}, 80},
                       {2, 0, sizeof(Image), 0, {}, 90},
                       {1, 0, sizeof(Image), 0, {}, 90}};
  } fatbin;
  static_assert(sizeof(Image) == 32);
  EXPECT_EQ(describeImages(&fatbin, sizeof(fatbin)),
            "machine code for sm_80, machine code for sm_90, PTX for sm_90");
  fatbin.size = 0;
  EXPECT_EQ(describeImages(&fatbin, sizeof(fatbin)), "a fatbin without images");
}

} // namespace
