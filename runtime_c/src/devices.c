/* Devices beside the host: opened with a model, given a queue and an arena by every context. */
#include <string.h>

#include "internal.h"
#include "platform.h"
#include "text.h"

static int device_is_sound(const cuvil_artefact *a, const cuvil_device_info *info) {
  if (!info->name || (info->kernel_count && !info->kernels)) return 0;
  if (info->arena_bytes >= 0 ? info->arena_bytes > CUVIL_MAX_BYTES
                             : (uint64_t)(-(info->arena_bytes + 1)) >= a->dim_count) {
    return 0;
  }
  if (info->weights_offset > a->weights_bytes ||
      info->weights_bytes > a->weights_bytes - info->weights_offset) {
    return 0;
  }
  for (uint32_t i = 0; i < info->kernel_count; i++) {
    const cuvil_device_kernel *k = &info->kernels[i];
    if (!k->kind || !k->symbol || (k->blob_bytes && !k->blob)) return 0;
  }
  return 1;
}

int cuvil_devices_are_sound(const cuvil_artefact *a) {
  if (a->device_count && !a->devices) return 0;
  for (uint32_t i = 0; i < a->device_count; i++) {
    if (!device_is_sound(a, &a->devices[i])) return 0;
  }
  return 1;
}

const char *cuvil_device_reason(const cuvil_device *d, char *text, size_t room) {
  text[0] = 0;
  if (d->device && d->api->message) d->api->message(d->device, text, room);
  text[room - 1] = 0;
  return text[0] ? text : "no reason given";
}

static const cuvil_device_api *find_device(const cuvil_options *options, const char *name) {
  for (uint32_t i = 0; options->devices && i < options->device_count; i++) {
    const cuvil_device_api *api = options->devices[i];
    if (api && api->size >= sizeof *api && api->version == CUVIL_DEVICE_API_VERSION &&
        !strcmp(api->name, name)) {
      return api;
    }
  }
  return NULL;
}

static cuvil_status refuse_device(const cuvil_model *model, const cuvil_device *d, int32_t status,
                                  const char *what, const cuvil_report *report) {
  char reason[160];
  return cuvil_report_failure(report, (cuvil_status)status, "'%s' on device '%s': %s: %s",
                              model->artefact->name, d->info->name, what,
                              cuvil_device_reason(d, reason, sizeof reason));
}

static int32_t place_weights(const cuvil_model *model, cuvil_device *d) {
  if (!d->info->weights_bytes) return CUVIL_OK;
  int32_t status = d->api->allocate(d->device, d->info->weights_bytes, &d->weights);
  void *queue = NULL;
  if (!status) status = d->api->queue_open(d->device, &queue);
  if (status) return status;
  cuvil_device_buffer to = {d->weights, 0};
  const char *from = model->weights.data + d->info->weights_offset;
  status = d->api->upload(queue, &to, from, d->info->weights_bytes);
  int32_t done = d->api->wait(queue, d->api->signal(queue));
  d->api->queue_close(queue);
  return status ? status : done;
}

static cuvil_status open_device(cuvil_model *model, cuvil_device *d, const cuvil_report *report) {
  int32_t status = d->api->open(d->api, &d->device);
  if (status) return refuse_device(model, d, status, "it does not open", report);
  status = place_weights(model, d);
  if (status) return refuse_device(model, d, status, "its constants cannot be placed", report);
  size_t bytes = (d->info->kernel_count + 1) * sizeof *d->functions;
  d->functions = cuvil_platform_allocate(bytes);
  if (!d->functions) return cuvil_report_failure(report, CUVIL_OUT_OF_MEMORY, "no memory");
  memset(d->functions, 0, bytes);
  for (uint32_t i = 0; i < d->info->kernel_count; i++) {
    const cuvil_device_kernel *kernel = &d->info->kernels[i];
    status = d->api->load(d->device, kernel, &d->functions[i]);
    if (status) return refuse_device(model, d, status, kernel->symbol, report);
  }
  return CUVIL_OK;
}

