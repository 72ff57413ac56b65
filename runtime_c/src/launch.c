/* What generated code calls during a run: kernels in parallel, memory, polls, profile rows. */
#include <stdatomic.h>
#include <string.h>

#include "arch.h"
#include "internal.h"
#include "platform.h"

/* Tasks are claimed in chunks; their cut depends on nothing but the task count. A thread begins
 * with the chunks of its own lane: neighbours in one kernel are neighbours in the next, whose data
 * its caches hold. Then it takes what is left in the others'. */
enum { MAX_CHUNKS = 256, MAX_LANES = 16 };

typedef struct lane {
  atomic_int next;
  char padding[CUVIL_ARENA_ALIGN - sizeof(atomic_int)];
} lane;

typedef struct launch {
  cuvil_context *context;
  cuvil_kernel kernel;
  void *const *buffers;
  int64_t tasks;
  int32_t chunks, lanes;
  atomic_int status;
  char padding[CUVIL_ARENA_ALIGN];
  lane lane[MAX_LANES];
} launch;

int32_t cuvil_check_stop(cuvil_context *c) {
  if (atomic_load_explicit(&c->cancelled, memory_order_relaxed)) return CUVIL_CANCELLED;
  return c->deadline_ns && cuvil_platform_now() > c->deadline_ns ? CUVIL_TIMED_OUT : CUVIL_OK;
}

static int32_t poll(cuvil_frame *frame) { return cuvil_check_stop(frame->runtime); }

/* Where part `part` of `parts` begins, which differ by one of `count` at most. */
static int64_t start_of(int64_t count, int64_t parts, int64_t part) {
  int64_t size = count / parts, larger = count % parts;
  return part * size + (part < larger ? part : larger);
}

static void work_in_lane(launch *l, int32_t number, char *scratch) {
  cuvil_context *c = l->context;
  int64_t last = start_of(l->chunks, l->lanes, number + 1);
  while (!atomic_load_explicit(&l->status, memory_order_relaxed)) {
    int64_t chunk = atomic_fetch_add_explicit(&l->lane[number].next, 1, memory_order_relaxed);
    if (chunk >= last) return;
    int64_t begin = start_of(l->tasks, l->chunks, chunk);
    int64_t end = start_of(l->tasks, l->chunks, chunk + 1);
    int32_t status = cuvil_check_stop(c);
    if (!status) status = l->kernel(l->buffers, c->frame.dims, begin, end, scratch);
    if (status) atomic_store(&l->status, status);
  }
}

static void work(launch *l, int32_t worker) {
  cuvil_context *c = l->context;
  char *scratch = (char *)c->frame.scratch + (size_t)worker * c->model->scratch_bytes;
  if (c->model->scratch_bytes) memset(scratch, 0, 8);
  for (int32_t i = 0; i < l->lanes; i++) {
    work_in_lane(l, (worker + i) % l->lanes, scratch);
  }
}

static void work_on_thread(void *argument, int32_t worker) {
  launch *l = argument;
  int flush = worker && !(l->context->model->flags & CUVIL_KEEP_DENORMALS);
  uint64_t control = flush ? cuvil_flush_begin() : 0;
  work(l, worker);
  if (flush) cuvil_flush_end(control);
}

static void begin_launch(launch *l, cuvil_context *c, int64_t tasks, int32_t threads) {
  l->context = c;
  l->tasks = tasks;
  l->chunks = tasks < MAX_CHUNKS ? (int32_t)tasks : MAX_CHUNKS;
  l->lanes = threads < MAX_LANES ? threads : MAX_LANES;
  atomic_init(&l->status, CUVIL_OK);
  for (int32_t i = 0; i < l->lanes; i++) {
    atomic_init(&l->lane[i].next, (int32_t)start_of(l->chunks, l->lanes, i));
  }
}

