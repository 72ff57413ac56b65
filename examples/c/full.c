/* The full use: the program owns all memory, chooses threads, and is told what went wrong.
 *
 * A server keeps one model for all its threads and one context for each of them; a small device
 * gives the context a static buffer. Nothing allocates once the context is made. */
#include <stdio.h>
#include <stdlib.h>

#include "digits.h"

enum { MOST = 4 };

/* Prints the best digit of each picture; `count` of 15 pixels each. Returns a cuvil_status. */
static cuvil_status recognise(const digits_model *model, digits_context *context,
                              const float *pictures, int64_t count) {
  float scores[MOST * 10];
  const int64_t shape[] = {count, 15};
  cuvil_value input = cuvil_tensor(CUVIL_F32, pictures, 2, shape);
  cuvil_value output = cuvil_output(scores, sizeof scores); /* the run writes its shape */
  cuvil_status status = digits_run(model, context, &input, &output);
  if (status) {
    fprintf(stderr, "%s: %s\n", digits_status_text(status), digits_context_message(context));
    return status;
  }
  for (int64_t i = 0; i < output.shape[0]; i++) {
    int best = 0;
    for (int digit = 1; digit < 10; digit++) {
      if (scores[i * 10 + digit] > scores[i * 10 + best]) best = digit;
    }
    printf("picture %d: %d, sure to %.0f %%\n", (int)i, best, 100 * scores[i * 10 + best]);
  }
  return CUVIL_OK;
}

int main(void) {
  static const float pictures[2 * 15] = {
      0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, /* a one */
      1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, /* a five with a hole */
  };
  char message[200];
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.threads = 1;
  options.message = message;
  options.message_bytes = sizeof message;

  digits_model *model;
  if (digits_open(&options, &model)) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  printf("variant %s\n", digits_variant(model));

  /* How much memory a context needs depends on the largest count to come. */
  const digits_dims largest = {MOST};
  size_t bytes;
  if (digits_context_size(model, &largest, &bytes)) return 1;
  void *memory = malloc(bytes);
  digits_context *context;
  if (!memory || digits_context_init(model, memory, bytes, &context)) return 1;

  cuvil_status status = recognise(model, context, pictures, 2);
  if (!status) status = recognise(model, context, pictures, 1);

  digits_context_destroy(context);
  free(memory);
  digits_close(model);
  return status != CUVIL_OK;
}
