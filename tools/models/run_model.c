/* Runs any compiled model from C, by the functions that its header declares.
 *
 *   run_model LIBRARY NAME OUT_DIR [FILE:EXTENT,EXTENT,...]...
 *
 * One FILE of raw little-endian elements for each input, in order; a scalar is `FILE:`. Output i
 * goes to OUT_DIR/i.bin, and a line "name dtype extent,extent,..." to standard output. The model
 * runs in the caller's memory, again there, and in a context that the runtime makes: all three must
 * give the same bytes.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuvil/cuvil.h"

#define MAX_VALUES 64
#define MAX_SYMBOLS 64

/* The library's functions, named as in cuvil.h. */
typedef struct library {
  const cuvil_artefact *artefact;
  cuvil_status (*open)(const cuvil_options *options, cuvil_model **model);
  void (*close)(cuvil_model *model);
  const char *(*variant)(const cuvil_model *model);
  int32_t (*threads)(const cuvil_model *model);
  cuvil_status (*context_size)(const cuvil_model *model, const int64_t *symbols, size_t *bytes);
  cuvil_status (*context_init)(const cuvil_model *model, void *memory, size_t bytes,
                               cuvil_context **context);
  cuvil_status (*context_create)(const cuvil_model *model, cuvil_context **context);
  void (*context_destroy)(cuvil_context *context);
  const char *(*context_message)(const cuvil_context *context);
  void (*context_cancel)(cuvil_context *context);
  void (*context_uncancel)(cuvil_context *context);
  void (*context_set_time_limit)(cuvil_context *context, int64_t nanoseconds);
  void (*context_set_profile)(cuvil_context *context, cuvil_profile *profile);
  cuvil_status (*shapes)(const cuvil_model *model, cuvil_context *context,
                         const cuvil_value *inputs, cuvil_value *outputs);
  cuvil_status (*run)(const cuvil_model *model, cuvil_context *context, const cuvil_value *inputs,
                      cuvil_value *outputs);
  const char *(*status_text)(cuvil_status status);
} library;

/* Values of one run; `sizes` in bytes. */
typedef struct values {
  uint32_t count;
  cuvil_value value[MAX_VALUES];
  uint64_t sizes[MAX_VALUES];
} values;

static const struct {
  const char *name;
  unsigned bytes;
} DTYPES[] = {{"?", 0},       {"bool", 1},     {"int8", 1},    {"int16", 2},  {"int32", 4},
              {"int64", 8},   {"uint8", 1},    {"uint16", 2},  {"uint32", 4}, {"uint64", 8},
              {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}};

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

static void expect(const library *lib, cuvil_status got, cuvil_status wanted, const char *what,
                   const cuvil_context *context) {
  if (got == wanted) return;
  fail("%s: '%s' instead of '%s': %s", what, lib->status_text(got), lib->status_text(wanted),
       context ? lib->context_message(context) : "");
}

static void *symbol(void *handle, const char *prefix, const char *name) {
  char full[512];
  snprintf(full, sizeof full, "%s_%s", prefix, name);
  void *found = dlsym(handle, full);
  if (!found) fail("the library has no %s", full);
  return found;
}

static library load(const char *path, const char *name) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail("%s", dlerror());
  library lib;
#define TAKE(field) *(void **)&lib.field = symbol(handle, name, #field)
  TAKE(artefact), TAKE(open), TAKE(close), TAKE(variant), TAKE(threads);
  TAKE(context_size), TAKE(context_init), TAKE(context_create), TAKE(context_destroy);
  TAKE(context_message), TAKE(context_cancel), TAKE(context_uncancel);
  TAKE(context_set_time_limit), TAKE(context_set_profile);
  TAKE(shapes), TAKE(run), TAKE(status_text);
#undef TAKE
  return lib;
}

static void *allocate(uint64_t bytes) {
  void *memory = calloc(bytes ? bytes : 1, 1);
  if (!memory) fail("no memory for %llu bytes", (unsigned long long)bytes);
  return memory;
}

