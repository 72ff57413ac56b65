#include <string.h>

#include "internal.h"
#include "platform.h"
#include "text.h"

cuvil_status cuvil_context_fail(cuvil_context *context, cuvil_status status, const char *format,
                                ...) {
  va_list arguments;
  va_start(arguments, format);
  cuvil_format_list(context->message, sizeof context->message, format, arguments);
  va_end(arguments);
  return status;
}

/* Where the parts of a context lie, from its aligned start; the arena comes last. */
typedef struct layout {
  size_t io, dims, prepared, shapes, output_bytes, tensors, queues, devices, scratch, arena;
} layout;

static size_t place(size_t *end, size_t bytes) {
  size_t at = *end;
  *end = cuvil_round_up(at + bytes);
  return at;
}

static layout lay_out(const cuvil_model *model) {
  const cuvil_artefact *a = model->artefact;
  size_t end = cuvil_round_up(sizeof(cuvil_context));
  layout l;
  l.io = place(&end, ((size_t)a->input_count + a->output_count) * sizeof(void *));
  l.dims = place(&end, (size_t)a->dim_count * sizeof(int64_t));
  l.prepared = place(&end, (size_t)a->dim_count * sizeof(int64_t));
  l.shapes = place(&end, (size_t)model->input_dims * sizeof(int64_t));
  l.output_bytes = place(&end, (size_t)a->output_count * sizeof(uint64_t));
  size_t tensors = model->ports ? (size_t)a->input_count + a->output_count : 0;
  l.tensors = place(&end, tensors * sizeof(cuvil_value));
  l.queues = place(&end, (size_t)a->device_count * sizeof(cuvil_device_queue));
  l.devices = place(&end, (size_t)a->device_count * sizeof(cuvil_device_memory));
  l.scratch = place(&end, model->scratch_bytes * (size_t)model->threads);
  l.arena = end;
  return l;
}

/* Memory of any alignment holds a context of `bytes` bytes when it is so long. */
static size_t with_slack(size_t bytes) { return bytes + CUVIL_ARENA_ALIGN - 1; }

int64_t cuvil_arena_bytes(const cuvil_artefact *a, const int64_t *slots) {
  int64_t bytes = cuvil_extent(a->arena_bytes, slots);
  return bytes < 0 || bytes > CUVIL_MAX_BYTES ? -1 : bytes;
}

static cuvil_status symbolic_arena(const cuvil_artefact *a, const int64_t *symbols,
                                   int64_t *bytes) {
  int64_t *slots = cuvil_platform_allocate((size_t)a->dim_count * sizeof *slots);
  if (!slots) return CUVIL_OUT_OF_MEMORY;
  memset(slots, 0, (size_t)a->dim_count * sizeof *slots);
  cuvil_status status = CUVIL_OK;
  for (uint32_t i = 0; i < a->symbol_count; i++) {
    slots[i] = symbols ? symbols[i] : a->symbol_bounds[2 * i + 1];
    if (slots[i] < 0 || slots[i] > CUVIL_MAX_BYTES) status = CUVIL_INVALID_ARGUMENT;
  }
  if (!status && a->prepare(slots)) status = CUVIL_SHAPE_MISMATCH;
  *bytes = status ? 0 : cuvil_arena_bytes(a, slots);
  cuvil_platform_free(slots);
  return *bytes < 0 ? CUVIL_INVALID_ARGUMENT : status;
}

cuvil_status cuvil_context_size(const cuvil_model *model, const int64_t *symbols, size_t *bytes) {
  if (!model || !bytes) return CUVIL_INVALID_ARGUMENT;
  int64_t arena = model->artefact->arena_bytes;
  cuvil_status status = arena < 0 ? symbolic_arena(model->artefact, symbols, &arena) : CUVIL_OK;
  if (!status) *bytes = with_slack(lay_out(model).arena + (size_t)arena);
  return status;
}

static void place_arena(cuvil_context *context, void *arena, size_t capacity) {
  context->frame.arena = arena;
  context->arena_capacity = capacity;
}

