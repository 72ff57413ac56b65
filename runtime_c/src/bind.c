/* From input shapes to dim slots: checks every input, binds symbols, sizes outputs and arena. */
#include <string.h>

#include "internal.h"
#include "text.h"

int64_t cuvil_dense_bytes(const int64_t *shape, uint32_t rank, uint32_t element) {
  uint64_t bytes = element;
  int empty = 0;
  for (uint32_t d = 0; d < rank; d++) {
    if (shape[d] < 0) return -1;
    if (!shape[d]) empty = 1;
    if (shape[d] && bytes > (uint64_t)CUVIL_MAX_BYTES / (uint64_t)shape[d]) return -1;
    if (shape[d]) bytes *= (uint64_t)shape[d];
  }
  return empty ? 0 : (int64_t)bytes;
}

/* Dense row-major strides; those of extents 0 and 1 are free. */
static int is_dense(const cuvil_value *value) {
  int64_t expected = 1;
  for (uint32_t d = value->rank; value->strides && d-- > 0;) {
    if (value->shape[d] > 1 && value->strides[d] != expected) return 0;
    expected *= value->shape[d];
  }
  return 1;
}

static cuvil_status check_data(cuvil_context *c, const cuvil_tensor_info *info,
                               const cuvil_value *value) {
  int64_t bytes = cuvil_dense_bytes(value->shape, value->rank, cuvil_dtype_size(info->dtype));
  if (bytes < 0) {
    return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT,
                              "input '%s': a negative or far too large extent", info->name);
  }
  if (value->capacity && value->capacity < (uint64_t)bytes) {
    return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT, "input '%s': %d bytes given, %d needed",
                              info->name, (int64_t)value->capacity, bytes);
  }
  return CUVIL_OK;
}

static cuvil_status check_type(cuvil_context *c, const cuvil_tensor_info *info,
                               const cuvil_value *value) {
  if (value->kind != CUVIL_TENSOR) {
    return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT, "input '%s': expected a tensor",
                              info->name);
  }
  if (value->dtype != info->dtype) {
    return cuvil_context_fail(c, CUVIL_DTYPE_MISMATCH, "input '%s': expected %s, got %s",
                              info->name, cuvil_dtype_name(info->dtype),
                              cuvil_dtype_name(value->dtype));
  }
  if (value->rank != info->rank) {
    return cuvil_context_fail(c, CUVIL_RANK_MISMATCH, "input '%s': expected rank %d, got %d",
                              info->name, (int64_t)info->rank, (int64_t)value->rank);
  }
  if (value->strides && !is_dense(value)) {
    return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT, "input '%s': not dense row-major",
                              info->name);
  }
  if (((uintptr_t)value->data + value->byte_offset) % cuvil_dtype_align(info->dtype)) {
    return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT,
                              "input '%s': data is not aligned to its elements", info->name);
  }
  return CUVIL_OK;
}

static cuvil_status symbol_clash(cuvil_context *c, uint32_t input, uint32_t dim, int64_t got) {
  const cuvil_artefact *a = c->model->artefact;
  int64_t slot = a->inputs[input].dims[dim];
  for (uint32_t i = 0; i <= input; i++) {
    for (uint32_t d = 0; d < a->inputs[i].rank; d++) {
      if (a->inputs[i].dims[d] != slot) continue;
      return cuvil_context_fail(c, CUVIL_SHAPE_MISMATCH,
                                "input '%s': dim %d (%s) is %d, but %d in dim %d of input '%s'",
                                a->inputs[input].name, (int64_t)dim, a->symbol_names[-(slot + 1)],
                                got, c->frame.dims[-(slot + 1)], (int64_t)d, a->inputs[i].name);
    }
  }
  return CUVIL_INTERNAL;
}