static uint64_t elements(const cuvil_value *value) {
  uint64_t count = 1;
  for (unsigned i = 0; i < value->rank; i++) count *= (uint64_t)value->shape[i];
  return count;
}

/* The input that an argument "FILE:EXTENT,..." describes. */
static cuvil_value read_input(const char *argument, const cuvil_tensor_info *info) {
  const char *colon = strrchr(argument, ':');
  char path[4096];
  if (!colon || colon - argument >= (long)sizeof path) fail("no FILE:EXTENT,...: %s", argument);
  snprintf(path, sizeof path, "%.*s", (int)(colon - argument), argument);
  int64_t shape[CUVIL_MAX_RANK];
  unsigned rank = 0;
  for (const char *at = colon; *at && at[1] && rank < CUVIL_MAX_RANK;) {
    char *end;
    shape[rank++] = strtoll(at + 1, &end, 10);
    at = end;
  }
  cuvil_value value = cuvil_tensor((cuvil_dtype)info->dtype, NULL, rank, shape);
  value.capacity = elements(&value) * DTYPES[info->dtype].bytes;
  value.data = allocate(value.capacity);
  FILE *file = fopen(path, "rb");
  if (!file || fread(value.data, 1, value.capacity, file) != value.capacity || fgetc(file) != EOF)
    fail("%s does not hold %llu bytes", path, (unsigned long long)value.capacity);
  fclose(file);
  return value;
}

static values read_inputs(const cuvil_artefact *artefact, int count, char **arguments) {
  values inputs = {artefact->input_count, {{0}}, {0}};
  if ((uint32_t)count != inputs.count) fail("%u inputs are needed", inputs.count);
  if (count > MAX_VALUES || artefact->output_count > MAX_VALUES) fail("too many values");
  for (int i = 0; i < count; i++) inputs.value[i] = read_input(arguments[i], &artefact->inputs[i]);
  return inputs;
}

/* The extents of the model's symbols, from the shapes of the inputs. */
static void bind_symbols(const cuvil_artefact *artefact, const values *inputs, int64_t *symbols) {
  if (artefact->symbol_count > MAX_SYMBOLS) fail("too many symbols");
  for (uint32_t i = 0; i < inputs->count; i++) {
    const cuvil_tensor_info *info = &artefact->inputs[i];
    for (unsigned axis = 0; axis < info->rank && axis < inputs->value[i].rank; axis++) {
      int64_t slot = -info->dims[axis] - 1;
      if (slot >= 0 && slot < artefact->symbol_count) symbols[slot] = inputs->value[i].shape[axis];
    }
  }
}

/* Outputs as large as the model says; those it cannot size are left to the runtime. */
static values make_outputs(const library *lib, const cuvil_model *model, cuvil_context *context,
                           const values *inputs) {
  values outputs = {lib->artefact->output_count, {{0}}, {0}};
  expect(lib, lib->shapes(model, context, inputs->value, outputs.value), CUVIL_OK, "shapes",
         context);
  for (uint32_t i = 0; i < outputs.count; i++) {
    uint64_t bytes = outputs.value[i].capacity;
    int unbounded = bytes == 0 && elements(&outputs.value[i]) != 0;
    outputs.value[i] = cuvil_output(unbounded ? NULL : allocate(bytes), bytes);
  }
  return outputs;
}

static values run(const library *lib, const cuvil_model *model, cuvil_context *context,
                  const values *inputs) {
  values outputs = make_outputs(lib, model, context, inputs);
  expect(lib, lib->run(model, context, inputs->value, outputs.value), CUVIL_OK, "run", context);
  for (uint32_t i = 0; i < outputs.count; i++) {
    cuvil_value *value = &outputs.value[i];
    outputs.sizes[i] = elements(value) * DTYPES[value->dtype].bytes;
    if (!value->borrowed) continue;
    void *copy = allocate(outputs.sizes[i]);
    memcpy(copy, (char *)value->data + value->byte_offset, outputs.sizes[i]);
    value->data = copy, value->byte_offset = 0;
  }
  return outputs;
}

