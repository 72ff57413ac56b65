/* Loads an import-free relocatable object: lays its sections out as code, constants and data, each
 * on pages of their own, relocates them while writable, then takes the rights away (W^X). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "elf_image.h"
#include "platform.h"

enum { CODE, CONSTANTS, DATA, GROUPS, NOT_LOADED = GROUPS };
#define MAX_IMAGE ((uint64_t)1 << 31) /* relative references reach no farther */

typedef struct import {
  const char *name;
  void *(*address)(void);
} import;

static void *address_of_memcpy(void) { return (void *)(uintptr_t)memcpy; }
static void *address_of_memmove(void) { return (void *)(uintptr_t)memmove; }
static void *address_of_memset(void) { return (void *)(uintptr_t)memset; }
static void *address_of_memcmp(void) { return (void *)(uintptr_t)memcmp; }

static const import imports[] = {{"memcpy", address_of_memcpy},
                                 {"memmove", address_of_memmove},
                                 {"memset", address_of_memset},
                                 {"memcmp", address_of_memcmp}};
enum { IMPORTS = sizeof imports / sizeof imports[0] };

typedef struct placed {
  uint64_t offset; /* in the group, then in the whole image */
  uint64_t bytes;
  uint32_t group;
  uint32_t in_file;
} placed;

typedef struct object {
  elf_image image;
  const elf_arch *arch;
  Elf64_Shdr symbols;
  placed *sections;
  char *base;
  uint64_t size[GROUPS], start[GROUPS], total;
  uint64_t got;   /* offset in the image: a slot per import, then one per symbol */
  uint64_t stubs; /* of a jump per import, then one per other undefined symbol */
  cuvil_find_symbol find;
  void *state;
} object;

typedef struct target {
  uint64_t address, got, stub; /* stub: 0 when the symbol is in the object */
} target;

static uint64_t round_to(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

static uint32_t group_of(const Elf64_Shdr *section, const char *name) {
  if (!(section->sh_flags & SHF_ALLOC) || !strcmp(name, ".eh_frame")) return NOT_LOADED;
  if (section->sh_flags & SHF_EXECINSTR) return CODE;
  if (!(section->sh_flags & SHF_WRITE) || !strncmp(name, ".data.rel.ro", 12)) return CONSTANTS;
  return DATA;
}

static const char *refusal(const Elf64_Shdr *section) {
  uint64_t both = SHF_WRITE | SHF_EXECINSTR;
  if (section->sh_type == SHT_INIT_ARRAY || section->sh_type == SHT_FINI_ARRAY ||
      section->sh_type == SHT_PREINIT_ARRAY) {
    return "constructors are not supported";
  }
  if (section->sh_flags & SHF_TLS) return "thread-local data is not supported";
  if ((section->sh_flags & both) == both) return "a section both writable and executable";
  if (section->sh_addralign > 4096 || (section->sh_addralign & (section->sh_addralign - 1))) {
    return "section alignment";
  }
  return section->sh_size > MAX_IMAGE ? "section size" : NULL;
}

static uint64_t reserve(object *o, uint32_t group, uint64_t bytes, uint64_t alignment) {
  uint64_t at = round_to(o->size[group], alignment ? alignment : 1);
  o->size[group] = at + bytes;
  return at;
}

static cuvil_status place_section(object *o, uint32_t index) {
  Elf64_Shdr section;
  placed *p = &o->sections[index];
  p->group = NOT_LOADED;
  cuvil_status status = cuvil_elf_section(&o->image, index, &section);
  if (status) return status;
  if (!(section.sh_flags & SHF_ALLOC)) return CUVIL_OK;
  const char *name = cuvil_elf_text(&o->image, &o->image.names, section.sh_name);
  const char *reason = name ? refusal(&section) : "section name";
  if (reason) return cuvil_elf_damaged(&o->image, reason);
  p->group = group_of(&section, name);
  if (p->group == NOT_LOADED) return CUVIL_OK;
  p->bytes = section.sh_size;
  p->in_file = section.sh_type != SHT_NOBITS;
  p->offset = reserve(o, p->group, section.sh_size, section.sh_addralign);
  if (o->size[p->group] > MAX_IMAGE) return cuvil_elf_damaged(&o->image, "more than 2 GB");
  return CUVIL_OK;
}

/* How many of the first `end` symbols are undefined. */
static uint64_t undefined_before(const object *o, uint64_t end) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < end; i++) {
    Elf64_Sym symbol;
    const char *name;
    if (cuvil_elf_symbol(&o->image, &o->symbols, i, &symbol, &name)) continue;
    count += symbol.st_shndx == SHN_UNDEF;
  }
  return count;
}

