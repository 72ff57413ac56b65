/* The runtime's own view of models and contexts, and the functions its files lend each other. */
#ifndef CUVIL_INTERNAL_H
#define CUVIL_INTERNAL_H

#include <stdatomic.h>

#include "cuvil/cuvil.h"

#define CUVIL_MESSAGE_BYTES 512
#define CUVIL_UNBOUNDED UINT64_MAX /* bytes of an output whose extent has no upper bound */
#if UINTPTR_MAX == UINT32_MAX      /* no tensor or arena is larger */
#define CUVIL_MAX_BYTES ((int64_t)INT32_MAX)
#else
#define CUVIL_MAX_BYTES ((int64_t)1 << 46)
#endif

/* Where the weights are, and what to undo at close. */
typedef struct cuvil_weights {
  const char *data;
  const void *mapped;
  size_t mapped_bytes;
  void *owned;
} cuvil_weights;

/* A device as a model has it: opened, its kernels loaded, its constants uploaded. */
typedef struct cuvil_device {
  const cuvil_device_api *api;
  const cuvil_device_info *info;
  void *device;
  void *weights;
  void **functions; /* one per kernel of info */
} cuvil_device;

/* ... and as a context has it. */
typedef struct cuvil_device_queue {
  void *queue;
  uint64_t arena_capacity;
} cuvil_device_queue;

struct cuvil_model {
  const cuvil_artefact *artefact;
  const cuvil_variant *variant;
  cuvil_weights weights;
  const cuvil_pool *pool; /* NULL: runs use the calling thread only */
  int32_t threads;        /* of the pool, used by one run */
  uint32_t flags;
  size_t scratch_bytes;         /* per thread, rounded to CUVIL_ARENA_ALIGN */
  uint32_t input_dims;          /* sum of the inputs' ranks */
  const cuvil_port_list *ports; /* NULL: values are the artefact's tensors */
  cuvil_device *devices;        /* as many as the artefact has */
};

/* Memory that generated code asked for during a run. */
typedef struct cuvil_block {
  struct cuvil_block *next;
  char padding[CUVIL_ARENA_ALIGN - sizeof(void *)];
} cuvil_block;

/* Memory for the bytes of strings that runs make. */
typedef struct cuvil_string_block {
  struct cuvil_string_block *next;
  int64_t used, size;
} cuvil_string_block;

struct cuvil_context {
  cuvil_frame frame;
  const cuvil_model *model;
  atomic_int busy, cancelled;
  int64_t time_limit_ns, deadline_ns;
  int64_t *prepared;      /* dim slots as prepare left them, for unchanged input shapes */
  int64_t *shapes;        /* input shapes of the last bind, one after the other */
  uint64_t *output_bytes; /* for those shapes, or CUVIL_UNBOUNDED */
  cuvil_value *tensors;   /* inputs, then outputs, where the model has ports */
  void **io;
  cuvil_device_queue *queues;   /* one per device */
  cuvil_device_memory *devices; /* what frame.devices shows of them */
  const cuvil_device *failed_device;
  cuvil_block *blocks;
  cuvil_string_block *strings;
  atomic_flag strings_taken; /* a thread is at work on `strings` */
  size_t arena_capacity, needed;
  void *owned;       /* created contexts: the memory of the context itself */
  void *owned_arena; /* ... and of its arena */
  uint8_t bound;     /* shapes, prepared and output_bytes hold */
  uint8_t has_unbounded;
  char message[CUVIL_MESSAGE_BYTES];
};

static inline size_t cuvil_round_up(size_t bytes) {
  return (bytes + CUVIL_ARENA_ALIGN - 1) / CUVIL_ARENA_ALIGN * CUVIL_ARENA_ALIGN;
}

/* The extent a dim of a tensor info means, given the slots. */
static inline int64_t cuvil_extent(int64_t dim, const int64_t *slots) {
  return dim >= 0 ? dim : slots[-(dim + 1)];
}

/* Where failures of an open are told. */
typedef struct cuvil_report {
  char *message;
  size_t room;
} cuvil_report;

/* Both write the message (cuvil_format's directives) and return `status`. */
cuvil_status cuvil_report_failure(const cuvil_report *report, cuvil_status status,
                                  const char *format, ...);
cuvil_status cuvil_context_fail(cuvil_context *context, cuvil_status status, const char *format,
                                ...);

