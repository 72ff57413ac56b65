#include <string.h>

#include "arch.h"
#include "internal.h"
#include "platform.h"

/* Marks the context as in use; a second run on it at the same time is refused. */
static cuvil_status enter(const cuvil_model *model, cuvil_context *c, const cuvil_value *inputs,
                          const cuvil_value *outputs) {
  if (!model || !c || c->model != model) return CUVIL_INVALID_ARGUMENT;
  const cuvil_artefact *a = model->artefact;
  int takes = model->ports ? model->ports->input_count > 0 : a->input_count > 0;
  int gives = model->ports ? model->ports->output_count > 0 : a->output_count > 0;
  if ((takes && !inputs) || (gives && !outputs)) return CUVIL_INVALID_ARGUMENT;
  return atomic_exchange(&c->busy, 1) ? CUVIL_INVALID_ARGUMENT : CUVIL_OK;
}

static void leave(cuvil_context *c) { atomic_store_explicit(&c->busy, 0, memory_order_release); }

static void write_shape(const cuvil_tensor_info *info, const int64_t *slots, cuvil_value *output) {
  output->kind = CUVIL_TENSOR;
  output->dtype = info->dtype;
  output->rank = info->rank;
  for (uint32_t d = 0; d < info->rank; d++) output->shape[d] = cuvil_extent(info->dims[d], slots);
}

/* Whether the strings of an input have sizes, and bytes where they have any. */
static cuvil_status check_strings(cuvil_context *c, uint32_t input, const int64_t *shape) {
  const cuvil_tensor_info *info = &c->model->artefact->inputs[input];
  const cuvil_string *strings = c->io[input];
  int64_t count = cuvil_dense_bytes(shape, info->rank, 1);
  for (int64_t i = 0; i < count; i++) {
    if (strings[i].size >= 0 && (strings[i].data || !strings[i].size)) continue;
    return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT, "input '%s': string %d is of size %d%s",
                              info->name, i, strings[i].size,
                              strings[i].data ? "" : " and has no data");
  }
  return CUVIL_OK;
}

static cuvil_status set_inputs(cuvil_context *c, const cuvil_value *inputs) {
  const cuvil_artefact *a = c->model->artefact;
  for (uint32_t i = 0; i < a->input_count; i++) {
    c->io[i] = (char *)inputs[i].data + inputs[i].byte_offset;
    const cuvil_tensor_info *info = &a->inputs[i];
    if (inputs[i].data && info->dtype == CUVIL_STRING) {
      cuvil_status status = check_strings(c, i, inputs[i].shape);
      if (status) return status;
    }
    if (inputs[i].data) continue;
    if (cuvil_dense_bytes(inputs[i].shape, info->rank, cuvil_dtype_size(info->dtype))) {
      return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT, "input '%s': no data", info->name);
    }
  }
  return CUVIL_OK;
}

static cuvil_status too_small(cuvil_context *c, cuvil_value *outputs, uint32_t output) {
  const cuvil_artefact *a = c->model->artefact;
  uint64_t given = outputs[output].capacity;
  for (uint32_t i = 0; i < a->output_count; i++) {
    if (c->output_bytes[i] != CUVIL_UNBOUNDED) outputs[i].capacity = c->output_bytes[i];
  }
  return cuvil_context_fail(c, CUVIL_NEED_MEMORY, "output '%s': %d bytes needed, %d given",
                            a->outputs[output].name, (int64_t)c->output_bytes[output],
                            (int64_t)given);
}

/* Memory of the runtime's for an output whose size, or bound, is known. */
static cuvil_status lend(cuvil_context *c, cuvil_value *output, uint64_t bytes) {
  output->data = cuvil_api.allocate(&c->frame, (int64_t)bytes);
  output->byte_offset = 0;
  if (!output->data) {
    return cuvil_context_fail(c, CUVIL_OUT_OF_MEMORY, "no memory for an output of %d bytes",
                              (int64_t)bytes);
  }
  output->capacity = bytes;
  output->borrowed = 1;
  return CUVIL_OK;
}

