/* Calls compiled models from C, by the functions that their headers declare.
 *
 *   call_model [THREADS [SECONDS]]    threads: of a run, 1 where it is not said; 0 is all
 *
 * Reads lines "LIBRARY NAME REQUEST RESPONSE" and answers each with "ok VARIANT" or "failed:
 * REASON". With SECONDS it times runs for about so long, and the answer goes on: " THREADS SAMPLES
 * MEDIAN BEST", in nanoseconds per run. With CUVIL_MODEL defined as a model's name, and its header
 * included before this file, it calls that one, which is linked with it, whatever the line names.
 *
 * Inputs are in the file REQUEST, outputs go to RESPONSE: a count, then values one after another,
 * in this machine's byte order (values.py writes and reads them):
 *
 *   u8 kind, u8 dtype, u8 rank, u8 0
 *   tensor:   i64 extent * rank, u64 bytes, data (of strings: each its i64 size, then its bytes)
 *   sequence: i64 count, its values
 *   none
 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#ifndef CUVIL_MODEL
#include <dlfcn.h>
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuvil/cuvil.h"

enum { GUARD = 64, MESSAGE = 1024 }; /* bytes behind every output that must stay as they are */
enum { LEAST = 5, MOST = 1000 };     /* samples */

/* The functions of one library, named as in its header. */
typedef struct functions {
  const cuvil_artefact *artefact;
  cuvil_status (*open)(const cuvil_options *options, cuvil_model **model);
  void (*close)(cuvil_model *model);
  cuvil_status (*context_create)(const cuvil_model *model, cuvil_context **context);
  void (*context_destroy)(cuvil_context *context);
  const char *(*context_message)(const cuvil_context *context);
  cuvil_status (*shapes)(const cuvil_model *model, cuvil_context *context,
                         const cuvil_value *inputs, cuvil_value *outputs);
  cuvil_status (*run)(const cuvil_model *model, cuvil_context *context, const cuvil_value *inputs,
                      cuvil_value *outputs);
  const char *(*status_text)(cuvil_status status);
  const char *(*variant)(const cuvil_model *model);
  int32_t (*threads)(const cuvil_model *model);
} functions;

typedef struct values {
  uint32_t count;
  cuvil_value *items;
} values;

static jmp_buf failed;
static char reason[MESSAGE];

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  longjmp(failed, 1);
}

static void *allocate(uint64_t bytes) {
  void *memory = calloc(bytes ? bytes : 1, 1);
  if (!memory) fail("no memory for %llu bytes", (unsigned long long)bytes);
  return memory;
}

static void take(FILE *file, void *to, uint64_t bytes) {
  if (fread(to, 1, bytes, file) != bytes) fail("the request ends early");
}

static void put(FILE *file, const void *from, uint64_t bytes) {
  if (fwrite(from, 1, bytes, file) != bytes) fail("the response cannot be written");
}

/* The strings of a tensor, without the zeros that other programs put behind theirs. */
static void read_strings(FILE *file, cuvil_value *value, uint64_t count) {
  cuvil_string *strings = allocate(count * sizeof *strings);
  for (uint64_t i = 0; i < count; i++) {
    take(file, &strings[i].size, sizeof strings[i].size);
    char *bytes = strings[i].size ? allocate((uint64_t)strings[i].size) : NULL;
    if (bytes) take(file, bytes, (uint64_t)strings[i].size);
    strings[i].data = bytes;
  }
  value->data = strings;
  value->capacity = count * sizeof *strings;
}

static uint64_t elements(const cuvil_value *value) {
  uint64_t count = 1;
  for (unsigned i = 0; i < value->rank; i++) count *= (uint64_t)value->shape[i];
  return count;
}

static cuvil_value read_tensor(FILE *file, const uint8_t *head) {
  int64_t shape[CUVIL_MAX_RANK];
  uint64_t bytes;
  if (head[2] > CUVIL_MAX_RANK) fail("an input of rank %d", head[2]);
  take(file, shape, head[2] * sizeof *shape);
  take(file, &bytes, sizeof bytes);
  cuvil_value value = cuvil_tensor((cuvil_dtype)head[1], NULL, head[2], shape);
  if (head[1] == CUVIL_STRING) {
    read_strings(file, &value, elements(&value));
  } else {
    value.data = allocate(bytes);
    value.capacity = bytes;
    take(file, value.data, bytes);
  }
  return value;
}

static cuvil_value read_value(FILE *file) {
  uint8_t head[4];
  take(file, head, sizeof head);
  if (head[0] == CUVIL_NONE) return cuvil_none();
  if (head[0] == CUVIL_TENSOR) return read_tensor(file, head);
  int64_t count;
  take(file, &count, sizeof count);
  cuvil_value *items = allocate((uint64_t)count * sizeof *items);
  for (int64_t i = 0; i < count; i++) items[i] = read_value(file);
  return cuvil_sequence(items, count);
}

