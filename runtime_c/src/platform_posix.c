#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "platform.h"

/* Large blocks are aligned to a huge page, which spares translation misses. */
enum { HUGE_PAGE = 2 << 20 };

void *cuvil_platform_allocate(size_t bytes) {
  void *memory = NULL;
  int huge = bytes >= 2 * (size_t)HUGE_PAGE;
  size_t alignment = huge ? (size_t)HUGE_PAGE : CUVIL_ARENA_ALIGN;
  if (posix_memalign(&memory, alignment, bytes ? bytes : 1)) return NULL;
#ifdef MADV_HUGEPAGE
  if (huge) madvise(memory, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
  return memory;
}

void cuvil_platform_free(void *memory) { free(memory); }

int64_t cuvil_platform_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t cuvil_platform_process(void) { return getpid(); }

int cuvil_platform_thread_start(cuvil_thread *thread, void *(*entry)(void *), void *argument) {
  sigset_t all, old;
  pthread_t handle;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int failed = pthread_create(&handle, NULL, entry, argument);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  if (!failed) thread->handle = (uint64_t)(uintptr_t)handle;
  return failed;
}

void cuvil_platform_thread_join(cuvil_thread *thread) {
  pthread_join((pthread_t)(uintptr_t)thread->handle, NULL);
}

void cuvil_platform_yield(void) { sched_yield(); }

const char *cuvil_platform_environment(const char *name) { return getenv(name); }

/* No fstat: older C libraries do not export it, and artefacts link against any. Of what is not a
 * regular file either the open, the seek or the map fails. */
cuvil_status cuvil_platform_map_file(const char *path, const void **base, size_t *bytes) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return CUVIL_IO_ERROR;
  void *mapped = MAP_FAILED;
  off_t end = lseek(file, 0, SEEK_END);
  if (end > 0 && (uint64_t)end <= SIZE_MAX / 2) {
    mapped = mmap(NULL, (size_t)end, PROT_READ, MAP_SHARED, file, 0);
  }
  close(file);
  if (mapped == MAP_FAILED) return CUVIL_IO_ERROR;
  *base = mapped;
  *bytes = (size_t)end;
  return CUVIL_OK;
}

void cuvil_platform_unmap_file(const void *base, size_t bytes) { munmap((void *)base, bytes); }