static cuvil_status bind_symbol(cuvil_context *c, uint32_t input, uint32_t dim, int64_t got) {
  const cuvil_artefact *a = c->model->artefact;
  const cuvil_tensor_info *info = &a->inputs[input];
  int64_t symbol = -(info->dims[dim] + 1);
  int64_t *slot = &c->frame.dims[symbol];
  int64_t low = a->symbol_bounds[2 * symbol], high = a->symbol_bounds[2 * symbol + 1];
  if (*slot >= 0) return *slot == got ? CUVIL_OK : symbol_clash(c, input, dim, got);
  if (got < low || got > high) {
    return cuvil_context_fail(c, CUVIL_SHAPE_MISMATCH,
                              "input '%s': dim %d (%s) is %d, outside of %d to %d", info->name,
                              (int64_t)dim, a->symbol_names[symbol], got, low, high);
  }
  *slot = got;
  return CUVIL_OK;
}

static cuvil_status check_extent(cuvil_context *c, const cuvil_tensor_info *info, uint32_t dim,
                                 int64_t got) {
  int64_t expected = cuvil_extent(info->dims[dim], c->frame.dims);
  if (expected == got) return CUVIL_OK;
  return cuvil_context_fail(c, CUVIL_SHAPE_MISMATCH, "input '%s': dim %d is %d, expected %d",
                            info->name, (int64_t)dim, got, expected);
}

/* Literal and symbol dims; derived ones wait until prepare has run. */
static cuvil_status bind_input(cuvil_context *c, uint32_t input, const cuvil_value *value) {
  const cuvil_artefact *a = c->model->artefact;
  const cuvil_tensor_info *info = &a->inputs[input];
  cuvil_status status = check_type(c, info, value);
  for (uint32_t d = 0; !status && d < info->rank; d++) {
    int64_t dim = info->dims[d];
    if (dim >= 0) {
      status = check_extent(c, info, d, value->shape[d]);
    } else if (-(dim + 1) < (int64_t)a->symbol_count) {
      status = bind_symbol(c, input, d, value->shape[d]);
    }
  }
  return status ? status : check_data(c, info, value);
}

static cuvil_status check_derived(cuvil_context *c, const cuvil_value *inputs) {
  const cuvil_artefact *a = c->model->artefact;
  for (uint32_t i = 0; i < a->input_count; i++) {
    for (uint32_t d = 0; d < a->inputs[i].rank; d++) {
      if (-(a->inputs[i].dims[d] + 1) < (int64_t)a->symbol_count) continue;
      cuvil_status status = check_extent(c, &a->inputs[i], d, inputs[i].shape[d]);
      if (status) return status;
    }
  }
  return CUVIL_OK;
}

static cuvil_status size_outputs(cuvil_context *c) {
  const cuvil_artefact *a = c->model->artefact;
  c->has_unbounded = 0;
  for (uint32_t i = 0; i < a->output_count; i++) {
    const cuvil_tensor_info *info = &a->outputs[i];
    int64_t shape[CUVIL_MAX_RANK];
    int unbounded = 0;
    for (uint32_t d = 0; d < info->rank; d++) {
      shape[d] = cuvil_extent(info->dims[d], c->frame.dims);
      unbounded |= shape[d] == -1;
    }
    int64_t bytes = cuvil_dense_bytes(shape, info->rank, cuvil_dtype_size(info->dtype));
    if (bytes < 0 && !unbounded) {
      return cuvil_context_fail(c, CUVIL_SHAPE_MISMATCH, "output '%s' would be far too large",
                                info->name);
    }
    c->output_bytes[i] = unbounded ? CUVIL_UNBOUNDED : (uint64_t)bytes;
    c->has_unbounded |= (uint8_t)unbounded;
  }
  return CUVIL_OK;
}

/* The part of a site that names the user's nodes. */
static const char *behind_tab(const char *site) {
  for (const char *c = site; *c; c++) {
    if (*c == '\t') return c + 1;
  }
  return site;
}

