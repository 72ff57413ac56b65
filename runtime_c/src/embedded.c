#include "cuvil/embedded.h"

#include <string.h>

#include "dtypes.h"

/* A part of the caller's memory that is still free. */
typedef struct room {
  char *at;
  size_t left;
} room;

/* The next `bytes` of it at a multiple of CUVIL_ARENA_ALIGN; NULL when there are not as many. */
static void *take(room *r, uint64_t bytes) {
  size_t skip = (size_t)(0 - (uintptr_t)r->at) % CUVIL_ARENA_ALIGN;
  if (skip > r->left || bytes > r->left - skip) return NULL;
  char *place = r->at + skip;
  r->at = place + (size_t)bytes;
  r->left -= skip + (size_t)bytes;
  return place;
}

static int64_t extent(int64_t dim, const int64_t *slots) {
  return dim >= 0 ? dim : slots[-(dim + 1)];
}

static int data_is_sound(const cuvil_tensor_info *tensors, uint32_t count, void *const *data) {
  for (uint32_t i = 0; i < count; i++) {
    if (!data[i] || (uintptr_t)data[i] & (cuvil_dtype_align(tensors[i].dtype) - 1)) return 0;
  }
  return 1;
}

static cuvil_status bind(const cuvil_artefact *a, const int64_t *extents, int64_t *dims) {
  memset(dims, 0, a->dim_count * sizeof *dims);
  for (uint32_t i = 0; i < a->symbol_count; i++) {
    const int64_t *bounds = &a->symbol_bounds[2 * i];
    if (extents[i] < bounds[0] || extents[i] > bounds[1]) return CUVIL_SHAPE_MISMATCH;
    dims[i] = extents[i];
  }
  return a->dim_count && a->prepare(dims) ? CUVIL_SHAPE_MISMATCH : CUVIL_OK;
}

static void tell_shapes(const cuvil_artefact *a, const int64_t *dims, void *const *shapes) {
  for (uint32_t i = 0; i < a->output_count; i++) {
    const cuvil_tensor_info *t = &a->outputs[i];
    for (uint32_t d = 0; shapes[i] && d < t->rank; d++) {
      ((int64_t *)shapes[i])[d] = extent(t->dims[d], dims);
    }
  }
}

/* ---- what generated code may call: nothing else is ever asked for in one thread ---- */

static int32_t poll(cuvil_frame *frame) {
  (void)frame;
  return CUVIL_OK;
}

static const cuvil_runtime_api api = {
    .size = sizeof(cuvil_runtime_api), .version = CUVIL_ABI_VERSION, .poll = poll};

int32_t cuvil_embedded_run(const cuvil_artefact *a, void *memory, size_t bytes,
                           const int64_t *extents, void *const *data) {
  const cuvil_variant *variant = &a->variants[a->variant_count - 1];
  void *const *outputs = data + a->input_count;
  room r = {memory, memory ? bytes : 0};
  if (!data_is_sound(a->inputs, a->input_count, data) ||
      !data_is_sound(a->outputs, a->output_count, outputs)) {
    return CUVIL_INVALID_ARGUMENT;
  }
  int64_t *dims = take(&r, a->dim_count * sizeof *dims);
  if (!dims) return CUVIL_NEED_MEMORY;
  cuvil_status status = bind(a, extents, dims);
  if (status) return status;
  int64_t arena_bytes = extent(a->arena_bytes, dims);
  void *scratch = take(&r, variant->scratch_bytes);
  void *arena = arena_bytes < 0 ? NULL : take(&r, (uint64_t)arena_bytes);
  if (!scratch || !arena) return CUVIL_NEED_MEMORY;
  cuvil_frame frame = {.api = &api,
                       .arena = arena,
                       .weights = a->weights,
                       .io = data,
                       .dims = dims,
                       .scratch = scratch};
  status = (cuvil_status)(variant->main(&frame) & 0xff);
  if (!status) tell_shapes(a, dims, outputs + a->output_count);
  return status;
}