static values read_values(const char *path) {
  FILE *file = fopen(path, "rb");
  values found = {0, NULL};
  if (!file) fail("no request %s", path);
  take(file, &found.count, sizeof found.count);
  found.items = allocate(found.count * sizeof *found.items);
  for (uint32_t i = 0; i < found.count; i++) found.items[i] = read_value(file);
  fclose(file);
  return found;
}

static uint64_t element_bytes(const cuvil_value *value) {
  static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8};
  if (value->dtype == CUVIL_STRING) return sizeof(cuvil_string);
  return value->dtype < sizeof sizes ? sizes[value->dtype] : 1;
}

static void write_tensor(FILE *file, const cuvil_value *value) {
  uint64_t count = elements(value), bytes = count * element_bytes(value);
  const void *data = (char *)value->data + value->byte_offset;
  put(file, value->shape, value->rank * sizeof *value->shape);
  put(file, &bytes, sizeof bytes);
  if (value->dtype != CUVIL_STRING) put(file, data, bytes);
  for (uint64_t i = 0; value->dtype == CUVIL_STRING && i < count; i++) {
    const cuvil_string *string = (const cuvil_string *)data + i;
    put(file, &string->size, sizeof string->size);
    put(file, string->data, (uint64_t)string->size);
  }
}

static void write_value(FILE *file, const cuvil_value *value) {
  uint8_t head[4] = {value->kind, value->dtype, value->rank, 0};
  put(file, head, sizeof head);
  if (value->kind == CUVIL_TENSOR) write_tensor(file, value);
  if (value->kind != CUVIL_SEQUENCE) return;
  put(file, &value->shape[0], sizeof value->shape[0]);
  for (int64_t i = 0; i < value->shape[0]; i++) {
    write_value(file, (const cuvil_value *)value->data + i);
  }
}

static void write_values(const char *path, const values *outputs) {
  FILE *file = fopen(path, "wb");
  if (!file) fail("no response %s", path);
  put(file, &outputs->count, sizeof outputs->count);
  for (uint32_t i = 0; i < outputs->count; i++) write_value(file, &outputs->items[i]);
  if (fclose(file)) fail("the response cannot be written");
}

#ifdef CUVIL_MODEL
#define JOINED(name, function) name##_##function
#define OF(name, function) JOINED(name, function)
#define TAKE(field) f.field = OF(CUVIL_MODEL, field)
#else
#define TAKE(field) *(void **)&f.field = symbol(handle, name, #field)

static void *symbol(void *handle, const char *prefix, const char *name) {
  char full[512];
  snprintf(full, sizeof full, "%s_%s", prefix, name);
  void *found = dlsym(handle, full);
  if (!found) fail("the library has no %s", full);
  return found;
}
#endif

static functions find(const char *library, const char *name) {
  functions f;
#ifdef CUVIL_MODEL
  (void)library, (void)name;
  f.artefact = &OF(CUVIL_MODEL, artefact);
#else
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) fail("%s", dlerror());
  TAKE(artefact);
#endif
  TAKE(open), TAKE(close), TAKE(context_create), TAKE(context_destroy), TAKE(context_message);
  TAKE(shapes), TAKE(run), TAKE(status_text), TAKE(variant), TAKE(threads);
  return f;
}

static void expect(const functions *f, cuvil_status status, const char *what,
                   const cuvil_context *context) {
  if (status == CUVIL_OK) return;
  const char *more = context ? f->context_message(context) : "";
  fail("%s: %s: %s", what, f->status_text(status), more);
}

/* An output as large as `sized` says, or the runtime's where the model cannot tell. */
static cuvil_value make_output(const cuvil_value *sized) {
  if (sized->kind != CUVIL_TENSOR) return *sized;
  if (sized->capacity == 0 && elements(sized) != 0) return cuvil_output(NULL, 0);
  char *memory = allocate(sized->capacity + GUARD);
  memset(memory + sized->capacity, GUARD, GUARD);
  return cuvil_output(memory, sized->capacity);
}

static void check_guard(const cuvil_value *output, uint32_t number) {
  for (int64_t i = 0; output->kind == CUVIL_SEQUENCE && i < output->shape[0]; i++) {
    check_guard((const cuvil_value *)output->data + i, number);
  }
  if (output->kind != CUVIL_TENSOR) return;
  const char *end = (const char *)output->data + output->capacity;
  for (int i = 0; !output->borrowed && i < GUARD; i++) {
    if (end[i] != GUARD) fail("output %u: written behind its end", number);
  }
}