static cuvil_status set_outputs(cuvil_context *c, cuvil_value *outputs) {
  const cuvil_artefact *a = c->model->artefact;
  for (uint32_t i = 0; i < a->output_count; i++) {
    cuvil_value *output = &outputs[i];
    if (output->borrowed) *output = cuvil_output(NULL, 0); /* of an earlier run */
    uint64_t bytes = c->output_bytes[i];
    c->io[a->input_count + i] = NULL;
    if (bytes == CUVIL_UNBOUNDED) continue;
    if (bytes && !output->data && !output->capacity && lend(c, output, bytes)) {
      return CUVIL_OUT_OF_MEMORY;
    }
    char *data = (char *)output->data + output->byte_offset;
    c->io[a->input_count + i] = data;
    if (bytes > output->capacity) return too_small(c, outputs, i);
    if ((bytes && !output->data) || (uintptr_t)data % cuvil_dtype_align(a->outputs[i].dtype)) {
      return cuvil_context_fail(c, CUVIL_INVALID_ARGUMENT,
                                "output '%s': no data, or not aligned to its elements",
                                a->outputs[i].name);
    }
  }
  return CUVIL_OK;
}

/* Hands over what main left in memory of its own. */
static cuvil_status take_output(cuvil_context *c, uint32_t i, cuvil_value *output) {
  const cuvil_tensor_info *info = &c->model->artefact->outputs[i];
  void *produced = c->io[c->model->artefact->input_count + i];
  int64_t bytes = cuvil_dense_bytes(output->shape, info->rank, cuvil_dtype_size(info->dtype));
  if (bytes < 0 || (bytes && !produced)) return CUVIL_INTERNAL;
  if (!output->data && !output->capacity) {
    output->data = produced;
    output->byte_offset = 0;
    output->borrowed = 1;
    output->capacity = (uint64_t)bytes;
  } else if (output->capacity < (uint64_t)bytes) {
    c->output_bytes[i] = (uint64_t)bytes;
    c->bound = 0; /* output_bytes no longer is what prepare said */
    return too_small(c, output - i, i);
  } else if (bytes) {
    memcpy((char *)output->data + output->byte_offset, produced, (size_t)bytes);
  }
  return CUVIL_OK;
}

static cuvil_status finish(cuvil_context *c, cuvil_value *outputs) {
  const cuvil_artefact *a = c->model->artefact;
  cuvil_status status = CUVIL_OK;
  for (uint32_t i = 0; i < a->output_count; i++) {
    write_shape(&a->outputs[i], c->frame.dims, &outputs[i]);
  }
  for (uint32_t i = 0; c->has_unbounded && !status && i < a->output_count; i++) {
    if (c->output_bytes[i] == CUVIL_UNBOUNDED) status = take_output(c, i, &outputs[i]);
  }
  return status;
}

/* code: what main returned, see cuvil_kernel. */
static cuvil_status failed_at(cuvil_context *c, int32_t code) {
  const cuvil_artefact *a = c->model->artefact;
  uint32_t site = (uint32_t)c->frame.site;
  cuvil_status status = (cuvil_status)(code & 0xff);
  if (status == CUVIL_SHAPE_MISMATCH) return cuvil_fail_shapes(c, site);
  const char *where = site < a->site_count ? a->sites[site] : a->name;
  if (status == CUVIL_CUSTOM_FAILED) {
    return cuvil_context_fail(c, status, "%s with status %d at %s", cuvil_status_text(status),
                              (int64_t)(code >> 8), where);
  }
  const cuvil_device *d = c->failed_device;
  char reason[160];
  if (d) cuvil_device_reason(d, reason, sizeof reason);
  cuvil_queues_drain(c);
  if (!d) return cuvil_context_fail(c, status, "%s at %s", cuvil_status_text(status), where);
  return cuvil_context_fail(c, status, "%s at %s: device '%s': %s", cuvil_status_text(status),
                            where, d->info->name, reason);
}