/* artefact.c */
cuvil_status cuvil_check_artefact(const cuvil_artefact *artefact, const cuvil_report *report);
cuvil_status cuvil_choose_variant(const cuvil_artefact *artefact, const char *name,
                                  const cuvil_report *report, const cuvil_variant **variant);

/* weights.c */
cuvil_status cuvil_weights_open(const cuvil_artefact *artefact, const cuvil_options *options,
                                const cuvil_report *report, cuvil_weights *weights);
void cuvil_weights_close(cuvil_weights *weights);

/* context.c */
cuvil_status cuvil_context_reserve_arena(cuvil_context *context, int64_t bytes);

/* bind.c: checks the inputs and leaves frame.dims, prepared and output_bytes ready for a run. */
cuvil_status cuvil_bind(cuvil_context *context, const cuvil_value *inputs);
/* Tells at which site, and for which extents of the inputs, a condition on shapes does not hold. */
cuvil_status cuvil_fail_shapes(cuvil_context *context, uint32_t site);
/* Elements times element size; -1 when a dim is negative or the product is too large. */
int64_t cuvil_dense_bytes(const int64_t *shape, uint32_t rank, uint32_t element);
/* Bytes of the arena for these slots; -1 when no sensible number. */
int64_t cuvil_arena_bytes(const cuvil_artefact *artefact, const int64_t *slots);

/* ports.c: the caller's values as tensors, in context->tensors, and back; for models without ports
 * they are the same. */
int cuvil_ports_are_sound(const cuvil_artefact *artefact);
cuvil_status cuvil_spread_inputs(cuvil_context *context, const cuvil_value **inputs);
cuvil_status cuvil_spread_outputs(cuvil_context *context, cuvil_value **outputs);
void cuvil_gather_outputs(cuvil_context *context, cuvil_value *outputs);

/* launch.c: what generated code calls. */
extern const cuvil_runtime_api cuvil_api;
void cuvil_free_blocks(cuvil_context *context);
/* Forgets the strings of the last run, but keeps the newest block; frees all. */
void cuvil_reuse_strings(cuvil_context *context);
void cuvil_free_strings(cuvil_context *context);

int32_t cuvil_check_stop(cuvil_context *context);
void cuvil_profile_begin(cuvil_frame *frame, int32_t site);
void cuvil_profile_end(cuvil_frame *frame, int32_t site);

/* devices.c: of a model, then of a context. */
int cuvil_devices_are_sound(const cuvil_artefact *artefact);
cuvil_status cuvil_devices_open(cuvil_model *model, const cuvil_options *options,
                                const cuvil_report *report);
void cuvil_devices_close(cuvil_model *model);
cuvil_status cuvil_queues_open(cuvil_context *context);
void cuvil_queues_close(cuvil_context *context);
/* Arenas for these slots; what is there already is kept. */
cuvil_status cuvil_queues_reserve(cuvil_context *context, const int64_t *slots);
/* Returns when nothing is left to do, after a run that failed midway. */
void cuvil_queues_drain(cuvil_context *context);
/* What a device says about its last failure. */
const char *cuvil_device_reason(const cuvil_device *device, char *text, size_t room);

/* device_calls.c: the part of cuvil_api that reaches devices. */
int32_t cuvil_device_launch(cuvil_frame *frame, int32_t device, int32_t kernel,
                            const cuvil_device_buffer *buffers, int32_t buffer_count,
                            const int64_t *dims, int32_t dim_count, int32_t site);
int32_t cuvil_device_upload(cuvil_frame *frame, int32_t device, const cuvil_device_buffer *to,
                            const void *from, int64_t bytes, int32_t site);
int32_t cuvil_device_download(cuvil_frame *frame, int32_t device, void *to,
                              const cuvil_device_buffer *from, int64_t bytes, int32_t site);
int32_t cuvil_device_copy(cuvil_frame *frame, int32_t device, const cuvil_device_buffer *to,
                          const cuvil_device_buffer *from, int64_t bytes, int32_t site);
uint64_t cuvil_device_signal(cuvil_frame *frame, int32_t device);
int32_t cuvil_device_wait(cuvil_frame *frame, int32_t device, uint64_t ticket);

/* pool.c: a reference to the process-wide pool, grown to `threads` (0: the default count). */
const cuvil_pool *cuvil_default_pool(int32_t threads);

#endif