static void check_same(const values *first, const values *again, const char *what) {
  for (uint32_t i = 0; i < first->count; i++) {
    if (first->sizes[i] != again->sizes[i] ||
        memcmp(first->value[i].data, again->value[i].data, first->sizes[i]) != 0)
      fail("output %u differs %s", i, what);
  }
}

/* Cancelling, profiles and time limits do what cuvil.h says. */
static void check_control(const library *lib, const cuvil_model *model, cuvil_context *context,
                          const values *inputs) {
  values outputs = make_outputs(lib, model, context, inputs);
  lib->context_cancel(context);
  cuvil_status status = lib->run(model, context, inputs->value, outputs.value);
  expect(lib, status, CUVIL_CANCELLED, "cancelled run", context);
  lib->context_cancel(context);
  lib->context_uncancel(context);
  cuvil_profile_row rows[16];
  cuvil_profile profile = {rows, 16, 0};
  lib->context_set_profile(context, &profile);
  lib->context_set_time_limit(context, (int64_t)600 * 1000 * 1000 * 1000);
  run(lib, model, context, inputs);
  lib->context_set_profile(context, NULL);
  if (profile.count == 0) fail("a profiled run has no rows");
}

static void write_outputs(const cuvil_artefact *artefact, const values *outputs,
                          const char *folder) {
  for (uint32_t i = 0; i < outputs->count; i++) {
    const cuvil_value *value = &outputs->value[i];
    char path[4096];
    snprintf(path, sizeof path, "%s/%u.bin", folder, i);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(value->data, 1, outputs->sizes[i], file) != outputs->sizes[i])
      fail("cannot write %s", path);
    fclose(file);
    printf("%s %s ", artefact->outputs[i].name, DTYPES[value->dtype].name);
    for (unsigned axis = 0; axis < value->rank; axis++)
      printf("%s%lld", axis ? "," : "", (long long)value->shape[axis]);
    printf("\n");
  }
}

int main(int count, char **arguments) {
  if (count < 4) fail("usage: run_model LIBRARY NAME OUT_DIR [FILE:EXTENT,EXTENT,...]...");
  library lib = load(arguments[1], arguments[2]);
  values inputs = read_inputs(lib.artefact, count - 4, arguments + 4);
  char message[512] = "";
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.threads = 1;
  options.message = message, options.message_bytes = sizeof message;
  cuvil_model *model;
  if (lib.open(&options, &model) != CUVIL_OK) fail("open: %s", message);
  if (lib.threads(model) != 1) fail("%d threads instead of 1", lib.threads(model));

  int64_t symbols[MAX_SYMBOLS] = {0};
  size_t bytes;
  cuvil_context *mine, *created;
  bind_symbols(lib.artefact, &inputs, symbols);
  expect(&lib, lib.context_size(model, symbols, &bytes), CUVIL_OK, "context_size", NULL);
  char *memory = allocate(bytes + 1);
  expect(&lib, lib.context_init(model, memory + 1, bytes, &mine), CUVIL_OK, "context_init", NULL);
  values outputs = run(&lib, model, mine, &inputs), again = run(&lib, model, mine, &inputs);
  check_same(&outputs, &again, "in a second run");
  expect(&lib, lib.context_create(model, &created), CUVIL_OK, "context_create", NULL);
  check_control(&lib, model, created, &inputs);
  again = run(&lib, model, created, &inputs);
  check_same(&outputs, &again, "in a context of the runtime's");
  write_outputs(lib.artefact, &outputs, arguments[3]);
  fprintf(stderr, "variant %s\n", lib.variant(model));
  lib.context_destroy(created);
  lib.context_destroy(mine);
  lib.close(model);
  return 0;
}