static cuvil_status call_main(cuvil_context *c) {
  int keep = (c->model->flags & CUVIL_KEEP_DENORMALS) != 0;
  c->frame.site = -1;
  c->failed_device = NULL;
  c->deadline_ns = c->time_limit_ns > 0 ? cuvil_platform_now() + c->time_limit_ns : 0;
  uint64_t control = keep ? 0 : cuvil_flush_begin();
  int32_t status = c->model->variant->main(&c->frame);
  if (!keep) cuvil_flush_end(control);
  return status ? failed_at(c, status) : CUVIL_OK;
}

/* Drops the run's buffers, but for those that were handed to the caller. */
static void drop_blocks(cuvil_context *c, const cuvil_value *outputs) {
  for (cuvil_block **link = &c->blocks; *link;) {
    cuvil_block *block = *link;
    int kept = 0;
    for (uint32_t i = 0; i < c->model->artefact->output_count; i++) {
      kept |= outputs[i].borrowed && outputs[i].data == (void *)(block + 1);
    }
    if (kept) {
      link = &block->next;
    } else {
      *link = block->next;
      cuvil_platform_free(block);
    }
  }
}

static cuvil_status run(cuvil_context *c, const cuvil_value *inputs, cuvil_value *outputs) {
  if (c->blocks) cuvil_free_blocks(c);
  if (c->strings) cuvil_reuse_strings(c);
  cuvil_status status = cuvil_bind(c, inputs);
  if (!status) status = set_inputs(c, inputs);
  if (!status) status = set_outputs(c, outputs);
  if (!status) status = call_main(c);
  if (!status) status = finish(c, outputs);
  if (c->blocks) drop_blocks(c, outputs);
  cuvil_context_uncancel(c);
  return status;
}

/* Outputs are gathered even where the run failed: they may tell what was short. */
static cuvil_status run_spread(cuvil_context *c, const cuvil_value *inputs, cuvil_value *outputs) {
  cuvil_value *tensors = outputs;
  cuvil_status status = cuvil_spread_inputs(c, &inputs);
  if (status) return status;
  status = cuvil_spread_outputs(c, &tensors);
  if (!status) status = run(c, inputs, tensors);
  cuvil_gather_outputs(c, outputs);
  return status;
}

cuvil_status cuvil_run(const cuvil_model *model, cuvil_context *context, const cuvil_value *inputs,
                       cuvil_value *outputs) {
  cuvil_status status = enter(model, context, inputs, outputs);
  if (status) return status;
  status = run_spread(context, inputs, outputs);
  leave(context);
  return status;
}

static cuvil_status tell_shapes(cuvil_context *c, const cuvil_value *inputs, cuvil_value *outputs) {
  const cuvil_artefact *a = c->model->artefact;
  cuvil_value *tensors = outputs;
  cuvil_status status = cuvil_spread_inputs(c, &inputs);
  if (!status) status = cuvil_bind(c, inputs);
  if (status) return status;
  cuvil_spread_outputs(c, &tensors); /* elements without a place are no fault here */
  for (uint32_t i = 0; i < a->output_count; i++) {
    uint64_t bytes = c->output_bytes[i];
    write_shape(&a->outputs[i], c->frame.dims, &tensors[i]);
    tensors[i].capacity = bytes == CUVIL_UNBOUNDED ? 0 : bytes;
  }
  cuvil_gather_outputs(c, outputs);
  return CUVIL_OK;
}

cuvil_status cuvil_shapes(const cuvil_model *model, cuvil_context *context,
                          const cuvil_value *inputs, cuvil_value *outputs) {
  cuvil_status status = enter(model, context, inputs, outputs);
  if (status) return status;
  status = tell_shapes(context, inputs, outputs);
  leave(context);
  return status;
}
