/* A sequence and optionals, in and out, in both uses. */
#include <string.h>

#include "check.h"
#include "pairs.h"

static const float first[3] = {1, -2, 3}, second[1] = {10}, shift = 0.5f;

static void one_call(void) {
  const float *items[2] = {first, second};
  float a[3], b[1], kept, positive[3], *sums[2] = {a, b};
  int64_t shape[1];
  CHECK(pairs_inference(3, 1, items, &shift, NULL, sums, &kept, NULL, positive, shape) == 0);
  CHECK(a[0] == 1.5f && a[2] == 3.5f && b[0] == 10.5f && kept == shift);
  CHECK(shape[0] == 2 && positive[1] == 3);
  /* the model was compiled without a mask */
  int32_t status = pairs_inference(3, 1, items, &shift, a, sums, &kept, NULL, positive, shape);
  CHECK(status == CUVIL_INVALID_ARGUMENT);
}

static void full_use(void) {
  int64_t three = 3, one = 1;
  float a[3], b[1], kept;
  pairs_model *model;
  pairs_context *context;
  CHECK(pairs_open(NULL, &model) == CUVIL_OK);
  CHECK(pairs_context_create(model, &context) == CUVIL_OK);
  cuvil_value items[2], inputs[3], sums[2], outputs[4];
  items[0] = cuvil_tensor(CUVIL_F32, first, 1, &three);
  items[1] = cuvil_tensor(CUVIL_F32, second, 1, &one);
  inputs[0] = cuvil_sequence(items, 2);
  inputs[1] = cuvil_tensor(CUVIL_F32, &shift, 0, NULL);
  inputs[2] = cuvil_none();
  sums[0] = cuvil_output(a, sizeof a), sums[1] = cuvil_output(b, sizeof b);
  outputs[0] = cuvil_sequence(sums, 2);
  outputs[1] = cuvil_output(&kept, sizeof kept);
  outputs[2] = cuvil_none();
  outputs[3] = cuvil_output(NULL, 0); /* memory of the runtime's */
  CHECK(pairs_run(model, context, inputs, outputs) == CUVIL_OK);
  CHECK(a[2] == 3.5f && b[0] == 10.5f && kept == shift && sums[0].shape[0] == 3);
  CHECK(outputs[2].kind == CUVIL_NONE);
  CHECK(outputs[3].shape[0] == 2 && ((float *)outputs[3].data)[1] == 3);
  inputs[1] = cuvil_none();
  CHECK(pairs_run(model, context, inputs, outputs) == CUVIL_INVALID_ARGUMENT);
  CHECK(strstr(pairs_context_message(context), "input 'shift': expected a tensor, got nothing"));
  pairs_context_destroy(context);
  pairs_close(model);
}

int main(void) {
  one_call();
  full_use();
  puts("fine");
  return 0;
}
