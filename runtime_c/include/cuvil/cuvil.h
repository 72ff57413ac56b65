/* Public C API of the Cuvil runtime: open a compiled model, run it, close it.
 *
 * A generated library exports these functions with its own prefix (`bert_open`, `bert_run`, ...)
 * and nothing else; `bert.h` declares them over the types of this header. With the prefix replaced:
 *
 *   cuvil_model *model;
 *   cuvil_context *context;
 *   if (cuvil_model_open(&bert_artefact, NULL, &model) != CUVIL_OK) return 1;
 *   if (cuvil_context_create(model, &context) != CUVIL_OK) return 1;
 *   cuvil_value x = cuvil_tensor(CUVIL_F32, data, 2, (const int64_t[]){1, 4});
 *   cuvil_value y = cuvil_output(result, sizeof result);
 *   cuvil_status status = cuvil_run(model, context, &x, &y);
 *   if (status != CUVIL_OK) fprintf(stderr, "%s\n", cuvil_context_message(context));
 *   cuvil_context_destroy(context);
 *   cuvil_model_close(model);
 *
 * A model is immutable: any number of threads may use it, each with a context of its own. A context
 * holds what one run needs (arena, dims, scratch) and serves one run at a time. Nothing allocates
 * after a context is made, but for a created context whose arena has to grow, for outputs whose
 * memory is the runtime's and for the bytes of strings that a run makes.
 */
#ifndef CUVIL_CUVIL_H
#define CUVIL_CUVIL_H

#include <string.h>

#include "abi.h"
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuvil_model cuvil_model;
typedef struct cuvil_context cuvil_context;

/* ---- values ---- */

/* One input or output. Inputs: the caller fills all. Outputs: the caller gives data and capacity,
 * the runtime writes dtype, rank and shape. Data is dense, row-major, aligned to its element; that
 * of a sequence is an array of values, shape[0] of them. */
typedef struct cuvil_value {
  uint8_t kind;  /* cuvil_kind */
  uint8_t dtype; /* cuvil_dtype */
  uint8_t rank;
  uint8_t borrowed; /* output: data is the runtime's own, see cuvil_output */
  uint8_t reserved[4];
  void *data; /* inputs are never written */
  uint64_t byte_offset;
  /* Bytes that may be used from data + byte_offset. Input: 0 means unchecked. Output: when too
   * small the run gives CUVIL_NEED_MEMORY and writes the size needed here. */
  uint64_t capacity;
  const int64_t *strides; /* in elements; NULL is dense; other than dense is refused */
  int64_t shape[CUVIL_MAX_RANK];
} cuvil_value;

/* An input tensor over `data`. */
static inline cuvil_value cuvil_tensor(cuvil_dtype dtype, const void *data, unsigned rank,
                                       const int64_t *shape) {
  cuvil_value value;
  memset(&value, 0, sizeof value);
  value.dtype = (uint8_t)dtype;
  value.rank = (uint8_t)rank;
  value.data = (void *)data;
  for (unsigned i = 0; i < rank && i < CUVIL_MAX_RANK; i++) value.shape[i] = shape[i];
  return value;
}

/* An output of `capacity` bytes at `data`. (NULL, 0) asks for memory of the runtime's, as much as
 * the run finds to be needed: it stays valid until the context's next run. */
static inline cuvil_value cuvil_output(void *data, uint64_t capacity) {
  cuvil_value value;
  memset(&value, 0, sizeof value);
  value.data = data;
  value.capacity = capacity;
  return value;
}

/* A sequence of the `count` values at `items`, which the caller keeps: an input of tensors, or an
 * output of places for them. The number of elements is the model's: an input with another is
 * refused; an output with fewer places gives CUVIL_NEED_MEMORY and is told how many there are. */
static inline cuvil_value cuvil_sequence(cuvil_value *items, int64_t count) {
  cuvil_value value = cuvil_output(items, (uint64_t)count * sizeof *items);
  value.kind = CUVIL_SEQUENCE;
  value.rank = 1;
  value.shape[0] = count;
  return value;
}