static cuvil_status lay_out_groups(object *o) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint64_t symbols = o->symbols.sh_size / sizeof(Elf64_Sym), slots = IMPORTS + symbols;
  uint64_t stubs = IMPORTS + (o->find ? undefined_before(o, symbols) : 0);
  o->stubs = reserve(o, CODE, stubs * o->arch->stub_bytes, 16);
  o->got = reserve(o, CONSTANTS, slots * 8, 8);
  for (int group = 0; group < GROUPS; group++) {
    o->start[group] = o->total;
    o->total = round_to(o->total + o->size[group], page);
  }
  o->stubs += o->start[CODE];
  o->got += o->start[CONSTANTS];
  return o->total > MAX_IMAGE ? cuvil_elf_damaged(&o->image, "more than 2 GB") : CUVIL_OK;
}

static cuvil_status copy_sections(object *o) {
  void *base = mmap(NULL, o->total, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return cuvil_report_failure(o->image.report, CUVIL_OUT_OF_MEMORY, "no memory for %d bytes",
                                (int64_t)o->total);
  }
  o->base = base;
  for (uint32_t i = 0; i < o->image.section_count; i++) {
    placed *p = &o->sections[i];
    Elf64_Shdr section;
    if (p->group == NOT_LOADED) continue;
    p->offset += o->start[p->group];
    cuvil_elf_section(&o->image, i, &section);
    if (p->in_file) memcpy(o->base + p->offset, o->image.bytes + section.sh_offset, p->bytes);
  }
  return CUVIL_OK;
}

static uint64_t address(const object *o, uint64_t offset) {
  return (uint64_t)(uintptr_t)(o->base + offset);
}

/* What is outside of the image is reached by a slot that holds its address, and calls by a jump. */
static target outside(const object *o, void *code, uint64_t slot_number, uint64_t stub_number) {
  uint64_t value = (uint64_t)(uintptr_t)code;
  uint64_t slot = o->got + slot_number * 8, stub = o->stubs + stub_number * o->arch->stub_bytes;
  memcpy(o->base + slot, &value, sizeof value);
  o->arch->write_stub((unsigned char *)o->base + stub, address(o, stub), address(o, slot));
  return (target){value, address(o, slot), address(o, stub)};
}

static cuvil_status resolve_import(const object *o, uint64_t index, const char *name, target *t) {
  for (uint32_t i = 0; i < IMPORTS; i++) {
    if (strcmp(name, imports[i].name)) continue;
    *t = outside(o, imports[i].address(), i, i);
    return CUVIL_OK;
  }
  void *code = o->find && *name ? o->find(o->state, name) : NULL;
  if (code) {
    *t = outside(o, code, IMPORTS + index, IMPORTS + undefined_before(o, index));
    return CUVIL_OK;
  }
  return cuvil_report_failure(o->image.report, CUVIL_BAD_ARTEFACT, "the object needs symbol '%s'",
                              name);
}

