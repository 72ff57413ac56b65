/* Cancelling, time limits, and the floating-point control word of the caller. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "check.h"
#include "models.h"

/* A model that polls until it is stopped, or divides a small number once. */
static atomic_int started;
static float quotient;

static int32_t spin(cuvil_frame *frame) {
  const int32_t *forever = frame->io[0];
  volatile float small = 1e-38f;
  quotient = small / 16.0f; /* a denormal number, unless flushed */
  atomic_store(&started, 1);
  while (*forever) {
    int32_t status = frame->api->poll(frame);
    if (status) return status;
  }
  return CUVIL_OK;
}

static const int64_t one[] = {1};
static const cuvil_tensor_info input = {"forever", one, CUVIL_I32, 1, {0}};
static const cuvil_variant variant = {"baseline", 0, spin, 0};
static const cuvil_artefact spin_artefact = {.magic = CUVIL_ARTEFACT_MAGIC,
                                             .abi_version = CUVIL_ABI_VERSION,
                                             .name = "spin",
                                             .input_count = 1,
                                             .inputs = &input,
                                             .variant_count = 1,
                                             .variants = &variant};

static cuvil_status run(const cuvil_model *model, cuvil_context *context, int32_t forever) {
  cuvil_value in = cuvil_tensor(CUVIL_I32, &forever, 1, one);
  return cuvil_run(model, context, &in, NULL);
}

static void *cancel_soon(void *context) {
  while (!atomic_load(&started)) usleep(100);
  cuvil_context_cancel(context);
  return NULL;
}

static void test_cancel(const cuvil_model *model, cuvil_context *context) {
  pthread_t thread;
  atomic_store(&started, 0);
  pthread_create(&thread, NULL, cancel_soon, context);
  CHECK(run(model, context, 1) == CUVIL_CANCELLED);
  pthread_join(thread, NULL);
  CHECK_TEXT(cuvil_context_message(context), "cancelled at spin");
  CHECK(run(model, context, 0) == CUVIL_OK);
  cuvil_context_cancel(context); /* none runs: the next one */
  CHECK(run(model, context, 1) == CUVIL_CANCELLED);
  cuvil_context_cancel(context);
  cuvil_context_uncancel(context);
  cuvil_context_set_time_limit(context, 2000000);
  CHECK(run(model, context, 1) == CUVIL_TIMED_OUT);
  CHECK_TEXT(cuvil_context_message(context), "time limit exceeded");
  CHECK(run(model, context, 0) == CUVIL_OK);
  cuvil_context_set_time_limit(context, 0);
}

static void test_denormals(const cuvil_model *model, cuvil_context *context) {
#if defined(__SSE__) || defined(__aarch64__)
  volatile float small = 1e-38f;
  CHECK(run(model, context, 0) == CUVIL_OK && quotient == 0.0f);
  quotient = small / 16.0f;
  CHECK(quotient != 0.0f); /* the caller's own setting is back */
#endif
  cuvil_options options = CUVIL_OPTIONS_INIT;
  cuvil_model *exact;
  cuvil_context *other;
  options.flags = CUVIL_KEEP_DENORMALS;
  CHECK(cuvil_model_open(&spin_artefact, &options, &exact) == CUVIL_OK);
  CHECK(cuvil_context_create(exact, &other) == CUVIL_OK);
  CHECK(run(exact, other, 0) == CUVIL_OK && quotient != 0.0f);
  CHECK(run(model, other, 0) == CUVIL_INVALID_ARGUMENT); /* another model's context */
  cuvil_context_destroy(other);
  cuvil_model_close(exact);
}

int main(void) {
  cuvil_model *model;
  cuvil_context *context;
  CHECK(cuvil_model_open(&spin_artefact, NULL, &model) == CUVIL_OK);
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  test_cancel(model, context);
  test_denormals(model, context);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
  return check_result();
}
