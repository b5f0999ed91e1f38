/*===- driver.c - A CUDA driver that only talks -*- C -*-===*\
|*
|* Part of the norm project, under the Apache License v2.0 with LLVM Exceptions.
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
|*
|*===----------------------------------------------------------------------===*|
|*
|* The part of CUDA's driver that libnorm_cuda uses. Every call is a line on the
|* standard output; memory is the host's; kernels do nothing.
|*
|* NORM_STUB_DEVICES=N  how many devices there are (1)
|* NORM_STUB_CHIP=N     their compute capability (90)
|* NORM_STUB_FAIL=F=N   the function F returns the error N
|*
\*===----------------------------------------------------------------------===*/

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Says what was called and returns what it is to return. */
static int called(const char *name, const char *format, ...) {
  va_list arguments;
  printf("%s ", name);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
  fflush(stdout);
  const char *fail = getenv("NORM_STUB_FAIL");
  size_t length = strlen(name);
  if (fail && strncmp(fail, name, length) == 0 && fail[length] == '=')
    return atoi(fail + length + 1);
  return 0;
}

static unsigned chip(void) {
  const char *text = getenv("NORM_STUB_CHIP");
  return text ? atoi(text) : 90;
}

static char context, module;
static _Thread_local void *current;

int cuInit(unsigned flags) { return called("cuInit", "%u", flags); }
int cuDeviceGetCount(int *count) {
  const char *text = getenv("NORM_STUB_DEVICES");
  *count = text ? atoi(text) : 1;
  return 0;
}
int cuDeviceGet(int *device, int index) {
  *device = index;
  return called("cuDeviceGet", "%d", index);
}
int cuDeviceGetName(char *name, int size, int device) {
  snprintf(name, size, "Stub %d", device);
  return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? chip() / 10 : attribute == 76 ? chip() % 10 : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **result, int device) {
  *result = &context;
  return called("cuDevicePrimaryCtxRetain", "%d", device);
}
int cuCtxGetCurrent(void **result) {
  *result = current;
  return 0;
}
int cuCtxSetCurrent(void *value) {
  current = value;
  return called("cuCtxSetCurrent", "");
}
int cuCtxGetDevice(int *device) {
  *device = 0;
  return 0;
}
/* What a driver takes of a fatbin or of PTX: the latest machine code of its
 * chip's generation, else the latest PTX that is not newer than the chip. */
enum kind { none, ptx, machine_code };
static void consider(unsigned kind, unsigned for_chip, unsigned *best_kind,
                     unsigned *best_chip) {
  if (for_chip > chip() || kind < *best_kind ||
      (kind == machine_code && for_chip / 10 != chip() / 10) ||
      (kind == *best_kind && for_chip < *best_chip))
    return;
  *best_kind = kind;
  *best_chip = for_chip;
}
struct fatbin {
  uint32_t magic;
  uint16_t version, header;
  uint64_t size;
};
struct image {
  uint16_t kind, version;
  uint32_t header;
  uint64_t size;
  uint32_t other[3], chip;
};
static unsigned choose(const void *data, unsigned *for_chip) {
  struct fatbin all;
  unsigned kind = none;
  *for_chip = 0;
  memcpy(&all, data, sizeof(all));
  if (all.magic != 0xBA55ED50) {
    const char *target = strstr(data, ".target sm_");
    if (target)
      consider(ptx, atoi(target + strlen(".target sm_")), &kind, for_chip);
    return kind;
  }
  const char *at = (const char *)data + all.header, *end = at + all.size;
  for (struct image image; at < end; at += image.header + image.size) {
    memcpy(&image, at, sizeof(image));
    consider(image.kind, image.chip, &kind, for_chip);
  }
  return kind;
}

