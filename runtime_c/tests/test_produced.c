/* Outputs whose extent only the run knows, without a bound. */
#include "check.h"
#include "cuvil/simple.h"
#include "models.h"

static const float x[] = {1, -2, 3, -4, 5, 6};

static cuvil_value input(int64_t count) {
  return cuvil_tensor(CUVIL_F32, x, 1, (int64_t[]){count});
}

/* The one-call form: room for some, and again with room for all that were found. */
static void test_one_call(void) {
  static cuvil_simple simple;
  float found[4] = {0};
  int64_t shape = -1, extents[2] = {6, 2};
  void *data[] = {(void *)x, found, &shape};
  CHECK(cuvil_simple_run(&positive_artefact, &simple, extents, data) == CUVIL_NEED_MEMORY);
  CHECK(shape == 4 && found[0] == 0);
  extents[1] = shape;
  CHECK(cuvil_simple_run(&positive_artefact, &simple, extents, data) == CUVIL_OK);
  CHECK(shape == 4 && found[3] == 6.0f);
  extents[1] = 0, data[1] = NULL; /* only asks how many */
  CHECK(cuvil_simple_run(&positive_artefact, &simple, extents, data) == CUVIL_NEED_MEMORY);
  CHECK(shape == 4);
  extents[0] = 0;
  CHECK(cuvil_simple_run(&positive_artefact, &simple, extents, data) == CUVIL_OK && shape == 0);
}

int main(void) {
  test_one_call();
  cuvil_model *model;
  cuvil_context *context;
  CHECK(cuvil_model_open(&positive_artefact, NULL, &model) == CUVIL_OK);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  cuvil_value in = input(6);

  /* the runtime's memory, valid until the next run; the same value may be passed again */
  cuvil_value out = cuvil_output(NULL, 0);
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_OK);
  CHECK(out.rank == 1 && out.shape[0] == 4 && out.borrowed && out.capacity == 16);
  CHECK(((float *)out.data)[2] == 5.0f);
  in = input(2);
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_OK);
  CHECK(out.shape[0] == 1 && out.borrowed && ((float *)out.data)[0] == 1.0f);

  /* the caller's memory */
  float buffer[4] = {0};
  in = input(6);
  out = cuvil_output(buffer, 8);
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_NEED_MEMORY && out.capacity == 16);
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_OK && buffer[3] == 6.0f);

  /* nothing found, nothing given */
  in = cuvil_tensor(CUVIL_F32, x + 1, 1, (int64_t[]){1});
  out = cuvil_output(NULL, 0);
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_OK && out.shape[0] == 0);
  in = cuvil_tensor(CUVIL_F32, NULL, 1, (int64_t[]){0});
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_OK && out.shape[0] == 0);

  out = cuvil_output(NULL, 0);
  CHECK(cuvil_shapes(model, context, &in, &out) == CUVIL_OK && out.shape[0] == -1);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
  return check_result();
}
