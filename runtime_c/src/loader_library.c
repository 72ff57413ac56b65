/* Shared libraries: the note in the file says which symbol dlopen's library is asked for. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "elf_image.h"
#include "platform.h"

enum { NAME_ROOM = 512 };

static cuvil_status entry_name(const char *path, const char *wanted, char *name,
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
  if (!status) strcpy(name, found);
  cuvil_platform_unmap_file(bytes, count);
  return status;
}

static cuvil_status open_library(const char *path, const char *name, cuvil_code *code,
                                 const cuvil_report *report) {
  char *full = realpath(path, NULL); /* a bare name would be searched for elsewhere */
  code->library = full ? dlopen(full, RTLD_NOW | RTLD_LOCAL) : NULL;
  free(full);
  if (!code->library) {
    return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "cannot be loaded: %s", dlerror());
  }
  code->artefact = dlsym(code->library, name);
  if (!code->artefact) {
    return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "it lacks symbol '%s'", name);
  }
  return cuvil_elf_check_artefact(code->artefact, report);
}

cuvil_status cuvil_library_load(const char *path, const char *symbol, cuvil_code **result,
                                char *message, size_t room) {
  cuvil_report report = {message, room};
  char name[NAME_ROOM];
  *result = NULL;
  cuvil_status status = entry_name(path, symbol, name, &report);
  if (status) return status;
  cuvil_code *code = cuvil_platform_allocate(sizeof *code);
  if (!code) return CUVIL_OUT_OF_MEMORY;
  memset(code, 0, sizeof *code);
  status = open_library(path, name, code, &report);
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
