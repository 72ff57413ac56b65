/* Models that use a device: any call of its shim may fail, and whatever was made is given back. */
#include <stdlib.h>

#include "check.h"
#include "models.h"

/* A device in the host's memory that counts what it holds and fails its `fails`-th call. */
static struct {
  int calls, fails, held;
} fake;

static int32_t step(void) { return ++fake.calls == fake.fails ? CUVIL_OUT_OF_MEMORY : CUVIL_OK; }

static int32_t make(void **result) {
  int32_t status = step();
  if (status) return status;
  *result = malloc(1);
  fake.held++;
  return CUVIL_OK;
}

static void drop(void *made) {
  fake.held--;
  free(made);
}

static int32_t open_device(const cuvil_device_api *api, void **device) {
  CHECK(api->state == &fake);
  return make(device);
}

static int32_t allocate(void *device, uint64_t bytes, void **memory) {
  (void)device;
  int32_t status = step();
  if (status) return status;
  *memory = malloc(bytes);
  fake.held++;
  return CUVIL_OK;
}

static void give_back(void *device, void *made) {
  (void)device;
  drop(made);
}

static int32_t load(void *device, const cuvil_device_kernel *kernel, void **function) {
  (void)device;
  CHECK(kernel->blob_bytes == 5 && !memcmp(kernel->blob, "twice", 5));
  return make(function);
}

static int32_t queue_open(void *device, void **queue) {
  (void)device;
  return make(queue);
}

static char *at(const cuvil_device_buffer *buffer) {
  return (char *)buffer->memory + buffer->offset;
}

static int32_t upload(void *queue, const cuvil_device_buffer *to, const void *from,
                      uint64_t bytes) {
  (void)queue;
  memcpy(at(to), from, bytes);
  return step();
}

static int32_t download(void *queue, void *to, const cuvil_device_buffer *from, uint64_t bytes) {
  (void)queue;
  memcpy(to, at(from), bytes);
  return step();
}

static int32_t copy(void *queue, const cuvil_device_buffer *to, const cuvil_device_buffer *from,
                    uint64_t bytes) {
  (void)queue;
  memcpy(at(to), at(from), bytes);
  return step();
}

/* y[i] = x[i] * factor[0] for dims[0] elements. */
static int32_t launch(void *queue, void *function, const cuvil_device_buffer *buffers,
                      uint32_t count, const int64_t *dims, uint32_t dim_count) {
  (void)queue, (void)function;
  CHECK(count == 3 && dim_count == 1);
  const float *x = (float *)at(&buffers[0]), *factor = (float *)at(&buffers[1]);
  float *y = (float *)at(&buffers[2]);
  for (int64_t i = 0; i < dims[0]; i++) y[i] = x[i] * factor[0];
  return step();
}

static uint64_t signal_queue(void *queue) {
  (void)queue;
  return 1;
}

static int32_t wait_queue(void *queue, uint64_t ticket) {
  CHECK(queue && ticket == 1);
  return step();
}

static void message(void *device, char *text, uint64_t room) {
  CHECK(device && room > 8);
  strcpy(text, "broken");
}

static const cuvil_device_api api = {
    .size = sizeof(cuvil_device_api),
    .version = CUVIL_DEVICE_API_VERSION,
    .name = "fake",
    .state = &fake,
    .open = open_device,
    .close = drop,
    .allocate = allocate,
    .free = give_back,
    .load = load,
    .unload = give_back,
    .queue_open = queue_open,
    .queue_close = drop,
    .upload = upload,
    .download = download,
    .copy = copy,
    .launch = launch,
    .signal = signal_queue,
    .wait = wait_queue,
    .message = message,
};

static char text[256];

static cuvil_status open_with(const cuvil_device_api *device, cuvil_model **model) {
  const cuvil_device_api *devices[] = {NULL, device};
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.message = text;
  options.message_bytes = sizeof text;
  options.devices = devices;
  options.device_count = 2;
  return cuvil_model_open(&twice_artefact, &options, model);
}

