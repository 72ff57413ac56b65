/* Shared libraries: the note in the file says which symbol dlopen's library is asked for. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "elf_image.h"
#include "platform.h"

enum { NAME_ROOM = 512, MOST_SPELLINGS = 1000 };

/* What the file says of its artefact: the symbol, and which build it is. */
typedef struct entry {
  char name[NAME_ROOM];
  unsigned char build_id[sizeof(((cuvil_artefact *)NULL)->build_id)];
} entry;

static cuvil_status read_build_id(const elf_image *image, const Elf64_Sym *symbol, entry *found) {
  Elf64_Shdr section;
  cuvil_status status = cuvil_elf_section(image, symbol->st_shndx, &section);
  if (status) return status;
  uint64_t at = symbol->st_value - section.sh_addr + offsetof(cuvil_artefact, build_id);
  uint64_t size = section.sh_type == SHT_NOBITS ? 0 : section.sh_size;
  if (symbol->st_value < section.sh_addr || at > size || size - at < sizeof found->build_id)
    return cuvil_elf_damaged(image, "the artefact's place");
  memcpy(found->build_id, image->bytes + section.sh_offset + at, sizeof found->build_id);
  return CUVIL_OK;
}

static cuvil_status read_entry(const char *path, const char *wanted, entry *result,
                               const cuvil_report *report) {
  const void *bytes;
  size_t count;
  cuvil_status status = cuvil_platform_map_file(path, &bytes, &count);
  if (status) return cuvil_report_failure(report, status, "'%s' cannot be read", path);
  elf_image image;
  Elf64_Shdr table;
  Elf64_Sym symbol;
  uint64_t index;
  const char *found = NULL;
  status = cuvil_elf_open(&image, bytes, count, ET_DYN, report);
  if (!status) status = cuvil_elf_find(&image, SHT_DYNSYM, &table);
  if (!status) status = cuvil_elf_entry(&image, &table, wanted, &index);
  if (!status) status = cuvil_elf_symbol(&image, &table, index, &symbol, &found);
  if (!status && strlen(found) >= NAME_ROOM) status = cuvil_elf_damaged(&image, "symbol name");
  if (!status) status = read_build_id(&image, &symbol, result);
  if (!status) strcpy(result->name, found);
  cuvil_platform_unmap_file(bytes, count);
  return status;
}

static cuvil_status open_spelled(const char *path, const char *name, cuvil_code *code,
                                 const cuvil_report *report) {
  code->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!code->library)
    return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "cannot be loaded: %s", dlerror());
  code->artefact = dlsym(code->library, name);
  if (!code->artefact)
    return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "it lacks symbol '%s'", name);
  return cuvil_elf_check_artefact(code->artefact, report);
}

/* Compiled libraries stay in the process, and the system's loader gives the one that it knows by a
 * path, whatever file lies there by now. Each "./" more spells the path in a way new to it. */
static cuvil_status open_library(const char *path, const entry *wanted, cuvil_code *code,
                                 const cuvil_report *report) {
  char full[PATH_MAX]; /* a bare name would be searched for elsewhere */
  char spelled[PATH_MAX + 2 * MOST_SPELLINGS];
  if (!realpath(path, full))
    return cuvil_report_failure(report, CUVIL_IO_ERROR, "'%s' cannot be read", path);
  size_t folder = (size_t)(strrchr(full, '/') + 1 - full);
  memcpy(spelled, full, folder);
  for (size_t extra = 0; extra < MOST_SPELLINGS; extra++) {
    strcpy(spelled + folder + 2 * extra, full + folder);
    cuvil_status status = open_spelled(spelled, wanted->name, code, report);
    if (status) return status;
    if (!memcmp(code->artefact->build_id, wanted->build_id, sizeof wanted->build_id))
      return CUVIL_OK;
    dlclose(code->library);
    code->library = NULL;
    memcpy(spelled + folder + 2 * extra, "./", 2);
  }
  return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT,
                              "'%s' was written over while it was loaded: remove a library "
                              "before a new one takes its name",
                              path);
}

cuvil_status cuvil_library_load(const char *path, const char *symbol, cuvil_code **result,
                                char *message, size_t room) {
  cuvil_report report = {message, room};
  entry found;
  *result = NULL;
  cuvil_status status = read_entry(path, symbol, &found, &report);
  if (status) return status;
  cuvil_code *code = cuvil_platform_allocate(sizeof *code);
  if (!code) return CUVIL_OUT_OF_MEMORY;
  memset(code, 0, sizeof *code);
  status = open_library(path, &found, code, &report);
  if (status) {
    cuvil_code_unload(code);
  } else {
    *result = code;
  }
  return status;
}

const cuvil_artefact *cuvil_code_artefact(const cuvil_code *code) { return code->artefact; }

void cuvil_code_unload(cuvil_code *code) {
  if (!code) return;
  if (code->library) dlclose(code->library);
  if (code->mapped) munmap(code->mapped, code->mapped_bytes);
  cuvil_platform_free(code);
}
