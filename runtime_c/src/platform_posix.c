#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "platform.h"

/* Large blocks are aligned to a huge page, which spares translation misses. */
enum { HUGE_PAGE = 2 << 20, PRIVATE_WAIT = 128, PRIVATE_WAKE = 129 };

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

void cuvil_platform_wait(atomic_uint *word, unsigned expected) {
  syscall(SYS_futex, word, PRIVATE_WAIT, expected, NULL, NULL, 0);
}

void cuvil_platform_wake(atomic_uint *word, int count) {
  syscall(SYS_futex, word, PRIVATE_WAKE, count, NULL, NULL, 0);
}

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

typedef struct library_search {
  uintptr_t address;
  char *path;
  size_t room;
  int found;
} library_search;

static int holds(const struct dl_phdr_info *library, uintptr_t address) {
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &library->dlpi_phdr[i];
    if (segment->p_type == PT_LOAD &&
        address - (library->dlpi_addr + segment->p_vaddr) < segment->p_memsz) {
      return 1;
    }
  }
  return 0;
}

static int visit(struct dl_phdr_info *library, size_t size, void *user) {
  static const char program[] = "/proc/self/exe";
  library_search *search = user;
  (void)size;
  if (!holds(library, search->address)) return 0;
  if (library->dlpi_name[0] && strcmp(library->dlpi_name, program)) {
    size_t length = strlen(library->dlpi_name);
    if (length < search->room) {
      memcpy(search->path, library->dlpi_name, length + 1);
      search->found = 1;
    }
  } else { /* the program itself has no name, or this one where it is linked with musl's libc.a */
    ssize_t length = readlink(program, search->path, search->room - 1);
    if (length > 0) search->path[length] = 0;
    search->found = length > 0;
  }
  return 1;
}

int cuvil_platform_library_path(const void *address, char *path, size_t room) {
  library_search search = {(uintptr_t)address, path, room, 0};
  dl_iterate_phdr(visit, &search);
  return !search.found;
}