static cuvil_status run(const cuvil_model *model, cuvil_context *context, int64_t n) {
  float x[64], y[64];
  for (int i = 0; i < 64; i++) x[i] = (float)i;
  cuvil_value input = cuvil_tensor(CUVIL_F32, x, 1, &n), output = cuvil_output(y, sizeof y);
  cuvil_status status = cuvil_run(model, context, &input, &output);
  for (int64_t i = 0; !status && i < n; i++) CHECK(y[i] == 2.0f * (float)i);
  return status;
}

/* Opens, runs for two extents, closes; the status of the first step that fails. */
static cuvil_status whole_life(void) {
  cuvil_model *model;
  cuvil_context *context = NULL;
  cuvil_status status = open_with(&api, &model);
  if (status) {
    CHECK(strstr(text, "'twice' on device 'fake': "));
    return status;
  }
  status = cuvil_context_create(model, &context);
  if (!status) {
    for (int64_t n = 3; !status && n < 64; n += 50) status = run(model, context, n);
    if (status) CHECK(strstr(cuvil_context_message(context), "device 'fake': "));
    cuvil_context_destroy(context);
  }
  cuvil_model_close(model);
  return status;
}

static void test_every_call_may_fail(void) {
  int failures = 0;
  for (fake.fails = 1;; fake.fails++) {
    fake.calls = 0;
    cuvil_status status = whole_life();
    CHECK(fake.held == 0);
    if (!status && fake.calls < fake.fails) break;
    failures += status == CUVIL_OUT_OF_MEMORY;
    CHECK(fake.fails < 100);
  }
  CHECK(failures > 12);
  fake.fails = 0;
}

static void test_a_device_that_does_not_fit(void) {
  cuvil_model *model;
  cuvil_device_api other = api;
  CHECK(open_with(NULL, &model) == CUVIL_INVALID_ARGUMENT);
  CHECK(!strcmp(text, "'twice' needs device 'fake': give it in the options' devices"));
  other.name = "other";
  CHECK(open_with(&other, &model) == CUVIL_INVALID_ARGUMENT);
  other = api;
  other.version++;
  CHECK(open_with(&other, &model) == CUVIL_INVALID_ARGUMENT);
  other = api;
  other.size = 16;
  CHECK(open_with(&other, &model) == CUVIL_INVALID_ARGUMENT);
}

static void test_contexts_in_the_callers_memory(void) {
  static char memory[4096];
  cuvil_model *model;
  cuvil_context *context;
  CHECK(open_with(&api, &model) == CUVIL_OK);
  CHECK(cuvil_context_init(model, memory, sizeof memory, &context) == CUVIL_OK);
  CHECK(run(model, context, 5) == CUVIL_OK && run(model, context, 0) == CUVIL_OK);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
  CHECK(fake.held == 0);
}

static void test_a_stopped_run_is_not_the_devices_failure(void) {
  cuvil_model *model;
  cuvil_context *context;
  CHECK(open_with(&api, &model) == CUVIL_OK);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  cuvil_context_cancel(context);
  CHECK(run(model, context, 5) == CUVIL_CANCELLED);
  CHECK(!strstr(cuvil_context_message(context), "device"));
  cuvil_profile_row rows[8];
  cuvil_profile profile = {rows, 8, 0};
  cuvil_context_set_profile(context, &profile);
  CHECK(run(model, context, 5) == CUVIL_OK && profile.count == 3);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

static void test_damaged_descriptions(void) {
  cuvil_model *model;
  const cuvil_device_info *sound = twice_artefact.devices;
  cuvil_device_info broken[] = {*sound, *sound, *sound, *sound};
  broken[0].arena_bytes = -100;
  broken[1].weights_offset = 1;
  broken[2].kernels = NULL;
  broken[3].name = NULL;
  for (int i = 0; i < 4; i++) {
    cuvil_artefact artefact = twice_artefact;
    artefact.devices = &broken[i];
    CHECK(cuvil_model_open(&artefact, NULL, &model) == CUVIL_BAD_ARTEFACT);
  }
}

int main(void) {
  test_every_call_may_fail();
  test_a_device_that_does_not_fit();
  test_contexts_in_the_callers_memory();
  test_a_stopped_run_is_not_the_devices_failure();
  test_damaged_descriptions();
  return check_result();
}
