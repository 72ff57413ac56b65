/* What generated code asks of devices during a run. A profiled call is waited for, so that its row
 * shows what it took. */
#include "internal.h"

typedef struct call {
  cuvil_context *context;
  const cuvil_device *device;
  void *queue;
  int32_t site;
  int32_t stopped; /* by a cancel or the time limit: not the device's failure */
} call;

static int32_t begin_call(call *k, cuvil_frame *frame, int32_t device, int32_t site) {
  k->context = frame->runtime;
  k->device = &k->context->model->devices[device];
  k->queue = k->context->queues[device].queue;
  k->site = site;
  frame->site = site;
  k->stopped = cuvil_check_stop(k->context);
  if (!k->stopped && frame->profile) cuvil_profile_begin(frame, site);
  return k->stopped;
}

static int32_t end_call(const call *k, int32_t status) {
  cuvil_frame *frame = &k->context->frame;
  if (!status && frame->profile) {
    status = k->device->api->wait(k->queue, k->device->api->signal(k->queue));
    cuvil_profile_end(frame, k->site);
  }
  if (status && !k->stopped) k->context->failed_device = k->device;
  return status;
}

int32_t cuvil_device_launch(cuvil_frame *frame, int32_t device, int32_t kernel,
                            const cuvil_device_buffer *buffers, int32_t buffer_count,
                            const int64_t *dims, int32_t dim_count, int32_t site) {
  call k;
  int32_t status = begin_call(&k, frame, device, site);
  if (!status) {
    status = k.device->api->launch(k.queue, k.device->functions[kernel], buffers,
                                   (uint32_t)buffer_count, dims, (uint32_t)dim_count);
  }
  return end_call(&k, status);
}

int32_t cuvil_device_upload(cuvil_frame *frame, int32_t device, const cuvil_device_buffer *to,
                            const void *from, int64_t bytes, int32_t site) {
  call k;
  int32_t status = begin_call(&k, frame, device, site);
  if (!status && bytes > 0) status = k.device->api->upload(k.queue, to, from, (uint64_t)bytes);
  return end_call(&k, status);
}

int32_t cuvil_device_download(cuvil_frame *frame, int32_t device, void *to,
                              const cuvil_device_buffer *from, int64_t bytes, int32_t site) {
  call k;
  int32_t status = begin_call(&k, frame, device, site);
  if (!status && bytes > 0) status = k.device->api->download(k.queue, to, from, (uint64_t)bytes);
  return end_call(&k, status);
}

int32_t cuvil_device_copy(cuvil_frame *frame, int32_t device, const cuvil_device_buffer *to,
                          const cuvil_device_buffer *from, int64_t bytes, int32_t site) {
  call k;
  int32_t status = begin_call(&k, frame, device, site);
  if (!status && bytes > 0) status = k.device->api->copy(k.queue, to, from, (uint64_t)bytes);
  return end_call(&k, status);
}

uint64_t cuvil_device_signal(cuvil_frame *frame, int32_t device) {
  cuvil_context *c = frame->runtime;
  return c->model->devices[device].api->signal(c->queues[device].queue);
}

int32_t cuvil_device_wait(cuvil_frame *frame, int32_t device, uint64_t ticket) {
  cuvil_context *c = frame->runtime;
  const cuvil_device *d = &c->model->devices[device];
  int32_t status = d->api->wait(c->queues[device].queue, ticket);
  if (status) c->failed_device = d;
  return status;
}
