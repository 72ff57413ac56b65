/* Runs any compiled model from C by functions of its header that call_model.c has no use for.
 *
 *   run_model LIBRARY NAME REQUEST FIRST AGAIN CREATED    files as call_model.c's
 *
 * The model runs in the caller's memory, again there, and in a context that the runtime makes; each
 * run has a file for its outputs.
 */
#define main call_models
#include "call_model.c"
#undef main

#define MAX_SYMBOLS 64

/* More functions of the library. */
typedef struct controls {
  cuvil_status (*context_size)(const cuvil_model *model, const int64_t *symbols, size_t *bytes);
  cuvil_status (*context_init)(const cuvil_model *model, void *memory, size_t bytes,
                               cuvil_context **context);
  void (*context_cancel)(cuvil_context *context);
  void (*context_uncancel)(cuvil_context *context);
  void (*context_set_time_limit)(cuvil_context *context, int64_t nanoseconds);
  void (*context_set_profile)(cuvil_context *context, cuvil_profile *profile);
} controls;

static controls find_controls(const char *library, const char *name) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail("%s", dlerror());
  controls f;
  TAKE(context_size), TAKE(context_init), TAKE(context_cancel), TAKE(context_uncancel);
  TAKE(context_set_time_limit), TAKE(context_set_profile);
  return f;
}

/* The extents of the model's symbols, from the shapes of the inputs. */
static void bind_symbols(const cuvil_artefact *artefact, const values *inputs, int64_t *symbols) {
  if (artefact->symbol_count > MAX_SYMBOLS) fail("too many symbols");
  for (uint32_t i = 0; i < inputs->count; i++) {
    const cuvil_tensor_info *info = &artefact->inputs[i];
    for (unsigned axis = 0; axis < info->rank && axis < inputs->items[i].rank; axis++) {
      int64_t slot = -info->dims[axis] - 1;
      if (slot >= 0 && slot < artefact->symbol_count) symbols[slot] = inputs->items[i].shape[axis];
    }
  }
}

/* A context in memory that is not aligned. */
static cuvil_context *place_context(const functions *f, const controls *more,
                                    const cuvil_model *model, const values *inputs) {
  int64_t symbols[MAX_SYMBOLS] = {0};
  size_t bytes;
  cuvil_context *context;
  bind_symbols(f->artefact, inputs, symbols);
  expect(f, more->context_size(model, symbols, &bytes), "context_size", NULL);
  char *memory = allocate(bytes + 1);
  expect(f, more->context_init(model, memory + 1, bytes, &context), "context_init", NULL);
  return context;
}

/* Cancelling, profiles and time limits do what cuvil.h says. */
static void check_control(const functions *f, const controls *more, const cuvil_model *model,
                          cuvil_context *context, const values *inputs) {
  values outputs = make_outputs(f, model, context, inputs);
  more->context_cancel(context);
  cuvil_status status = f->run(model, context, inputs->items, outputs.items);
  if (status != CUVIL_CANCELLED) fail("cancelled run: '%s'", f->status_text(status));
  more->context_cancel(context);
  more->context_uncancel(context);
  cuvil_profile_row rows[16];
  cuvil_profile profile = {rows, 16, 0};
  more->context_set_profile(context, &profile);
  more->context_set_time_limit(context, (int64_t)600 * 1000 * 1000 * 1000);
  run(f, model, context, inputs);
  more->context_set_profile(context, NULL);
  if (profile.count == 0) fail("a profiled run has no rows");
}

static void run_to(const char *response, const functions *f, const cuvil_model *model,
                   cuvil_context *context, const values *inputs) {
  values outputs = run(f, model, context, inputs);
  write_values(response, &outputs);
}

static void run_model(char **arguments) {
  functions f = find(arguments[1], arguments[2]);
  controls more = find_controls(arguments[1], arguments[2]);
  values inputs = read_values(arguments[3]);
  if (inputs.count != f.artefact->input_count) fail("%u inputs are needed", inputs.count);
  char message[MESSAGE] = "";
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.threads = 1;
  options.message = message, options.message_bytes = sizeof message;
  cuvil_model *model;
  if (f.open(&options, &model) != CUVIL_OK) fail("open: %s", message);
  if (f.threads(model) != 1) fail("%d threads instead of 1", f.threads(model));

  cuvil_context *mine = place_context(&f, &more, model, &inputs), *created;
  run_to(arguments[4], &f, model, mine, &inputs);
  run_to(arguments[5], &f, model, mine, &inputs);
  expect(&f, f.context_create(model, &created), "context_create", NULL);
  check_control(&f, &more, model, created, &inputs);
  run_to(arguments[6], &f, model, created, &inputs);
  f.context_destroy(created);
  f.context_destroy(mine);
  f.close(model);
}

int main(int count, char **arguments) {
  if (setjmp(failed)) {
    fprintf(stderr, "%s\n", reason);
    return 1;
  }
  if (count != 7) fail("run_model LIBRARY NAME REQUEST FIRST AGAIN CREATED");
  run_model(arguments);
  return 0;
}
