/* The object loader; argv[1] is model_add.c as an object. Damaged objects must be refused or load,
 * never crash: run under the address sanitizer. */
#include <elf.h>
#include <stdlib.h>

#include "check.h"
#include "cuvil/loader.h"

static unsigned char *bytes;
static size_t count;
static char message[300];

static int read_object(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  bytes = malloc(1 << 20);
  count = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return count > 0;
}

static cuvil_status load(const void *data, size_t size, const char *symbol, cuvil_code **code) {
  return cuvil_object_load(data, size, symbol, NULL, NULL, code, message, sizeof message);
}

/* Whatever a damaged object asks for is there. */
static void *find_any(void *state, const char *name) {
  ++*(unsigned *)state;
  return (void *)(uintptr_t)(*name ? puts : NULL);
}

static void test_runs(const char *symbol) {
  float x[] = {1, 2, 3}, y[] = {10, 20, 30}, z[3];
  int64_t shape[] = {1, 3};
  cuvil_value in[] = {cuvil_tensor(CUVIL_F32, x, 2, shape), cuvil_tensor(CUVIL_F32, y, 2, shape)};
  cuvil_value out = cuvil_output(z, sizeof z);
  cuvil_code *code = NULL;
  cuvil_model *model;
  cuvil_context *context;
  CHECK(load(bytes, count, symbol, &code) == CUVIL_OK);
  if (!code) return;
  CHECK(cuvil_model_open(cuvil_code_artefact(code), NULL, &model) == CUVIL_OK);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  CHECK(cuvil_run(model, context, in, &out) == CUVIL_OK && z[0] == 11 && z[2] == 33);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
  cuvil_code_unload(code);
}

static void test_wrong_files(const char *program) {
  cuvil_code *code;
  CHECK(load(bytes, count, "sub_artefact", &code) == CUVIL_BAD_ARTEFACT && !code);
  CHECK_TEXT(message, "it holds no Cuvil model named sub_artefact");
  CHECK(load("no ELF", 6, NULL, &code) == CUVIL_BAD_ARTEFACT);
  CHECK_TEXT(message, "not an ELF file");
  unsigned char *copy = malloc(count);
  memcpy(copy, bytes, count);
  ((Elf64_Ehdr *)(void *)copy)->e_machine = EM_SPARC;
  CHECK(load(copy, count, NULL, &code) == CUVIL_BAD_ARTEFACT);
  CHECK_TEXT(message, "compiled for another processor");
  free(copy);
  CHECK(cuvil_library_load("/no/such/file", NULL, &code, message, sizeof message) ==
        CUVIL_IO_ERROR);
  CHECK(cuvil_library_load(program, NULL, &code, message, sizeof message) == CUVIL_BAD_ARTEFACT);
}

/* In exactly sized memory, so that a read past the end is seen. */
static void try_prefix(size_t size) {
  cuvil_code *code;
  unsigned char *copy = malloc(size ? size : 1);
  memcpy(copy, bytes, size);
  load(copy, size, NULL, &code);
  cuvil_code_unload(code);
  free(copy);
}

static unsigned next_random(unsigned *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

static void try_mutation(unsigned seed) {
  static const unsigned char extremes[] = {0, 1, 0x7f, 0x80, 0xff};
  cuvil_code *code;
  unsigned asked = 0;
  unsigned char *copy = malloc(count);
  memcpy(copy, bytes, count);
  for (unsigned i = 0; i <= seed % 8; i++) {
    size_t at = next_random(&seed) % count;
    unsigned value = next_random(&seed);
    copy[at] = value % 2 ? extremes[value / 2 % sizeof extremes] : (unsigned char)(value / 2);
  }
  cuvil_object_load(copy, count, NULL, find_any, &asked, &code, message, sizeof message);
  cuvil_code_unload(code);
  free(copy);
}

/* Every byte of the header and of the section table, by each extreme. */
static void try_tables(void) {
  Elf64_Ehdr header;
  memcpy(&header, bytes, sizeof header);
  for (size_t at = 0; at < count; at++) {
    if (at == sizeof header) at = header.e_shoff;
    for (int value = 0; value < 256; value += 51) {
      unsigned char kept = bytes[at];
      cuvil_code *code;
      bytes[at] = (unsigned char)value;
      load(bytes, count, NULL, &code);
      cuvil_code_unload(code);
      bytes[at] = kept;
    }
  }
}

int main(int argc, char **argv) {
  if (argc < 2 || !read_object(argv[1])) {
    puts("no object given");
    return 1;
  }
  test_runs(NULL);
  test_runs("add_artefact");
  test_wrong_files(argv[0]);
  for (size_t size = 0; size < count; size += 7) try_prefix(size);
  for (unsigned seed = 0; seed < 20000; seed++) try_mutation(seed);
  try_tables();
  test_runs(NULL);
  free(bytes);
  return check_result();
}
