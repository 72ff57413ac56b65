#include "elf_image.h"

#include <string.h>

enum { MAX_TEXT = 1 << 16 };

cuvil_status cuvil_elf_damaged(const elf_image *image, const char *what) {
  return cuvil_report_failure(image->report, CUVIL_BAD_ARTEFACT, "damaged ELF file: %s", what);
}

static int lies_within(uint64_t offset, uint64_t bytes, uint64_t count) {
  return offset <= count && bytes <= count - offset;
}

static cuvil_status check_ident(const elf_image *image, uint16_t type) {
  const unsigned char *ident = image->header.e_ident;
  const elf_arch *arch = cuvil_elf_host_arch();
  if (!arch && type == ET_REL) {
    return cuvil_report_failure(image->report, CUVIL_UNSUPPORTED_CPU,
                                "this processor has no object loader: link a shared library");
  }
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB ||
      (arch && image->header.e_machine != arch->machine)) {
    return cuvil_report_failure(image->report, CUVIL_BAD_ARTEFACT,
                                "compiled for another processor (ELF machine %d)",
                                (int64_t)image->header.e_machine);
  }
  if (image->header.e_type != type) {
    return cuvil_report_failure(image->report, CUVIL_BAD_ARTEFACT, "not %s",
                                type == ET_REL ? "a relocatable object" : "a shared library");
  }
  return CUVIL_OK;
}

cuvil_status cuvil_elf_open(elf_image *image, const void *bytes, size_t count, uint16_t type,
                            const cuvil_report *report) {
  memset(image, 0, sizeof *image);
  image->bytes = bytes;
  image->count = count;
  image->report = report;
  Elf64_Ehdr *header = &image->header;
  if (count < sizeof *header || memcmp(bytes, ELFMAG, SELFMAG)) {
    return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "not an ELF file");
  }
  memcpy(header, bytes, sizeof *header);
  cuvil_status status = check_ident(image, type);
  if (status) return status;
  if (header->e_shentsize != sizeof(Elf64_Shdr) ||
      !lies_within(header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr), count)) {
    return cuvil_elf_damaged(image, "section table");
  }
  image->section_table = image->bytes + header->e_shoff;
  image->section_count = header->e_shnum;
  return cuvil_elf_section(image, header->e_shstrndx, &image->names);
}

cuvil_status cuvil_elf_section(const elf_image *image, uint32_t index, Elf64_Shdr *section) {
  if (index >= image->section_count) return cuvil_elf_damaged(image, "section index");
  memcpy(section, image->section_table + (size_t)index * sizeof *section, sizeof *section);
  if (section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
      !lies_within(section->sh_offset, section->sh_size, image->count)) {
    return cuvil_elf_damaged(image, "section offset");
  }
  return CUVIL_OK;
}

const char *cuvil_elf_text(const elf_image *image, const Elf64_Shdr *strings, uint64_t offset) {
  if (strings->sh_type != SHT_STRTAB || offset >= strings->sh_size) return NULL;
  const char *text = (const char *)image->bytes + strings->sh_offset + offset;
  uint64_t rest = strings->sh_size - offset;
  return memchr(text, 0, rest < MAX_TEXT ? rest : MAX_TEXT) ? text : NULL;
}

cuvil_status cuvil_elf_find(const elf_image *image, uint32_t type, Elf64_Shdr *section) {
  for (uint32_t i = 0; i < image->section_count; i++) {
    cuvil_status status = cuvil_elf_section(image, i, section);
    if (status) return status;
    if (section->sh_type == type) return CUVIL_OK;
  }
  return cuvil_elf_damaged(image, "no symbol table");
}

static uint64_t padded(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

/* A note is name size, text size, type, name, text; name and text are padded to four bytes. */
static const char *note_text(const unsigned char *note, uint64_t left) {
  static const char owner[] = CUVIL_NOTE_NAME;
  uint32_t words[3];
  while (left >= sizeof words) {
    memcpy(words, note, sizeof words);
    uint64_t start = sizeof words + padded(words[0]), end = start + padded(words[1]);
    if (start + words[1] > left) return NULL;
    if (words[0] == sizeof owner && words[2] == CUVIL_NOTE_ENTRY &&
        !memcmp(note + sizeof words, owner, sizeof owner)) {
      return memchr(note + start, 0, words[1]) ? (const char *)note + start : NULL;
    }
    if (end >= left) return NULL;
    note += end;
    left -= end;
  }
  return NULL;
}

const char *cuvil_elf_note(const elf_image *image) {
  for (uint32_t i = 0; i < image->section_count; i++) {
    Elf64_Shdr section;
    if (cuvil_elf_section(image, i, &section)) return NULL;
    const char *name = cuvil_elf_text(image, &image->names, section.sh_name);
    if (section.sh_type == SHT_NOBITS || !name || strcmp(name, ".note.cuvil")) continue;
    return note_text(image->bytes + section.sh_offset, section.sh_size);
  }
  return NULL;
}

cuvil_status cuvil_elf_symbol(const elf_image *image, const Elf64_Shdr *table, uint64_t index,
                              Elf64_Sym *symbol, const char **name) {
  Elf64_Shdr strings;
  if (index >= table->sh_size / sizeof *symbol) return cuvil_elf_damaged(image, "symbol index");
  memcpy(symbol, image->bytes + table->sh_offset + index * sizeof *symbol, sizeof *symbol);
  cuvil_status status = cuvil_elf_section(image, table->sh_link, &strings);
  if (status) return status;
  *name = cuvil_elf_text(image, &strings, symbol->st_name);
  return *name ? CUVIL_OK : cuvil_elf_damaged(image, "symbol name");
}

static int names_artefact(const char *name) {
  static const char head[] = "cuvil_artefact_", tail[] = "_artefact";
  size_t length = strlen(name);
  return !strncmp(name, head, sizeof head - 1) ||
         (length >= sizeof tail && !strcmp(name + length - (sizeof tail - 1), tail));
}

cuvil_status cuvil_elf_entry(const elf_image *image, const Elf64_Shdr *table, const char *wanted,
                             uint64_t *index) {
  uint64_t count = table->sh_size / sizeof(Elf64_Sym), found = 0;
  if (!wanted) wanted = cuvil_elf_note(image);
  for (uint64_t i = 1; i < count; i++) {
    Elf64_Sym symbol;
    const char *name;
    cuvil_status status = cuvil_elf_symbol(image, table, i, &symbol, &name);
    if (status) return status;
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_LOCAL) continue;
    if (wanted ? strcmp(name, wanted) : !names_artefact(name)) continue;
    if (found) {
      return cuvil_report_failure(image->report, CUVIL_BAD_ARTEFACT,
                                  "it holds several models: name one");
    }
    found = i;
  }
  *index = found;
  if (found) return CUVIL_OK;
  return cuvil_report_failure(image->report, CUVIL_BAD_ARTEFACT, "it holds no Cuvil model%s%s",
                              wanted ? " named " : "", wanted ? wanted : "");
}

cuvil_status cuvil_elf_check_artefact(const cuvil_artefact *artefact, const cuvil_report *report) {
  if (artefact->magic == CUVIL_ARTEFACT_MAGIC) return CUVIL_OK;
  return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "its artefact symbol holds none");
}
