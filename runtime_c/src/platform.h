/* The seam to the operating system: all that the runtime needs of it. platform_posix.c is what
 * POSIX hosts share, files that end in _linux.c and _macos.c are the rest. */
#ifndef CUVIL_PLATFORM_H
#define CUVIL_PLATFORM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "cuvil/abi.h"

/* `bytes` of memory aligned to CUVIL_ARENA_ALIGN or more, not cleared; NULL when there is none. */
void *cuvil_platform_allocate(size_t bytes);
void cuvil_platform_free(void *memory);

/* Monotonic time in nanoseconds. */
int64_t cuvil_platform_now(void);
int64_t cuvil_platform_process(void);

/* A word that is 0 at first, and again in a fork's child; NULL where the system has no such. */
atomic_int *cuvil_platform_fork_mark(void);
void cuvil_platform_fork_mark_free(atomic_int *mark);

typedef struct cuvil_thread {
  uint64_t handle;
} cuvil_thread;
/* Starts a thread with all signals blocked; non-zero on failure. */
int cuvil_platform_thread_start(cuvil_thread *thread, void *(*entry)(void *), void *argument);
void cuvil_platform_thread_join(cuvil_thread *thread);
void cuvil_platform_yield(void);

/* The cpu that the caller runs on; -1 when unknown. */
int32_t cuvil_platform_cpu(void);
/* The caller's name to the system. */
int32_t cuvil_platform_thread_id(void);
/* Lets one of `threads` run on the cpus that the caller may use but `cpu`, where the caller runs,
 * if there is another: those whose memory is near, where they are enough. */
void cuvil_platform_place(int32_t thread, int32_t cpu, int32_t threads);

/* Sleeps while *word == expected, until a wake; may return early. */
void cuvil_platform_wait(atomic_uint *word, unsigned expected);
/* Wakes up to `count` threads that wait on `word`. */
void cuvil_platform_wake(atomic_uint *word, int count);

/* Cpus this process may use, by affinity and by the control group's quota; at least 1. */
int32_t cuvil_platform_cpu_count(void);
/* The variable's text, or NULL. */
const char *cuvil_platform_environment(const char *name);

/* Maps a regular file read-only and shared; CUVIL_IO_ERROR when it cannot be. */
cuvil_status cuvil_platform_map_file(const char *path, const void **base, size_t *bytes);
void cuvil_platform_unmap_file(const void *base, size_t bytes);
/* Path of the library or program that `address` belongs to; non-zero when unknown or too long. */
int cuvil_platform_library_path(const void *address, char *path, size_t room);

#endif