cuvil_status cuvil_fail_shapes(cuvil_context *c, uint32_t site) {
  const cuvil_artefact *a = c->model->artefact;
  cuvil_context_fail(c, CUVIL_SHAPE_MISMATCH, "the shapes do not fit at %s",
                     site < a->site_count ? behind_tab(a->sites[site]) : a->name);
  for (uint32_t i = 0; i < a->symbol_count; i++) {
    size_t length = strlen(c->message);
    cuvil_format(c->message + length, sizeof c->message - length, "%s%s = %d%s", i ? ", " : " (",
                 a->symbol_names[i], c->frame.dims[i], i + 1 < a->symbol_count ? "" : ")");
  }
  return CUVIL_SHAPE_MISMATCH;
}

static cuvil_status prepare(cuvil_context *c, const cuvil_value *inputs) {
  const cuvil_artefact *a = c->model->artefact;
  int32_t failed = a->dim_count ? a->prepare(c->frame.dims) : 0;
  if (failed) return cuvil_fail_shapes(c, (uint32_t)failed - 1);
  cuvil_status status = check_derived(c, inputs);
  if (!status) status = size_outputs(c);
  if (status) return status;
  int64_t arena = cuvil_arena_bytes(a, c->frame.dims);
  if (arena < 0) {
    return cuvil_context_fail(c, CUVIL_SHAPE_MISMATCH,
                              "the input shapes would need a far too large arena");
  }
  status = cuvil_context_reserve_arena(c, arena);
  return status ? status : cuvil_queues_reserve(c, c->frame.dims);
}

static void remember(cuvil_context *c, const cuvil_value *inputs) {
  const cuvil_artefact *a = c->model->artefact;
  int64_t *shape = c->shapes;
  for (uint32_t i = 0; i < a->input_count; i++) {
    memcpy(shape, inputs[i].shape, a->inputs[i].rank * sizeof *shape);
    shape += a->inputs[i].rank;
  }
  memcpy(c->prepared, c->frame.dims, a->dim_count * sizeof *c->prepared);
  c->bound = 1;
}

static cuvil_status bind_all(cuvil_context *c, const cuvil_value *inputs) {
  const cuvil_artefact *a = c->model->artefact;
  c->bound = 0;
  for (uint32_t i = 0; i < a->dim_count; i++) c->frame.dims[i] = -1;
  for (uint32_t i = 0; i < a->input_count; i++) {
    cuvil_status status = bind_input(c, i, &inputs[i]);
    if (status) return status;
  }
  for (uint32_t i = 0; i < a->symbol_count; i++) { /* symbols that no input binds */
    if (c->frame.dims[i] < 0) c->frame.dims[i] = a->symbol_bounds[2 * i];
  }
  cuvil_status status = prepare(c, inputs);
  if (!status) remember(c, inputs);
  return status;
}

/* The common case, in few instructions: all is as in the last run. */
static int is_unchanged(const cuvil_context *c, const cuvil_value *inputs) {
  const cuvil_artefact *a = c->model->artefact;
  const int64_t *shape = c->shapes;
  for (uint32_t i = 0; i < a->input_count; i++) {
    const cuvil_value *value = &inputs[i];
    const cuvil_tensor_info *info = &a->inputs[i];
    if (value->kind != CUVIL_TENSOR || value->dtype != info->dtype || value->rank != info->rank ||
        value->strides || value->capacity ||
        ((uintptr_t)value->data + value->byte_offset) & (cuvil_dtype_align(info->dtype) - 1)) {
      return 0;
    }
    for (uint32_t d = 0; d < info->rank; d++) {
      if (value->shape[d] != *shape++) return 0;
    }
  }
  return 1;
}

cuvil_status cuvil_bind(cuvil_context *c, const cuvil_value *inputs) {
  if (!c->bound || !is_unchanged(c, inputs)) return bind_all(c, inputs);
  memcpy(c->frame.dims, c->prepared, c->model->artefact->dim_count * sizeof *c->prepared);
  return CUVIL_OK;
}
