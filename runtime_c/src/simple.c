/* One call that opens, runs and keeps: for programs that want nothing but the result. */
#include "cuvil/simple.h"

#include "platform.h"

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
  cuvil_status status = cuvil_model_open(artefact, NULL, model);
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

static cuvil_status run_with(const cuvil_artefact *artefact, const cuvil_model *model,
                             cuvil_context *context, const int64_t *dims, cuvil_value *values,
                             void *const *data) {
  uint32_t inputs = artefact->input_count, outputs = artefact->output_count;
  for (uint32_t i = 0; i < inputs; i++) {
    describe_input(&values[i], &artefact->inputs[i], data[i], dims);
  }
  for (uint32_t i = 0; i < outputs; i++) {
    values[inputs + i] = cuvil_output(data[inputs + i], INT64_MAX);
  }
  return cuvil_run(model, context, values, values + inputs);
}

cuvil_status cuvil_simple_run(const cuvil_artefact *artefact, cuvil_simple *simple,
                              const int64_t *symbols, void *const *data) {
  cuvil_model *model;
  cuvil_context *context;
  cuvil_status status = open_once(artefact, simple, &model);
  if (status) return status;
  size_t values_bytes = sizeof(cuvil_value) * (artefact->input_count + artefact->output_count);
  size_t dims_bytes = sizeof(int64_t) * (artefact->dim_count + 1);
  char *memory = cuvil_platform_allocate(values_bytes + dims_bytes);
  if (!memory) return CUVIL_OUT_OF_MEMORY;
  int64_t *dims = (int64_t *)(memory + values_bytes);
  memset(dims, 0, dims_bytes);
  for (uint32_t i = 0; i < artefact->symbol_count; i++) dims[i] = symbols[i];
  status = artefact->prepare ? (cuvil_status)artefact->prepare(dims) : CUVIL_OK;
  if (!status) status = take_context(simple, model, &context);
  if (!status) {
    status = run_with(artefact, model, context, dims, (cuvil_value *)memory, data);
    keep_context(simple, context);
  }
  cuvil_platform_free(memory);
  return status;
}