static cuvil_status resolve(const object *o, uint64_t index, target *t) {
  Elf64_Sym symbol;
  const char *name;
  memset(t, 0, sizeof *t);
  cuvil_status status = cuvil_elf_symbol(&o->image, &o->symbols, index, &symbol, &name);
  if (status) return status;
  if (symbol.st_shndx == SHN_UNDEF) return resolve_import(o, index, name, t);
  unsigned kind = ELF64_ST_TYPE(symbol.st_info);
  if (symbol.st_shndx >= o->image.section_count || kind == STT_TLS || kind == STT_GNU_IFUNC) {
    return cuvil_elf_damaged(&o->image, "symbol kind");
  }
  const placed *p = &o->sections[symbol.st_shndx];
  if (p->group == NOT_LOADED || symbol.st_value > p->bytes) {
    return cuvil_elf_damaged(&o->image, "symbol value");
  }
  t->address = address(o, p->offset + symbol.st_value);
  t->got = address(o, o->got + (IMPORTS + index) * 8);
  memcpy((char *)(uintptr_t)t->got, &t->address, sizeof t->address);
  return CUVIL_OK;
}

static cuvil_status relocate(const object *o, const placed *p, const Elf64_Rela *entry) {
  uint32_t type = (uint32_t)ELF64_R_TYPE(entry->r_info);
  uint32_t width = o->arch->width(type);
  target t;
  if (!type) return CUVIL_OK; /* NONE, on every processor */
  if (!width) {
    return cuvil_report_failure(o->image.report, CUVIL_BAD_ARTEFACT,
                                "relocation type %d is not supported", (int64_t)type);
  }
  if (entry->r_offset > p->bytes || width > p->bytes - entry->r_offset) {
    return cuvil_elf_damaged(&o->image, "relocation offset");
  }
  cuvil_status status = resolve(o, ELF64_R_SYM(entry->r_info), &t);
  if (status) return status;
  uint64_t place = p->offset + entry->r_offset;
  const char *reason = o->arch->apply(type, (unsigned char *)o->base + place, address(o, place),
                                      t.address, entry->r_addend, t.got, t.stub);
  return reason ? cuvil_elf_damaged(&o->image, reason) : CUVIL_OK;
}

static cuvil_status relocate_section(const object *o, const Elf64_Shdr *section) {
  if (section->sh_info >= o->image.section_count) return CUVIL_OK;
  const placed *p = &o->sections[section->sh_info];
  if (p->group == NOT_LOADED) return CUVIL_OK;
  Elf64_Shdr symbols;
  cuvil_status status = cuvil_elf_section(&o->image, section->sh_link, &symbols);
  if (status) return status;
  if (section->sh_type == SHT_REL || !p->in_file || symbols.sh_type != SHT_SYMTAB ||
      symbols.sh_offset != o->symbols.sh_offset) {
    return cuvil_elf_damaged(&o->image, "relocation section");
  }
  const unsigned char *entries = o->image.bytes + section->sh_offset;
  for (uint64_t i = 0; !status && i < section->sh_size / sizeof(Elf64_Rela); i++) {
    Elf64_Rela entry;
    memcpy(&entry, entries + i * sizeof entry, sizeof entry);
    status = relocate(o, p, &entry);
  }
  return status;
}

static cuvil_status relocate_all(object *o) {
  cuvil_status status = CUVIL_OK;
  for (uint32_t i = 0; !status && i < o->image.section_count; i++) {
    Elf64_Shdr section;
    status = cuvil_elf_section(&o->image, i, &section);
    if (!status && (section.sh_type == SHT_RELA || section.sh_type == SHT_REL)) {
      status = relocate_section(o, &section);
    }
  }
  return status;
}

/* Finds what a caller of this file is after; `result` depends on the finder. */
typedef cuvil_status (*finder)(const object *o, const char *wanted, const void **result);

static cuvil_status find_symbol(const object *o, const char *wanted, Elf64_Sym *symbol, target *t) {
  uint64_t index;
  const char *name;
  cuvil_status status = cuvil_elf_entry(&o->image, &o->symbols, wanted, &index);
  if (!status) status = cuvil_elf_symbol(&o->image, &o->symbols, index, symbol, &name);
  return status ? status : resolve(o, index, t);
}