/* An optional that is not there; one that is there is the tensor or sequence itself. Whether it is,
 * is known when a model is compiled: an input that differs from that is refused, an output that is
 * not there gets this kind. */
static inline cuvil_value cuvil_none(void) {
  cuvil_value value = cuvil_output(NULL, 0);
  value.kind = CUVIL_NONE;
  return value;
}

/* ---- thread pool ---- */

#define CUVIL_POOL_VERSION 1u

/* A pool of threads as seen by models; share one by passing it to each model's options. The struct
 * may come from the runtime (cuvil_pool_create) or be the program's own. */
typedef struct cuvil_pool {
  uint32_t size;    /* sizeof(cuvil_pool) */
  uint32_t version; /* CUVIL_POOL_VERSION */
  void *state;
  /* How many threads work on one job at most, the caller included. */
  int32_t (*threads)(void *state);
  /* Calls body(argument, worker) once on the caller with worker 0, and on at most limit - 1 other
   * threads with distinct workers in [1, limit); returns when all calls have. Returns non-zero,
   * having called nothing, when another job holds the pool: the caller then works alone. */
  int32_t (*run)(void *state, void (*body)(void *argument, int32_t worker), void *argument,
                 int32_t limit);
  void (*retain)(void *state);
  void (*release)(void *state); /* the last release ends and joins the threads */
} cuvil_pool;

/* A pool of `threads` threads, the caller counted; 0 is cuvil_default_threads(). One reference. */
cuvil_status cuvil_pool_create(int32_t threads, const cuvil_pool **pool);
/* Drops the reference of cuvil_pool_create. */
void cuvil_pool_release(const cuvil_pool *pool);
/* CUVIL_NUM_THREADS when set, else the least of the affinity mask and the cgroup's cpu quota; 0
 * when what is set is not a number above 0: opening a model on the default pool then fails. */
int32_t cuvil_default_threads(void);

/* ---- models ---- */

/* Copies `bytes` bytes at `offset` of the weights file to `to`; returns 0, or non-zero to fail. */
typedef int32_t (*cuvil_weights_reader)(void *user, uint64_t offset, void *to, uint64_t bytes);

/* cuvil_options::flags */
#define CUVIL_KEEP_DENORMALS 1u /* do not flush denormal numbers to zero during runs */
#define CUVIL_FLAT 2u           /* values are the artefact's tensors, sequences laid out in a row */

/* Zero is every field's default: `cuvil_options options = CUVIL_OPTIONS_INIT;`. */
typedef struct cuvil_options {
  uint32_t size; /* sizeof(cuvil_options): older callers stay valid when the struct grows */
  uint32_t flags;
  int32_t threads;        /* at most so many in a run; 0: all of the pool; 1: no pool */
  uint32_t message_bytes; /* room at `message` */
  char *message;          /* receives one line about a failed open */
  const cuvil_pool *pool; /* retained until close; NULL: the process-wide default pool */
  /* Where weights that are not embedded come from; the first one given counts. None: the file the
   * artefact names, beside the library that holds the artefact. */
  const char *weights_path;
  const void *weights_image; /* a whole weights file in memory; must outlive the model */
  uint64_t weights_image_bytes;
  cuvil_weights_reader weights_reader;
  void *weights_user;
  const char *variant; /* by name (also CUVIL_VARIANT), instead of the best one this cpu runs */
  /* Devices that a model may use, found by name; must outlive the model. */
  const cuvil_device_api *const *devices;
  uint32_t device_count;
  uint32_t reserved;
} cuvil_options;

#define CUVIL_OPTIONS_INIT \
  {sizeof(cuvil_options), 0, 0, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, 0, 0}

/* Checks the artefact, picks a variant for this cpu, maps the weights. `options` may be NULL.
 * The artefact must outlive the model. Fails with CUVIL_BAD_ARTEFACT, CUVIL_UNSUPPORTED_CPU,
 * CUVIL_IO_ERROR, CUVIL_OUT_OF_MEMORY, CUVIL_INVALID_ARGUMENT (a device that is missing) or what
 * a device answers. */
