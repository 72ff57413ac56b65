/* Checked reading of ELF64 files, shared by the object and the library loader. */
#ifndef CUVIL_ELF_IMAGE_H
#define CUVIL_ELF_IMAGE_H

#include <elf.h>

#include "cuvil/loader.h"
#include "internal.h"

typedef struct elf_image {
  const unsigned char *bytes;
  size_t count;
  Elf64_Ehdr header;
  const unsigned char *section_table;
  uint32_t section_count;
  Elf64_Shdr names; /* the section that holds the sections' names */
  const cuvil_report *report;
} elf_image;

/* What differs by processor. `at`: the bytes to patch, `place` their final address, `symbol` the
 * symbol's address, `got` the address of its slot of the global offset table, `stub` of a jump to
 * it. Returns NULL, or why the relocation cannot be applied. */
typedef struct elf_arch {
  uint16_t machine;
  /* How many bytes a relocation patches; 0: unknown type. */
  uint32_t (*width)(uint32_t type);
  int (*needs_got)(uint32_t type);
  const char *(*apply)(uint32_t type, unsigned char *at, uint64_t place, uint64_t symbol,
                       int64_t addend, uint64_t got, uint64_t stub);
  uint32_t stub_bytes;
  void (*write_stub)(unsigned char *at, uint64_t place, uint64_t got);
} elf_arch;

/* The processor this runtime is built for, or NULL when objects cannot be loaded on it. */
const elf_arch *cuvil_elf_host_arch(void);

struct cuvil_code {
  const cuvil_artefact *artefact;
  void *library; /* of dlopen */
  void *mapped;
  size_t mapped_bytes;
};

/* Checks the header and the section table. `type` is ET_REL or ET_DYN. */
cuvil_status cuvil_elf_open(elf_image *image, const void *bytes, size_t count, uint16_t type,
                            const cuvil_report *report);
/* Section `index`, whose bytes lie in the file (but for SHT_NOBITS); fails on a bad index. */
cuvil_status cuvil_elf_section(const elf_image *image, uint32_t index, Elf64_Shdr *section);
/* The zero-terminated text at `offset` of a string section, or NULL. */
const char *cuvil_elf_text(const elf_image *image, const Elf64_Shdr *strings, uint64_t offset);
/* The artefact's symbol by the note, or NULL. */
const char *cuvil_elf_note(const elf_image *image);
/* Symbol `index` of a symbol table and its name; fails on a bad index. */
cuvil_status cuvil_elf_symbol(const elf_image *image, const Elf64_Shdr *table, uint64_t index,
                              Elf64_Sym *symbol, const char **name);
/* The first section of `type`; fails when there is none. */
cuvil_status cuvil_elf_find(const elf_image *image, uint32_t type, Elf64_Shdr *section);
/* Index in `table` of the symbol that names the artefact (see cuvil_object_load). */
cuvil_status cuvil_elf_entry(const elf_image *image, const Elf64_Shdr *table, const char *wanted,
                             uint64_t *index);
/* Whether magic and version are there; the rest is checked by cuvil_model_open. */
cuvil_status cuvil_elf_check_artefact(const cuvil_artefact *artefact, const cuvil_report *report);

cuvil_status cuvil_elf_damaged(const elf_image *image, const char *what);

#endif