static cuvil_status find_artefact(const object *o, const char *wanted, const void **artefact) {
  Elf64_Sym symbol;
  target t;
  cuvil_status status = find_symbol(o, wanted, &symbol, &t);
  if (status) return status;
  const placed *p = &o->sections[symbol.st_shndx];
  uint64_t bytes = p->bytes - symbol.st_value;
  const cuvil_artefact *found = (const cuvil_artefact *)(uintptr_t)t.address;
  if (p->group == CODE || t.address % _Alignof(cuvil_artefact) ||
      bytes < offsetof(cuvil_artefact, ports) ||
      (found->has_ports && bytes < sizeof(cuvil_artefact))) {
    return cuvil_elf_damaged(&o->image, "artefact symbol");
  }
  *artefact = found;
  return cuvil_elf_check_artefact(found, o->image.report);
}

static cuvil_status find_function(const object *o, const char *wanted, const void **function) {
  Elf64_Sym symbol;
  target t;
  cuvil_status status = find_symbol(o, wanted, &symbol, &t);
  if (status) return status;
  if (o->sections[symbol.st_shndx].group != CODE) {
    return cuvil_elf_damaged(&o->image, "function symbol");
  }
  *function = (const void *)(uintptr_t)t.address;
  return CUVIL_OK;
}

static cuvil_status protect(const object *o) {
  static const int rights[GROUPS] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};
  for (int group = 0; group < GROUPS; group++) {
    uint64_t end = group + 1 < GROUPS ? o->start[group + 1] : o->total;
    if (end > o->start[group] &&
        mprotect(o->base + o->start[group], end - o->start[group], rights[group])) {
      return cuvil_report_failure(o->image.report, CUVIL_IO_ERROR,
                                  "the system refuses to make memory executable");
    }
  }
  __builtin___clear_cache(o->base, o->base + o->size[CODE]);
  return CUVIL_OK;
}

static cuvil_status load(object *o, const char *wanted, finder find, const void **result) {
  cuvil_status status = cuvil_elf_find(&o->image, SHT_SYMTAB, &o->symbols);
  for (uint32_t i = 0; !status && i < o->image.section_count; i++) status = place_section(o, i);
  if (!status) status = lay_out_groups(o);
  if (!status) status = copy_sections(o);
  if (!status) status = relocate_all(o);
  if (!status) status = find(o, wanted, result);
  return status ? status : protect(o);
}

/* The bytes need no alignment: tables are copied out entry by entry. */
static cuvil_status load_bytes(object *o, const void *bytes, size_t count, const char *symbol,
                               finder find, const void **found, cuvil_code **result) {
  *result = NULL;
  cuvil_status status = cuvil_elf_open(&o->image, bytes, count, ET_REL, o->image.report);
  if (status) return status;
  cuvil_code *code = cuvil_platform_allocate(sizeof *code);
  o->sections = cuvil_platform_allocate(o->image.section_count * sizeof *o->sections);
  status = code && o->sections ? load(o, symbol, find, found) : CUVIL_OUT_OF_MEMORY;
  cuvil_platform_free(o->sections);
  if (status) {
    if (o->base) munmap(o->base, o->total);
    cuvil_platform_free(code);
    return status;
  }
  *code = (cuvil_code){.mapped = o->base, .mapped_bytes = o->total};
  *result = code;
  return CUVIL_OK;
}

cuvil_status cuvil_object_load(const void *bytes, size_t count, const char *symbol,
                               cuvil_find_symbol find, void *state, cuvil_code **result,
                               char *message, size_t room) {
  cuvil_report report = {message, room};
  object o = {.arch = cuvil_elf_host_arch(), .find = find, .state = state};
  const void *artefact = NULL;
  o.image.report = &report;
  cuvil_status status = load_bytes(&o, bytes, count, symbol, find_artefact, &artefact, result);
  if (!status) (*result)->artefact = artefact;
  return status;
}

cuvil_status cuvil_function_load(const void *bytes, size_t count, const char *symbol,
                                 cuvil_find_symbol find, void *state, cuvil_code **result,
                                 const void **function, char *message, size_t room) {
  cuvil_report report = {message, room};
  object o = {.arch = cuvil_elf_host_arch(), .find = find, .state = state};
  o.image.report = &report;
  return load_bytes(&o, bytes, count, symbol, find_function, function, result);
}
