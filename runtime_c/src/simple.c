/* One call that opens, runs and keeps: for programs that want nothing but the result. */
#include "cuvil/simple.h"

#include "platform.h"

enum { VALUES = 10, DIMS = 64 }; /* models with more of them allocate at each call */

/* The fields are plain pointers in the header, so that C++ can read it. */
static void *take(void **place) { return __atomic_exchange_n(place, NULL, __ATOMIC_ACQ_REL); }

static int offer(void **place, void *value) {
  void *empty = NULL;
  return __atomic_compare_exchange_n(place, &empty, value, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static cuvil_status open_once(const cuvil_artefact *artefact, cuvil_simple *simple,
                              cuvil_model **model) {
  *model = __atomic_load_n(&simple->model, __ATOMIC_ACQUIRE);
  if (*model) return CUVIL_OK;
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.flags = CUVIL_FLAT;
  cuvil_status status = cuvil_model_open(artefact, &options, model);
  if (status) return status;
  if (offer(&simple->model, *model)) return CUVIL_OK;
  cuvil_model_close(*model); /* another thread was first */
  *model = __atomic_load_n(&simple->model, __ATOMIC_ACQUIRE);
  return CUVIL_OK;
}

static cuvil_status take_context(cuvil_simple *simple, const cuvil_model *model,
                                 cuvil_context **context) {
  for (int i = 0; i < CUVIL_SIMPLE_CONTEXTS; i++) {
    *context = take(&simple->contexts[i]);
    if (*context) return CUVIL_OK;
  }
  return cuvil_context_create(model, context);
}

static void keep_context(cuvil_simple *simple, cuvil_context *context) {
  for (int i = 0; i < CUVIL_SIMPLE_CONTEXTS; i++) {
    if (offer(&simple->contexts[i], context)) return;
  }
  cuvil_context_destroy(context);
}

static void describe_input(cuvil_value *value, const cuvil_tensor_info *tensor, void *data,
                           const int64_t *dims) {
  *value = cuvil_tensor((cuvil_dtype)tensor->dtype, data, 0, NULL);
  value->rank = tensor->rank;
  for (int i = 0; i < tensor->rank; i++) {
    value->shape[i] = tensor->dims[i] >= 0 ? tensor->dims[i] : dims[-(tensor->dims[i] + 1)];
  }
}

/* Where `room` is 0, memory of the caller's is not even looked at: the run asks for its own. */
static cuvil_value describe_output(const cuvil_tensor_info *tensor, void *data, int64_t room) {
  if (room < 0) return cuvil_output(data, INT64_MAX);
  return cuvil_output(room ? data : NULL, (uint64_t)room * cuvil_dtype_size(tensor->dtype));
}

/* Tells the shapes that the run has found. */
static cuvil_status tell_outputs(const cuvil_artefact *artefact, const cuvil_value *values,
                                 void *const *shapes, cuvil_status status) {
  for (uint32_t i = 0; i < artefact->output_count; i++) {
    if (status && status != CUVIL_NEED_MEMORY) return status;
    if (!status && values[i].borrowed && values[i].capacity) status = CUVIL_NEED_MEMORY;
    if (shapes[i]) memcpy(shapes[i], values[i].shape, artefact->outputs[i].rank * sizeof(int64_t));
  }
  return status;
}

static cuvil_status run_with(const cuvil_artefact *artefact, const cuvil_model *model,
                             cuvil_context *context, const int64_t *dims, const int64_t *rooms,
                             cuvil_value *values, void *const *data) {
  uint32_t inputs = artefact->input_count, outputs = artefact->output_count;
  for (uint32_t i = 0; i < inputs; i++) {
    describe_input(&values[i], &artefact->inputs[i], data[i], dims);
  }
  for (uint32_t i = 0; i < outputs; i++) {
    values[inputs + i] = describe_output(&artefact->outputs[i], data[inputs + i], rooms[i]);
  }
  cuvil_status status = cuvil_run(model, context, values, values + inputs);
  return tell_outputs(artefact, values + inputs, data + inputs + outputs, status);
}

static cuvil_status run_on_any(const cuvil_artefact *artefact, cuvil_simple *simple,
                               const cuvil_model *model, const int64_t *dims, const int64_t *rooms,
                               cuvil_value *values, void *const *data) {
  cuvil_context *context;
  cuvil_status status = take_context(simple, model, &context);
  if (status) return status;
  status = run_with(artefact, model, context, dims, rooms, values, data);
  keep_context(simple, context);
  return status;
}

cuvil_status cuvil_simple_run(const cuvil_artefact *artefact, cuvil_simple *simple,
                              const int64_t *extents, void *const *data) {
  cuvil_value few_values[VALUES], *values = few_values;
  int64_t few_dims[DIMS], *dims = few_dims;
  uint32_t count = artefact->input_count + artefact->output_count;
  cuvil_model *model;
  cuvil_status status = open_once(artefact, simple, &model);
  if (status) return status;
  char *memory = NULL;
  if (count > VALUES || artefact->dim_count > DIMS) {
    memory = cuvil_platform_allocate(count * sizeof *values + artefact->dim_count * sizeof *dims);
    if (!memory) return CUVIL_OUT_OF_MEMORY;
    values = (cuvil_value *)memory;
    dims = (int64_t *)(memory + count * sizeof *values);
  }
  memset(dims, 0, artefact->dim_count * sizeof *dims);
  for (uint32_t i = 0; i < artefact->symbol_count; i++) dims[i] = extents[i];
  if (artefact->prepare && artefact->prepare(dims)) status = CUVIL_SHAPE_MISMATCH;
  const int64_t *rooms = extents + artefact->symbol_count;
  if (!status) status = run_on_any(artefact, simple, model, dims, rooms, values, data);
  cuvil_platform_free(memory);
  return status;
}