int cuModuleLoadDataEx(void **result, const void *data, unsigned count,
                       int *options, void **values) {
  unsigned for_chip, kind = choose(data, &for_chip);
  *result = &module;
  int status = called("cuModuleLoadDataEx", "with %u options: %s for sm_%u",
                      count, kind == ptx ? "PTX" : "machine code", for_chip);
  if (kind == none)
    return 209;
  for (unsigned i = 0; status == 218 && i < count; ++i)
    if (options[i] == 5)
      strcpy(values[i], "ptxas: line 3 is wrong");
  return status;
}
int cuModuleUnload(void *handle) {
  return called("cuModuleUnload", "%s", handle == &module ? "" : "unknown");
}
int cuModuleGetFunction(void **result, void *handle, const char *name) {
  (void)handle;
  *result = strdup(name);
  return called("cuModuleGetFunction", "%s", name);
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  return called("cuFuncSetAttribute", "%s %d = %d", (char *)function, attribute,
                value);
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **extra) {
  (void)extra;
  return called("cuLaunchKernel",
                "%s grid (%u, %u, %u) block (%u, %u, %u) shared %u stream %td "
                "first argument %d",
                (char *)function, gx, gy, gz, bx, by, bz, shared,
                (ptrdiff_t)stream, *(int *)arguments[0]);
}
#ifndef NORM_STUB_OLD
struct attribute {
  int id;
  char padding[4];
  unsigned x, y, z;
  char rest[52];
};
struct config {
  unsigned gx, gy, gz, bx, by, bz, shared;
  void *stream;
  struct attribute *attributes;
  unsigned count;
};
int cuLaunchKernelEx(const struct config *c, void *function, void **arguments,
                     void **extra) {
  (void)arguments;
  (void)extra;
  return called("cuLaunchKernelEx",
                "%s grid (%u, %u, %u) block (%u, %u, %u) shared %u stream %td, "
                "%u attributes: %d = (%u, %u, %u)",
                (char *)function, c->gx, c->gy, c->gz, c->bx, c->by, c->bz,
                c->shared, (ptrdiff_t)c->stream, c->count, c->attributes->id,
                c->attributes->x, c->attributes->y, c->attributes->z);
}
#endif
int cuStreamCreate(void **stream, unsigned flags) {
  static ptrdiff_t next = 1;
  *stream = (void *)next;
  return called("cuStreamCreate", "%td flags %u", next++, flags);
}
int cuStreamDestroy_v2(void *stream) {
  return called("cuStreamDestroy_v2", "%td", (ptrdiff_t)stream);
}
int cuStreamSynchronize(void *stream) {
  return called("cuStreamSynchronize", "%td", (ptrdiff_t)stream);
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  return called("cuStreamWaitEvent", "%td %td %u", (ptrdiff_t)stream,
                (ptrdiff_t)event, flags);
}
int cuEventCreate(void **event, unsigned flags) {
  static ptrdiff_t next = 100;
  *event = (void *)next;
  return called("cuEventCreate", "%td flags %u", next++, flags);
}
int cuEventDestroy_v2(void *event) {
  return called("cuEventDestroy_v2", "%td", (ptrdiff_t)event);
}
int cuEventRecord(void *event, void *stream) {
  return called("cuEventRecord", "%td %td", (ptrdiff_t)event,
                (ptrdiff_t)stream);
}
int cuEventSynchronize(void *event) {
  return called("cuEventSynchronize", "%td", (ptrdiff_t)event);
}
int cuMemAlloc_v2(uint64_t *p, size_t size) {
  *p = (uint64_t)malloc(size);
  return called("cuMemAlloc_v2", "%zu", size);
}
int cuMemAllocManaged(uint64_t *p, size_t size, unsigned flags) {
  *p = (uint64_t)malloc(size);
  return called("cuMemAllocManaged", "%zu %u", size, flags);
}
int cuMemFree_v2(uint64_t p) {
  free((void *)p);
  return called("cuMemFree_v2", "");
}
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t size, void *stream) {
  memcpy((void *)to, (void *)from, size);
  return called("cuMemcpyAsync", "%zu stream %td", size, (ptrdiff_t)stream);
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
  (void)to;
  return called("cuMemsetD32Async", "%#x * %zu stream %td", value, count,
                (ptrdiff_t)stream);
}
int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count,
                     void *stream) {
  (void)to;
  return called("cuMemsetD16Async", "%#x * %zu stream %td", value, count,
                (ptrdiff_t)stream);
}
int cuMemHostRegister_v2(void *p, size_t size, unsigned flags) {
  (void)p;
  return called("cuMemHostRegister_v2", "%zu flags %u", size, flags);
}
int cuMemHostUnregister(void *p) {
  (void)p;
  return called("cuMemHostUnregister", "");
}
int cuGetErrorName(int error, const char **name) {
  *name = error == 209   ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
          : error == 218 ? "CUDA_ERROR_INVALID_PTX"
          : error == 2   ? "CUDA_ERROR_OUT_OF_MEMORY"
                         : "CUDA_ERROR_OF_THE_STUB";
  return 0;
}
int cuGetErrorString(int error, const char **text) {
  (void)error;
  *text = "as it was told";
  return 0;
}