static int32_t parallel_for(cuvil_frame *frame, cuvil_kernel kernel, void *const *buffers,
                            int64_t tasks, int32_t site) {
  cuvil_context *c = frame->runtime;
  const cuvil_pool *pool = c->model->pool;
  launch l;
  frame->site = site;
  if (tasks <= 0) return CUVIL_OK;
  int32_t limit = tasks < c->model->threads ? (int32_t)tasks : c->model->threads;
  begin_launch(&l, c, tasks, limit);
  l.kernel = kernel;
  l.buffers = buffers;
  if (limit <= 1 || pool->run(pool->state, work_on_thread, &l, limit)) work(&l, 0);
  return atomic_load_explicit(&l.status, memory_order_relaxed);
}

static void *allocate(cuvil_frame *frame, int64_t bytes) {
  cuvil_context *c = frame->runtime;
  if (bytes < 0 || bytes > CUVIL_MAX_BYTES) return NULL;
  cuvil_block *block = cuvil_platform_allocate(sizeof *block + (size_t)bytes);
  if (!block) return NULL;
  block->next = c->blocks;
  c->blocks = block;
  return block + 1;
}

void cuvil_free_blocks(cuvil_context *context) {
  for (cuvil_block *block = context->blocks, *next; block; block = next) {
    next = block->next;
    cuvil_platform_free(block);
  }
  context->blocks = NULL;
}

enum { LEAST_STRINGS = 4096, MOST_STRINGS = 1 << 24 }; /* bytes of the first, of later blocks */

/* A block with room for `bytes`, the context's newest: twice as large as the one before. */
static cuvil_string_block *string_block(cuvil_context *c, int64_t bytes) {
  cuvil_string_block *last = c->strings;
  if (last && last->size - last->used >= bytes) return last;
  int64_t size = last ? last->size * 2 : LEAST_STRINGS;
  if (size > MOST_STRINGS) size = MOST_STRINGS;
  if (size < bytes) size = bytes;
  cuvil_string_block *block = cuvil_platform_allocate(sizeof *block + (size_t)size);
  if (!block) return NULL;
  *block = (cuvil_string_block){last, 0, size};
  c->strings = block;
  return block;
}

static void *string_bytes(cuvil_frame *frame, int64_t bytes) {
  cuvil_context *c = frame->runtime;
  if (bytes < 0 || bytes > CUVIL_MAX_BYTES) return NULL;
  while (atomic_flag_test_and_set_explicit(&c->strings_taken, memory_order_acquire)) cuvil_pause();
  cuvil_string_block *block = string_block(c, bytes);
  char *room = block ? (char *)(block + 1) + block->used : NULL;
  if (block) block->used += bytes;
  atomic_flag_clear_explicit(&c->strings_taken, memory_order_release);
  return room;
}

static void free_strings(cuvil_string_block *block) {
  for (cuvil_string_block *next; block; block = next) {
    next = block->next;
    cuvil_platform_free(block);
  }
}

void cuvil_reuse_strings(cuvil_context *context) {
  cuvil_string_block *newest = context->strings;
  free_strings(newest->next);
  newest->next = NULL;
  newest->used = 0;
}

void cuvil_free_strings(cuvil_context *context) {
  free_strings(context->strings);
  context->strings = NULL;
}

void cuvil_profile_begin(cuvil_frame *frame, int32_t site) {
  cuvil_profile *profile = frame->profile;
  cuvil_profile_row *row = &profile->rows[profile->count % profile->capacity];
  row->site = site;
  row->begin_ns = row->end_ns = cuvil_platform_now();
}

void cuvil_profile_end(cuvil_frame *frame, int32_t site) {
  cuvil_profile *profile = frame->profile;
  profile->rows[profile->count % profile->capacity].end_ns = cuvil_platform_now();
  profile->count++;
  (void)site;
}

const cuvil_runtime_api cuvil_api = {
    .size = sizeof(cuvil_runtime_api),
    .version = CUVIL_ABI_VERSION,
    .parallel_for = parallel_for,
    .allocate = allocate,
    .poll = poll,
    .profile_begin = cuvil_profile_begin,
    .profile_end = cuvil_profile_end,
    .device_launch = cuvil_device_launch,
    .device_upload = cuvil_device_upload,
    .device_download = cuvil_device_download,
    .device_copy = cuvil_device_copy,
    .device_signal = cuvil_device_signal,
    .device_wait = cuvil_device_wait,
    .string_bytes = string_bytes,
};
