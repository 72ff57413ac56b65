/* Prints the variant that runs on this cpu, and whether it computes what it should. */
#include "check.h"
#include "dense.h"

int main(void) {
  cuvil_options options = CUVIL_OPTIONS_INIT;
  char message[300] = "";
  dense_model *model;
  options.message = message;
  options.message_bytes = sizeof message;
  if (dense_open(&options, &model)) {
    puts(message);
    return 2;
  }
  float x[2 * 8] = {0}, y[2 * 16];
  CHECK(dense_inference(2, x, y) == CUVIL_OK);
  for (int i = 0; i < 16; i++) {
    float bias = -1 + (float)i * 2 / 15; /* x is zero: relu of the bias is left */
    CHECK(near_to(y[i], bias > 0 ? bias : 0));
  }
  puts(dense_variant(model));
  dense_close(model);
  return 0;
}
