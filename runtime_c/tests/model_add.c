/* Imports nothing, so that the loader's tests can load its object. */
#include "models.h"

enum { N, ARENA, SLOTS };

static int32_t copy_rows(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                         void *scratch) {
  const float *x = buffers[0];
  float *copy = buffers[1];
  (void)dims;
  for (int64_t i = begin * 3; i < end * 3; i++) copy[i] = x[i];
  *(int64_t *)scratch = -1;
  return CUVIL_OK;
}

/* Leaves its thread's mark in scratch: two threads on one scratch would be seen, and what an
 * earlier launch left there. */
static int32_t add_rows(void *const *buffers, const int64_t *dims, int64_t begin, int64_t end,
                        void *scratch) {
  const float *copy = buffers[0], *y = buffers[1];
  float *z = buffers[2];
  volatile int64_t *mark = scratch;
  if (begin && *mark < 0) return CUVIL_INTERNAL;
  *mark = begin;
  for (int64_t i = begin * 3; i < end * 3; i++) z[i] = copy[i] + y[i];
  if (*mark != begin || end > dims[N]) return CUVIL_INTERNAL;
  return y[begin * 3] == -666.0f ? CUVIL_INDEX_OUT_OF_RANGE : CUVIL_OK;
}

static int32_t launch(cuvil_frame *frame, cuvil_kernel kernel, void *const *buffers, int32_t site) {
  int64_t tasks = frame->dims[N];
  int32_t status;
  frame->site = site;
  if (frame->profile) frame->api->profile_begin(frame, site);
  if (frame->parallel && tasks > 1) {
    status = frame->api->parallel_for(frame, kernel, buffers, tasks, site);
  } else {
    status = kernel(buffers, frame->dims, 0, tasks, frame->scratch);
  }
  if (frame->profile) frame->api->profile_end(frame, site);
  return status ? status : frame->api->poll(frame);
}

static int32_t run(cuvil_frame *frame) {
  void *first[] = {frame->io[0], frame->arena};
  void *second[] = {frame->arena, frame->io[1], frame->io[2]};
  int32_t status = launch(frame, copy_rows, first, 0);
  return status ? status : launch(frame, add_rows, second, 1);
}

static int32_t prepare(int64_t *dims) {
  dims[ARENA] = dims[N] * 12;
  return dims[N] == 13 ? 1 : 0; /* the condition: N is not 13 */
}

static uint64_t detect(void) { return 1; }

static const int64_t rows[] = {-1 - N, 3};
static const cuvil_tensor_info inputs[] = {{"x", rows, CUVIL_F32, 2, {0}},
                                           {"y", rows, CUVIL_F32, 2, {0}}};
static const cuvil_tensor_info outputs[] = {{"z", rows, CUVIL_F32, 2, {0}}};
static const char *const symbols[] = {"N"};
static const int64_t bounds[] = {1, 100000};
static const cuvil_variant variants[] = {
    {"future", 2, run, 64}, {"plain", 1, run, 64}, {"baseline", 0, run, 64}};
static const char *const sites[] = {"copy\tIdentity_0", "add\tAdd_1"};
static const char *const features[] = {"sse2", "future", NULL};

const cuvil_artefact add_artefact = {
    .magic = CUVIL_ARTEFACT_MAGIC,
    .abi_version = CUVIL_ABI_VERSION,
    .name = "add",
    .producer = "hand",
    .input_count = 2,
    .output_count = 1,
    .inputs = inputs,
    .outputs = outputs,
    .symbol_count = 1,
    .dim_count = SLOTS,
    .symbol_names = symbols,
    .symbol_bounds = bounds,
    .prepare = prepare,
    .arena_bytes = -1 - ARENA,
    .variant_count = 3,
    .site_count = 2,
    .variants = variants,
    .sites = sites,
    .detect = detect,
    .feature_names = features,
};

#ifdef CUVIL_TESTS_NOTE
static const struct {
  uint32_t name_bytes, text_bytes, type;
  char name[8], text[16];
} note __attribute__((section(".note.cuvil"), used, aligned(4))) = {
    sizeof CUVIL_NOTE_NAME, sizeof "add_artefact", CUVIL_NOTE_ENTRY, CUVIL_NOTE_NAME,
    "add_artefact"};
#endif
