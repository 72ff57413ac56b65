/* Sequences and optionals as a C program passes them. */
#include "check.h"
#include "models.h"

static const float first[] = {1, 2, 3}, second[] = {10, 20}, shift = 0.5f;
static cuvil_model *model;
static cuvil_context *context;

static cuvil_status run(const cuvil_value *inputs, cuvil_value *outputs) {
  return cuvil_run(model, context, inputs, outputs);
}

static void set_inputs(cuvil_value *items, cuvil_value *inputs) {
  items[0] = cuvil_tensor(CUVIL_F32, first, 1, (int64_t[]){3});
  items[1] = cuvil_tensor(CUVIL_F32, second, 1, (int64_t[]){2});
  inputs[0] = cuvil_sequence(items, 2);
  inputs[1] = cuvil_none();
  inputs[2] = cuvil_tensor(CUVIL_F32, &shift, 0, NULL);
}

/* The way a program goes that knows nothing of the model. */
static void test_places_of_the_caller(void) {
  cuvil_value items[2], inputs[3], sums[2], outputs[3] = {0};
  float a[3], b[2], kept;
  set_inputs(items, inputs);
  CHECK(cuvil_shapes(model, context, inputs, outputs) == CUVIL_OK);
  CHECK(outputs[0].kind == CUVIL_SEQUENCE && outputs[0].shape[0] == 2);
  CHECK(outputs[1].kind == CUVIL_TENSOR && outputs[1].rank == 0 && outputs[1].capacity == 4);
  CHECK(outputs[2].kind == CUVIL_NONE);
  outputs[0] = cuvil_sequence(sums, 2);
  CHECK(cuvil_shapes(model, context, inputs, outputs) == CUVIL_OK);
  CHECK(sums[0].capacity == sizeof a && sums[1].capacity == sizeof b && sums[0].shape[0] == 3);
  sums[0] = cuvil_output(a, sizeof a), sums[1] = cuvil_output(b, sizeof b);
  outputs[1] = cuvil_output(&kept, sizeof kept);
  CHECK(run(inputs, outputs) == CUVIL_OK && a[2] == 3.5f && b[1] == 20.5f && kept == shift);
  CHECK(sums[1].rank == 1 && sums[1].shape[0] == 2 && sums[1].dtype == CUVIL_F32);
  CHECK(outputs[0].kind == CUVIL_SEQUENCE && outputs[0].shape[0] == 2);
  CHECK(outputs[2].kind == CUVIL_NONE);
}

/* Memory of the runtime's, and the same values again for the next run. */
static void test_places_of_the_runtime(void) {
  cuvil_value items[2], inputs[3], sums[2] = {cuvil_output(NULL, 0), cuvil_output(NULL, 0)};
  cuvil_value outputs[3] = {cuvil_sequence(sums, 2), cuvil_output(NULL, 0), cuvil_none()};
  set_inputs(items, inputs);
  for (int64_t count = 3; count > 0; count--) {
    items[0].shape[0] = count;
    CHECK(run(inputs, outputs) == CUVIL_OK && sums[0].shape[0] == count && sums[0].borrowed);
    CHECK(((float *)sums[0].data)[0] == 1.5f && ((float *)sums[1].data)[1] == 20.5f);
    CHECK(*(float *)outputs[1].data == shift);
  }
}

static void test_what_does_not_fit(void) {
  cuvil_value items[2], inputs[3], sums[2] = {cuvil_output(NULL, 0), cuvil_output(NULL, 0)};
  cuvil_value outputs[3] = {cuvil_sequence(sums, 1), cuvil_output(NULL, 0), cuvil_none()};
  const char *message = cuvil_context_message(context);
  set_inputs(items, inputs);
  CHECK(run(inputs, outputs) == CUVIL_NEED_MEMORY && outputs[0].shape[0] == 2);
  CHECK_TEXT(message, "output 'sums': a sequence of 2, places for 1");
  outputs[0] = cuvil_sequence(sums, 2);
  CHECK(run(inputs, outputs) == CUVIL_OK);
  inputs[0] = cuvil_sequence(items, 1);
  CHECK(run(inputs, outputs) == CUVIL_SHAPE_MISMATCH);
  CHECK_TEXT(message, "input 'items': expected a sequence of 2, got one of 1");
  inputs[0] = cuvil_sequence(NULL, 2);
  CHECK(run(inputs, outputs) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "input 'items': no elements");
  inputs[0] = items[0];
  CHECK(run(inputs, outputs) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "input 'items': expected a sequence, got a tensor");
  set_inputs(items, inputs);
  inputs[2] = cuvil_none();
  CHECK(run(inputs, outputs) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "input 'shift': expected a tensor, got nothing (this is known when");
  set_inputs(items, inputs);
  inputs[1] = items[0];
  CHECK(run(inputs, outputs) == CUVIL_INVALID_ARGUMENT);
  CHECK_TEXT(message, "input 'mask': expected nothing, got a tensor");
  set_inputs(items, inputs);
  items[1].shape[0] = 3;
  CHECK(run(inputs, outputs) == CUVIL_SHAPE_MISMATCH);
  CHECK_TEXT(message, "input 'items[1]': dim 0 is 3, expected 2");
}

/* Who asks for it gets the tensors in a row. */
static void test_flat(void) {
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.flags = CUVIL_FLAT;
  cuvil_model *flat;
  cuvil_context *own;
  CHECK(cuvil_model_open(&pairs_artefact, &options, &flat) == CUVIL_OK);
  CHECK(cuvil_context_create(flat, &own) == CUVIL_OK);
  cuvil_value inputs[3] = {cuvil_tensor(CUVIL_F32, first, 1, (int64_t[]){1}),
                           cuvil_tensor(CUVIL_F32, second, 1, (int64_t[]){2}),
                           cuvil_tensor(CUVIL_F32, &shift, 0, NULL)};
  cuvil_value outputs[3] = {cuvil_output(NULL, 0), cuvil_output(NULL, 0), cuvil_output(NULL, 0)};
  CHECK(cuvil_run(flat, own, inputs, outputs) == CUVIL_OK);
  CHECK(*(float *)outputs[0].data == 1.5f && *(float *)outputs[2].data == shift);
  cuvil_context_destroy(own);
  cuvil_model_close(flat);
}

static void test_ports_that_do_not_add_up(void) {
  cuvil_artefact bad = pairs_artefact;
  cuvil_port_list ports = *bad.ports;
  cuvil_model *none;
  bad.ports = &ports;
  ports.input_count--;
  CHECK(cuvil_model_open(&bad, NULL, &none) == CUVIL_BAD_ARTEFACT);
  bad.ports = NULL;
  CHECK(cuvil_model_open(&bad, NULL, &none) == CUVIL_BAD_ARTEFACT);
}

int main(void) {
  CHECK(cuvil_model_open(&pairs_artefact, NULL, &model) == CUVIL_OK);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  test_places_of_the_caller();
  test_places_of_the_runtime();
  test_what_does_not_fit();
  test_flat();
  test_ports_that_do_not_add_up();
  cuvil_context_destroy(context);
  cuvil_model_close(model);
  return check_result();
}
