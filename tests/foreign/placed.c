/* Runs a model on data that lies as badly as it may: SHIFT elements behind a multiple of 64 bytes,
 * between bytes that are not to change. Data that is off by less than an element is to be refused.
 *
 *   placed REQUEST RESPONSE SHIFT FLAGS    flags: cuvil_options's */
#define main call_models
#include "call_model.c"
#undef main

enum { EDGE = 64 };

/* Memory for `bytes` bytes, so many behind a multiple of 64, in a sea of EDGEs. */
static char *place(uint64_t bytes, uint64_t behind) {
  char *memory = allocate(bytes + behind + 4 * EDGE);
  memset(memory, EDGE, bytes + behind + 4 * EDGE);
  return memory + 2 * EDGE - (uintptr_t)memory % EDGE + behind;
}

static void place_input(cuvil_value *input, uint64_t shift) {
  uint64_t behind = shift * element_bytes(input);
  char *data = place(input->capacity, behind);
  memcpy(data, input->data, input->capacity);
  input->data = data - behind;
  input->byte_offset = behind;
}

static void run_placed(const functions *f, const cuvil_model *model, cuvil_context *context,
                       values *inputs, values *outputs, uint64_t shift) {
  for (uint32_t i = 0; i < inputs->count; i++) place_input(&inputs->items[i], shift);
  for (uint32_t i = 0; i < outputs->count; i++) {
    cuvil_value *output = &outputs->items[i];
    output->dtype = f->artefact->outputs[i].dtype;
    output->data = place(output->capacity, shift * element_bytes(output));
  }
  expect(f, f->run(model, context, inputs->items, outputs->items), "run", context);
  for (uint32_t i = 0; i < outputs->count; i++) {
    const char *data = outputs->items[i].data;
    for (uint64_t k = 1; k <= EDGE; k++) {
      if (data[-(int64_t)k] != EDGE) fail("output %u: written before its start", i);
    }
    check_guard(&outputs->items[i], i);
  }
}

/* Each tensor in turn lies a byte further. */
static void be_refused(const functions *f, const cuvil_model *model, cuvil_context *context,
                       values *inputs, values *outputs) {
  for (uint32_t i = 0; i < inputs->count + outputs->count; i++) {
    int is_input = i < inputs->count;
    cuvil_value *value = is_input ? &inputs->items[i] : &outputs->items[i - inputs->count];
    if (!is_input) value->dtype = f->artefact->outputs[i - inputs->count].dtype;
    if (element_bytes(value) == 1) continue;
    value->byte_offset++;
    cuvil_status status = f->run(model, context, inputs->items, outputs->items);
    value->byte_offset--;
    if (status != CUVIL_INVALID_ARGUMENT) fail("tensor %u, off by a byte: status %d", i, status);
    if (!strstr(f->context_message(context), "aligned")) fail("%s", f->context_message(context));
  }
}

int main(int count, char **arguments) {
  if (setjmp(failed)) {
    puts(reason);
    return 1;
  }
  if (count != 5) fail("placed REQUEST RESPONSE SHIFT FLAGS");
  values inputs = read_values(arguments[1]);
  functions f = find("", "");
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.threads = 1;
  options.flags = (uint32_t)atoi(arguments[4]);
  cuvil_model *model;
  cuvil_context *context;
  expect(&f, f.open(&options, &model), "open", NULL);
  expect(&f, f.context_create(model, &context), "context", NULL);
  values outputs = make_outputs(&f, model, context, &inputs);
  run_placed(&f, model, context, &inputs, &outputs, (uint64_t)atoi(arguments[3]));
  write_values(arguments[2], &outputs);
  be_refused(&f, model, context, &inputs, &outputs);
  puts(f.variant(model));
  return 0;
}