cuvil_status cuvil_model_open(const cuvil_artefact *artefact, const cuvil_options *options,
                              cuvil_model **model);
/* Call after the last of its contexts is destroyed. NULL is fine. */
void cuvil_model_close(cuvil_model *model);
const cuvil_artefact *cuvil_model_artefact(const cuvil_model *model);
const char *cuvil_model_variant(const cuvil_model *model);
int32_t cuvil_model_threads(const cuvil_model *model);

/* ---- contexts ---- */

/* Bytes of memory a context needs. symbols: the largest values to come, one per symbol of the
 * artefact; NULL: the symbols' upper bounds (CUVIL_INVALID_ARGUMENT where the arena depends on
 * symbols and one has no bound). */
cuvil_status cuvil_context_size(const cuvil_model *model, const int64_t *symbols, size_t *bytes);
/* Makes a context in the caller's memory (any alignment), which must outlive it. A run whose arena
 * does not fit gives CUVIL_NEED_MEMORY; cuvil_context_needed then says how much would. */
cuvil_status cuvil_context_init(const cuvil_model *model, void *memory, size_t bytes,
                                cuvil_context **context);
/* Makes a context in memory of its own, whose arena grows as runs need it. */
cuvil_status cuvil_context_create(const cuvil_model *model, cuvil_context **context);
void cuvil_context_destroy(cuvil_context *context);
/* The memory the last CUVIL_NEED_MEMORY asked for, as cuvil_context_size counts it. */
size_t cuvil_context_needed(const cuvil_context *context);
size_t cuvil_context_arena_bytes(const cuvil_context *context);
/* One line about the last call that failed: the input or node, what was expected, what came. */
const char *cuvil_context_message(const cuvil_context *context);

/* ---- running ---- */

/* Runs the model once. inputs, outputs: as many values as the artefact has ports, or where it has
 * none, tensors. Inputs and outputs must not overlap. Every status of cuvil_status may result;
 * cuvil_context_message explains. */
cuvil_status cuvil_run(const cuvil_model *model, cuvil_context *context, const cuvil_value *inputs,
                       cuvil_value *outputs);
/* Checks and binds the input shapes without running, and writes each output's dtype, rank, shape
 * and capacity (the bytes it needs). An extent known only after the run is given by its upper
 * bound; where there is none the extent is -1 and the capacity 0. A sequence gets the number of its
 * elements, and those of them that have a place are filled in as any output. */
cuvil_status cuvil_shapes(const cuvil_model *model, cuvil_context *context,
                          const cuvil_value *inputs, cuvil_value *outputs);

/* From any thread: stops the run in flight, or when there is none the next one. */
void cuvil_context_cancel(cuvil_context *context);
/* Forgets a cancel that came too late for its run. */
void cuvil_context_uncancel(cuvil_context *context);
/* Runs longer than this end with CUVIL_TIMED_OUT at the next kernel; 0: no limit. */
void cuvil_context_set_time_limit(cuvil_context *context, int64_t nanoseconds);

/* One kernel launch: cuvil_artefact::sites[site] names it. Times of the monotonic clock. */
typedef struct cuvil_profile_row {
  int32_t site;
  int32_t reserved;
  int64_t begin_ns, end_ns;
} cuvil_profile_row;

/* A ring of rows: row i of a run is rows[i % capacity]; count goes on counting. */
typedef struct cuvil_profile {
  cuvil_profile_row *rows;
  uint64_t capacity, count;
} cuvil_profile;

/* Runs write to `profile` (the caller's, alive until replaced) from now on; NULL: none. */
void cuvil_context_set_profile(cuvil_context *context, cuvil_profile *profile);

/* ---- names ---- */

const char *cuvil_status_text(cuvil_status status);
/* numpy's name of the type, or "?". */
const char *cuvil_dtype_name(uint8_t dtype);
/* Bytes of one element, 0 for an unknown type. */
uint32_t cuvil_dtype_size(uint8_t dtype);
/* What the address of an element must be a multiple of. */
uint32_t cuvil_dtype_align(uint8_t dtype);

#ifdef __cplusplus
}
#endif
#endif
