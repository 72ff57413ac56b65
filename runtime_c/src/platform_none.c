/* The platform of targets without an operating system: no threads, files or clock. Takes the place
 * of platform_posix.c, cpu_count_linux.c and pool.c. Contexts live in the program's memory
 * (cuvil_context_init); the few hundred bytes of each open model come from a static block. */
#include "internal.h"
#include "platform.h"

#ifndef CUVIL_STATIC_BYTES
#define CUVIL_STATIC_BYTES 2048
#endif

static _Alignas(CUVIL_ARENA_ALIGN) char block[CUVIL_STATIC_BYTES];
static size_t used;
static int live; /* allocations; the block is empty again when all are freed */

void *cuvil_platform_allocate(size_t bytes) {
  if (bytes > sizeof block - used) return NULL;
  void *memory = block + used;
  used += cuvil_round_up(bytes);
  live++;
  return memory;
}

void cuvil_platform_free(void *memory) {
  if (memory && --live == 0) used = 0;
}

int64_t cuvil_platform_now(void) { return 0; }

const char *cuvil_platform_environment(const char *name) {
  (void)name;
  return NULL;
}

cuvil_status cuvil_platform_map_file(const char *path, const void **base, size_t *bytes) {
  (void)path, (void)base, (void)bytes;
  return CUVIL_IO_ERROR;
}

void cuvil_platform_unmap_file(const void *base, size_t bytes) { (void)base, (void)bytes; }

int cuvil_platform_library_path(const void *address, char *path, size_t room) {
  (void)address, (void)path, (void)room;
  return 1;
}

const cuvil_pool *cuvil_default_pool(int32_t threads) {
  (void)threads;
  return NULL;
}

int32_t cuvil_default_threads(void) { return 1; }

cuvil_status cuvil_pool_create(int32_t threads, const cuvil_pool **pool) {
  (void)threads, (void)pool;
  return CUVIL_INVALID_ARGUMENT;
}

void cuvil_pool_release(const cuvil_pool *pool) {
  if (pool) pool->release(pool->state);
}