/* Asks for all sizes, for elements of sequences once there are places to tell them. */
static values make_outputs(const functions *f, const cuvil_model *model, cuvil_context *context,
                           const values *inputs) {
  const cuvil_artefact *a = f->artefact;
  values outputs = {a->has_ports ? a->ports->output_count : a->output_count, NULL};
  cuvil_value *items = outputs.items = allocate(outputs.count * sizeof *items);
  expect(f, f->shapes(model, context, inputs->items, items), "shapes", context);
  for (uint32_t i = 0; i < outputs.count; i++) {
    if (items[i].kind != CUVIL_SEQUENCE) continue;
    uint64_t bytes = (uint64_t)items[i].shape[0] * sizeof *items;
    items[i] = cuvil_sequence(allocate(bytes), items[i].shape[0]);
  }
  expect(f, f->shapes(model, context, inputs->items, items), "shapes", context);
  for (uint32_t i = 0; i < outputs.count; i++) {
    cuvil_value *elements = items[i].data;
    for (int64_t k = 0; items[i].kind == CUVIL_SEQUENCE && k < items[i].shape[0]; k++) {
      elements[k] = make_output(&elements[k]);
    }
    items[i] = make_output(&items[i]);
  }
  return outputs;
}

static values run(const functions *f, const cuvil_model *model, cuvil_context *context,
                  const values *inputs) {
  values outputs = make_outputs(f, model, context, inputs);
  expect(f, f->run(model, context, inputs->items, outputs.items), "run", context);
  for (uint32_t i = 0; i < outputs.count; i++) check_guard(&outputs.items[i], i);
  return outputs;
}

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Makes an output ready for the next run: the runtime's memory is asked for anew. */
static void again(cuvil_value *output) {
  if (output->borrowed) *output = cuvil_output(NULL, 0);
  for (int64_t i = 0; output->kind == CUVIL_SEQUENCE && i < output->shape[0]; i++) {
    again((cuvil_value *)output->data + i);
  }
}

/* Nanoseconds per run over `repeats` of them. */
static double sample(const functions *f, const cuvil_model *model, cuvil_context *context,
                     const values *inputs, values *outputs, int64_t repeats) {
  int64_t start = nanoseconds();
  for (int64_t i = 0; i < repeats; i++) {
    for (uint32_t k = 0; k < outputs->count; k++) again(&outputs->items[k]);
    expect(f, f->run(model, context, inputs->items, outputs->items), "run", context);
  }
  return (double)(nanoseconds() - start) / (double)repeats;
}

static int by_size(const void *a, const void *b) {
  double difference = *(const double *)a - *(const double *)b;
  return (difference > 0) - (difference < 0);
}

/* Samples of at least half a millisecond, until the time is up; what they say as text. */
static const char *measure(const functions *f, const cuvil_model *model, cuvil_context *context,
                           const values *inputs, values *outputs, double seconds) {
  static double samples[MOST];
  static char text[128];
  double once = sample(f, model, context, inputs, outputs, 1);
  int64_t repeats = once < 500e3 ? (int64_t)(500e3 / (once + 1)) + 1 : 1;
  int64_t end = nanoseconds() + (int64_t)(seconds * 1e9);
  int count = 0;
  while (count < MOST && (count < LEAST || nanoseconds() < end)) {
    samples[count++] = sample(f, model, context, inputs, outputs, repeats);
  }
  qsort(samples, (size_t)count, sizeof *samples, by_size);
  snprintf(text, sizeof text, " %d %d %.0f %.0f", (int)f->threads(model), count, samples[count / 2],
           samples[0]);
  return text;
}

typedef struct settings {
  int32_t threads;
  double seconds;
} settings;

static void call(const char *library, const char *name, const char *request, const char *response,
                 const settings *set) {
  values inputs = read_values(request);
  functions f = find(library, name);
  char message[MESSAGE] = "";
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.threads = set->threads;
  options.message = message, options.message_bytes = sizeof message;
  cuvil_model *model;
  cuvil_context *context;
  if (f.open(&options, &model) != CUVIL_OK) fail("open: %s", message);
  uint32_t takes = f.artefact->has_ports ? f.artefact->ports->input_count : f.artefact->input_count;
  if (inputs.count != takes) fail("%u inputs instead of %u", inputs.count, takes);
  expect(&f, f.context_create(model, &context), "context", NULL);
  values outputs = run(&f, model, context, &inputs);
  write_values(response, &outputs);
  const char *figures = "";
  if (set->seconds > 0) figures = measure(&f, model, context, &inputs, &outputs, set->seconds);
  printf("ok %s%s\n", f.variant(model), figures);
  f.context_destroy(context);
  f.close(model);
}

/* Memory of one call is not freed: the operating system does that when the program ends. */
int main(int count, char **arguments) {
  static char library[4096], name[512], request[4096], response[4096];
  settings set = {count > 1 ? atoi(arguments[1]) : 1, count > 2 ? atof(arguments[2]) : 0};
  while (scanf("%4095s %511s %4095s %4095s", library, name, request, response) == 4) {
    if (setjmp(failed)) {
      printf("failed: %s\n", reason);
    } else {
      call(library, name, request, response, &set);
    }
    fflush(stdout);
  }
  return 0;
}
