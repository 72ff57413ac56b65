/* Three models in one program; two of them differ in nothing but their names. */
#include "add1.h"
#include "check.h"
#include "mul2.h"
#include "twin.h"

int main(void) {
  const float x[4] = {0, 1, 2, -3};
  float y[4];
  CHECK(add1_inference(x, y) == CUVIL_OK && y[3] == -2);
  CHECK(mul2_inference(x, y) == CUVIL_OK && y[3] == -6);
  CHECK(twin_inference(x, y) == CUVIL_OK && y[3] == -2);

  add1_model *one;
  mul2_model *two;
  add1_context *context;
  CHECK(add1_open(NULL, &one) == CUVIL_OK && mul2_open(NULL, &two) == CUVIL_OK);
  CHECK(add1_context_create(one, &context) == CUVIL_OK);
  const int64_t shape[] = {4};
  cuvil_value input = cuvil_tensor(CUVIL_F32, x, 1, shape);
  cuvil_value output = cuvil_output(y, sizeof y);
  CHECK(add1_run(one, context, &input, &output) == CUVIL_OK && y[1] == 2);
  CHECK(mul2_run(two, context, &input, &output) == CUVIL_INVALID_ARGUMENT); /* not its context */
  add1_context_destroy(context);
  add1_close(one);
  mul2_close(two);
  puts("fine");
  return 0;
}
