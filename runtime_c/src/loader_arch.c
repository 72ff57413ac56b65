/* Relocations by processor. A new processor is one elf_arch and its line in cuvil_elf_host_arch. */
#include <string.h>

#include "elf_image.h"

#if defined(__x86_64__)

#ifndef R_X86_64_GOTPCRELX
#define R_X86_64_GOTPCRELX 41
#define R_X86_64_REX_GOTPCRELX 42
#endif

static uint32_t x86_64_width(uint32_t type) {
  switch (type) {
    case R_X86_64_64:
    case R_X86_64_PC64:
      return 8;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
      return 4;
    default:
      return 0;
  }
}

static int x86_64_needs_got(uint32_t type) {
  return type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
}

static const char *put_relative(unsigned char *at, uint64_t target, uint64_t place) {
  int64_t distance = (int64_t)(target - place);
  int32_t narrow = (int32_t)distance;
  if (narrow != distance) return "a distance of more than 2 GB";
  memcpy(at, &narrow, sizeof narrow);
  return NULL;
}

static const char *x86_64_apply(uint32_t type, unsigned char *at, uint64_t place, uint64_t symbol,
                                int64_t addend, uint64_t got, uint64_t stub) {
  uint64_t value = symbol + (uint64_t)addend;
  if (x86_64_needs_got(type)) return put_relative(at, got + (uint64_t)addend, place);
  if (x86_64_width(type) == 4) {
    return put_relative(at, (stub ? stub : symbol) + (uint64_t)addend, place);
  }
  if (type == R_X86_64_PC64) value -= place;
  memcpy(at, &value, sizeof value);
  return NULL;
}

/* jmp *slot(%rip), padded to eight bytes with int3. */
static void x86_64_write_stub(unsigned char *at, uint64_t place, uint64_t got) {
  static const unsigned char jump[8] = {0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc};
  memcpy(at, jump, sizeof jump);
  put_relative(at + 2, got, place + 6);
}

static const elf_arch host_arch = {EM_X86_64, x86_64_width,     x86_64_needs_got, x86_64_apply,
                                   8,         x86_64_write_stub};

const elf_arch *cuvil_elf_host_arch(void) { return &host_arch; }

#else

const elf_arch *cuvil_elf_host_arch(void) { return NULL; }

#endif