cuvil_status cuvil_devices_open(cuvil_model *model, const cuvil_options *options,
                                const cuvil_report *report) {
  const cuvil_artefact *a = model->artefact;
  if (!a->device_count) return CUVIL_OK;
  model->devices = cuvil_platform_allocate(a->device_count * sizeof *model->devices);
  if (!model->devices) return cuvil_report_failure(report, CUVIL_OUT_OF_MEMORY, "no memory");
  memset(model->devices, 0, a->device_count * sizeof *model->devices);
  for (uint32_t i = 0; i < a->device_count; i++) {
    cuvil_device *d = &model->devices[i];
    d->info = &a->devices[i];
    d->api = find_device(options, d->info->name);
    if (!d->api) {
      return cuvil_report_failure(report, CUVIL_INVALID_ARGUMENT,
                                  "'%s' needs device '%s': give it in the options' devices",
                                  a->name, d->info->name);
    }
    cuvil_status status = open_device(model, d, report);
    if (status) return status;
  }
  return CUVIL_OK;
}

static void close_device(cuvil_device *d) {
  if (!d->device) return;
  for (uint32_t i = 0; d->functions && i < d->info->kernel_count; i++) {
    if (d->functions[i]) d->api->unload(d->device, d->functions[i]);
  }
  if (d->weights) d->api->free(d->device, d->weights);
  d->api->close(d->device);
}

void cuvil_devices_close(cuvil_model *model) {
  if (!model->devices) return;
  for (uint32_t i = 0; i < model->artefact->device_count; i++) {
    close_device(&model->devices[i]);
    cuvil_platform_free(model->devices[i].functions);
  }
  cuvil_platform_free(model->devices);
}

static cuvil_status no_queue(cuvil_context *c, const cuvil_device *d, int32_t status,
                             const char *what) {
  char reason[160];
  return cuvil_context_fail(c, (cuvil_status)status, "device '%s': %s: %s", d->info->name, what,
                            cuvil_device_reason(d, reason, sizeof reason));
}

cuvil_status cuvil_queues_open(cuvil_context *c) {
  for (uint32_t i = 0; i < c->model->artefact->device_count; i++) {
    const cuvil_device *d = &c->model->devices[i];
    c->devices[i].weights = d->weights;
    int32_t status = d->api->queue_open(d->device, &c->queues[i].queue);
    if (status) return no_queue(c, d, status, "no queue");
  }
  return CUVIL_OK;
}

void cuvil_queues_close(cuvil_context *c) {
  cuvil_queues_drain(c);
  for (uint32_t i = 0; i < c->model->artefact->device_count; i++) {
    const cuvil_device *d = &c->model->devices[i];
    if (c->queues[i].queue) d->api->queue_close(c->queues[i].queue);
    if (c->devices[i].arena) d->api->free(d->device, c->devices[i].arena);
  }
}

static cuvil_status reserve_on(cuvil_context *c, uint32_t i, int64_t bytes) {
  const cuvil_device *d = &c->model->devices[i];
  cuvil_device_queue *q = &c->queues[i];
  if (bytes < 0 || bytes > CUVIL_MAX_BYTES) {
    return cuvil_context_fail(c, CUVIL_SHAPE_MISMATCH, "device '%s': far too large an arena",
                              d->info->name);
  }
  if ((uint64_t)bytes <= q->arena_capacity) return CUVIL_OK;
  if (c->devices[i].arena) d->api->free(d->device, c->devices[i].arena);
  c->devices[i].arena = NULL;
  q->arena_capacity = 0;
  int32_t status = d->api->allocate(d->device, (uint64_t)bytes, &c->devices[i].arena);
  if (status) return no_queue(c, d, status, "no memory for its arena");
  q->arena_capacity = (uint64_t)bytes;
  return CUVIL_OK;
}

cuvil_status cuvil_queues_reserve(cuvil_context *c, const int64_t *slots) {
  cuvil_status status = CUVIL_OK;
  for (uint32_t i = 0; !status && i < c->model->artefact->device_count; i++) {
    status = reserve_on(c, i, cuvil_extent(c->model->artefact->devices[i].arena_bytes, slots));
  }
  return status;
}

void cuvil_queues_drain(cuvil_context *c) {
  for (uint32_t i = 0; i < c->model->artefact->device_count; i++) {
    const cuvil_device_api *api = c->model->devices[i].api;
    if (!c->queues[i].queue) continue;
    api->wait(c->queues[i].queue, api->signal(c->queues[i].queue));
  }
}
