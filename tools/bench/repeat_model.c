/* Runs a compiled model, for what an emulator counts meanwhile.
 *
 *   repeat_model REQUEST RUNS    on the values of the request, one run after another
 *
 * The model is linked with it, and named as call_model.c takes it. */
#define main call_models
#include "call_model.c"
#undef main

static void repeat(const char *request, int runs) {
  values inputs = read_values(request);
  functions f = find("", "");
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.threads = 1;
  cuvil_model *model;
  cuvil_context *context;
  expect(&f, f.open(&options, &model), "open", NULL);
  expect(&f, f.context_create(model, &context), "context", NULL);
  values outputs = make_outputs(&f, model, context, &inputs);
  for (int i = 0; i < runs; i++) {
    for (uint32_t k = 0; k < outputs.count; k++) again(&outputs.items[k]);
    expect(&f, f.run(model, context, inputs.items, outputs.items), "run", context);
  }
  puts(f.variant(model));
}

int main(int count, char **arguments) {
  if (setjmp(failed)) {
    puts(reason);
    return 1;
  }
  if (count != 3) fail("repeat_model REQUEST RUNS");
  repeat(arguments[1], atoi(arguments[2]));
  return 0;
}
