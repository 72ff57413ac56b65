/* The one call of targets without an operating system: in the caller's memory, however it lies. */
#include "cuvil/embedded.h"

#include <stdint.h>

#include "check.h"
#include "models.h"

enum { ROWS = 5, ARENA = ROWS * 3 * sizeof(float) };
enum { NEEDED = CUVIL_ARENA_ALIGN * 2 + ARENA }; /* dim slots, scratch and arena */

static _Alignas(CUVIL_ARENA_ALIGN) unsigned char memory[NEEDED + 2 * CUVIL_ARENA_ALIGN];
static float x[ROWS * 3], y[ROWS * 3], z[ROWS * 3];
static int64_t shape[2];

static cuvil_status add_in(void *at, size_t bytes, int64_t rows) {
  int64_t extents[] = {rows, -1};
  void *data[] = {x, y, z, shape};
  memset(z, 0, sizeof z);
  return cuvil_embedded_run(&add_artefact, at, bytes, extents, data);
}

static void computes_in_any_memory(void) {
  for (int shift = 0; shift < (int)CUVIL_ARENA_ALIGN; shift++) {
    memset(memory, 0xa5, sizeof memory);
    CHECK(add_in(memory + shift, NEEDED + CUVIL_ARENA_ALIGN - 1, ROWS) == CUVIL_OK);
    for (int i = 0; i < ROWS * 3; i++) CHECK(z[i] == (float)(11 * i));
    CHECK(shape[0] == ROWS && shape[1] == 3);
    for (size_t i = shift + NEEDED + CUVIL_ARENA_ALIGN - 1; i < sizeof memory; i++) {
      CHECK(memory[i] == 0xa5);
    }
  }
}

static void refuses_what_does_not_fit(void) {
  for (size_t bytes = 0; bytes < NEEDED; bytes++) {
    CHECK(add_in(memory, bytes, ROWS) == CUVIL_NEED_MEMORY);
  }
  CHECK(add_in(memory, NEEDED, ROWS) == CUVIL_OK);
  CHECK(add_in(NULL, NEEDED, ROWS) == CUVIL_NEED_MEMORY);
  CHECK(add_in(memory, sizeof memory, 0) == CUVIL_SHAPE_MISMATCH); /* below the bound */
  CHECK(add_in(memory, sizeof memory, 100001) == CUVIL_SHAPE_MISMATCH);
  CHECK(add_in(memory, sizeof memory, 13) == CUVIL_SHAPE_MISMATCH); /* a condition of the model */
  CHECK(add_in(memory, sizeof memory, 100000) == CUVIL_NEED_MEMORY);
}

static void refuses_data(void) {
  int64_t extents[] = {1, -1};
  void *missing[] = {x, NULL, z, NULL}, *crooked[] = {x, y, (char *)z + 1, NULL};
  void *good[] = {x, y, z, NULL};
  CHECK(cuvil_embedded_run(&add_artefact, memory, sizeof memory, extents, missing) ==
        CUVIL_INVALID_ARGUMENT);
  CHECK(cuvil_embedded_run(&add_artefact, memory, sizeof memory, extents, crooked) ==
        CUVIL_INVALID_ARGUMENT);
  CHECK(cuvil_embedded_run(&add_artefact, memory, sizeof memory, extents, good) == CUVIL_OK);
}

static void tells_what_a_kernel_met(void) {
  y[0] = -666.0f;
  CHECK(add_in(memory, sizeof memory, 1) == CUVIL_INDEX_OUT_OF_RANGE);
}

int main(void) {
  for (int i = 0; i < ROWS * 3; i++) x[i] = (float)i, y[i] = (float)(10 * i);
  computes_in_any_memory();
  refuses_what_does_not_fit();
  refuses_data();
  tells_what_a_kernel_met();
  return check_result();
}