static cuvil_context *make(const cuvil_model *model, char *memory, const layout *l) {
  const cuvil_artefact *a = model->artefact;
  cuvil_context *context = (cuvil_context *)memory;
  memset(memory, 0, l->scratch);
  context->model = model;
  context->io = (void **)(memory + l->io);
  context->prepared = (int64_t *)(memory + l->prepared);
  context->shapes = (int64_t *)(memory + l->shapes);
  context->output_bytes = (uint64_t *)(memory + l->output_bytes);
  context->tensors = (cuvil_value *)(memory + l->tensors);
  context->queues = (cuvil_device_queue *)(memory + l->queues);
  context->devices = (cuvil_device_memory *)(memory + l->devices);
  cuvil_frame *frame = &context->frame;
  frame->api = &cuvil_api;
  frame->weights = model->weights.data;
  frame->io = context->io;
  frame->dims = (int64_t *)(memory + l->dims);
  frame->scratch = memory + l->scratch;
  frame->parallel = model->threads > 1;
  frame->runtime = context;
  frame->devices = context->devices;
  if (a->arena_bytes >= 0) context->needed = with_slack(l->arena + (size_t)a->arena_bytes);
  return context;
}

cuvil_status cuvil_context_init(const cuvil_model *model, void *memory, size_t bytes,
                                cuvil_context **result) {
  if (!model || !memory || !result) return CUVIL_INVALID_ARGUMENT;
  layout l = lay_out(model);
  int64_t arena = model->artefact->arena_bytes < 0 ? 0 : model->artefact->arena_bytes;
  size_t skip = (CUVIL_ARENA_ALIGN - (uintptr_t)memory % CUVIL_ARENA_ALIGN) % CUVIL_ARENA_ALIGN;
  if (bytes < skip || bytes - skip < l.arena + (size_t)arena) return CUVIL_NEED_MEMORY;
  char *start = (char *)memory + skip;
  *result = make(model, start, &l);
  place_arena(*result, start + l.arena, bytes - skip - l.arena);
  cuvil_status status = cuvil_queues_open(*result);
  if (status) cuvil_queues_close(*result);
  return status;
}

cuvil_status cuvil_context_create(const cuvil_model *model, cuvil_context **result) {
  if (!model || !result) return CUVIL_INVALID_ARGUMENT;
  layout l = lay_out(model);
  void *memory = cuvil_platform_allocate(l.arena);
  if (!memory) return CUVIL_OUT_OF_MEMORY;
  cuvil_context *context = make(model, memory, &l);
  context->owned = memory;
  cuvil_status status = cuvil_queues_open(context);
  if (!status && model->artefact->arena_bytes > 0) {
    status = cuvil_context_reserve_arena(context, model->artefact->arena_bytes);
  }
  if (status) {
    cuvil_context_destroy(context);
  } else {
    *result = context;
  }
  return status;
}

cuvil_status cuvil_context_reserve_arena(cuvil_context *context, int64_t bytes) {
  if ((uint64_t)bytes <= context->arena_capacity) return CUVIL_OK;
  if (!context->owned) {
    context->needed = with_slack(lay_out(context->model).arena + (size_t)bytes);
    return cuvil_context_fail(context, CUVIL_NEED_MEMORY,
                              "these input shapes need a context of %d bytes",
                              (int64_t)context->needed);
  }
  cuvil_platform_free(context->owned_arena);
  context->owned_arena = cuvil_platform_allocate((size_t)bytes);
  place_arena(context, context->owned_arena, context->owned_arena ? (size_t)bytes : 0);
  if (context->owned_arena) return CUVIL_OK;
  return cuvil_context_fail(context, CUVIL_OUT_OF_MEMORY, "no memory for an arena of %d bytes",
                            bytes);
}

void cuvil_context_destroy(cuvil_context *context) {
  if (!context) return;
  cuvil_queues_close(context);
  cuvil_free_blocks(context);
  cuvil_free_strings(context);
  cuvil_platform_free(context->owned_arena);
  cuvil_platform_free(context->owned);
}

size_t cuvil_context_needed(const cuvil_context *context) { return context->needed; }

size_t cuvil_context_arena_bytes(const cuvil_context *context) { return context->arena_capacity; }

const char *cuvil_context_message(const cuvil_context *context) { return context->message; }

void cuvil_context_cancel(cuvil_context *context) { atomic_store(&context->cancelled, 1); }

void cuvil_context_uncancel(cuvil_context *context) { atomic_store(&context->cancelled, 0); }

void cuvil_context_set_time_limit(cuvil_context *context, int64_t nanoseconds) {
  context->time_limit_ns = nanoseconds;
}

void cuvil_context_set_profile(cuvil_context *context, cuvil_profile *profile) {
  context->frame.profile = profile && profile->capacity ? profile : NULL;
}
