/* What POSIX does not have, on Linux: sleeping on a word, and which file an address is from. */
#ifdef __linux__

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform.h"

enum { PRIVATE_WAIT = 128, PRIVATE_WAKE = 129 };

void cuvil_platform_wait(atomic_uint *word, unsigned expected) {
  syscall(SYS_futex, word, PRIVATE_WAIT, expected, NULL, NULL, 0);
}

void cuvil_platform_wake(atomic_uint *word, int count) {
  syscall(SYS_futex, word, PRIVATE_WAKE, count, NULL, NULL, 0);
}

atomic_int *cuvil_platform_fork_mark(void) {
#ifdef MADV_WIPEONFORK
  void *page =
      mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
  if (!madvise(page, sizeof(atomic_int), MADV_WIPEONFORK)) return page;
  munmap(page, sizeof(atomic_int));
#endif
  return NULL;
}

void cuvil_platform_fork_mark_free(atomic_int *mark) {
  if (mark) munmap(mark, sizeof *mark);
}

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

#endif
