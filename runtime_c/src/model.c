#include <string.h>

#include "internal.h"
#include "platform.h"
#include "text.h"

/* The caller's options, completed with defaults for what an older caller does not know. */
static cuvil_status read_options(const cuvil_options *given, cuvil_options *options) {
  memset(options, 0, sizeof *options);
  if (!given) return CUVIL_OK;
  if (given->size < sizeof given->size) return CUVIL_INVALID_ARGUMENT;
  memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
  return CUVIL_OK;
}

static cuvil_status use_pool(cuvil_model *model, const cuvil_options *options,
                             const cuvil_report *report) {
  const cuvil_pool *pool = options->pool;
  model->threads = 1;
  if (options->threads < 0 || (pool && pool->version != CUVIL_POOL_VERSION)) {
    return cuvil_report_failure(report, CUVIL_INVALID_ARGUMENT, "bad thread count or pool version");
  }
  if (options->threads == 1) return CUVIL_OK;
  if (!pool && !options->threads && !cuvil_default_threads()) {
    return cuvil_report_failure(report, CUVIL_INVALID_ARGUMENT,
                                "CUVIL_NUM_THREADS is '%s': expected a number of threads, or none",
                                cuvil_platform_environment("CUVIL_NUM_THREADS"));
  }
  if (pool) {
    pool->retain(pool->state);
  } else {
    pool = cuvil_default_pool(options->threads);
  }
  if (!pool) return CUVIL_OK; /* a host without threads */
  int32_t threads = pool->threads(pool->state);
  if (options->threads && options->threads < threads) threads = options->threads;
  model->pool = pool;
  model->threads = threads < 1 ? 1 : threads;
  return CUVIL_OK;
}

static cuvil_status fill(cuvil_model *model, const cuvil_options *options,
                         const cuvil_report *report) {
  const cuvil_artefact *a = model->artefact;
  const char *variant = options->variant;
  if (!variant) variant = cuvil_platform_environment("CUVIL_VARIANT");
  if (variant && !variant[0]) variant = NULL;
  cuvil_status status = cuvil_choose_variant(a, variant, report, &model->variant);
  if (!status) status = cuvil_weights_open(a, options, report, &model->weights);
  if (!status) status = use_pool(model, options, report);
  if (!status) status = cuvil_devices_open(model, options, report);
  if (status) return status;
  model->flags = options->flags;
  model->ports = a->has_ports && !(options->flags & CUVIL_FLAT) ? a->ports : NULL;
  model->scratch_bytes = cuvil_round_up(model->variant->scratch_bytes);
  for (uint32_t i = 0; i < a->input_count; i++) model->input_dims += a->inputs[i].rank;
  return CUVIL_OK;
}

cuvil_status cuvil_model_open(const cuvil_artefact *artefact, const cuvil_options *given,
                              cuvil_model **result) {
  cuvil_options options;
  if (!artefact || !result || read_options(given, &options)) return CUVIL_INVALID_ARGUMENT;
  cuvil_report report = {options.message, options.message_bytes};
  *result = NULL;
  cuvil_status status = cuvil_check_artefact(artefact, &report);
  if (status) return status;
  cuvil_model *model = cuvil_platform_allocate(sizeof *model);
  if (!model) return cuvil_report_failure(&report, CUVIL_OUT_OF_MEMORY, "no memory for a model");
  memset(model, 0, sizeof *model);
  model->artefact = artefact;
  status = fill(model, &options, &report);
  if (status) {
    cuvil_model_close(model);
    return status;
  }
  *result = model;
  return CUVIL_OK;
}

void cuvil_model_close(cuvil_model *model) {
  if (!model) return;
  cuvil_devices_close(model);
  cuvil_pool_release(model->pool);
  cuvil_weights_close(&model->weights);
  cuvil_platform_free(model);
}

const cuvil_artefact *cuvil_model_artefact(const cuvil_model *model) { return model->artefact; }

const char *cuvil_model_variant(const cuvil_model *model) { return model->variant->name; }

int32_t cuvil_model_threads(const cuvil_model *model) { return model->threads; }
