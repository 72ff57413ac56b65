/* The shim of the toy device. Its memory has addresses that the host cannot use, and work on a
 * queue is done when somebody waits for it and not before: a compiler that forgets a copy or a
 * wait, or reuses memory too early, gives wrong numbers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuvil/device.h"

enum { MAGIC = 0x31594f54, MAX_LETTERS = 12, MAX_BUFFERS = 3 };

/* What tests look at; read through toy_counts. */
struct {
  int64_t opened, allocated, queues, loaded, uploads, downloads, copies, launches, waits;
  int64_t fail_launches; /* set by a test: launches fail */
} toy_counts;

/* An address that the processor refuses: its upper bits are not a sign extension. */
static void *hide(void *memory) { return (void *)((uintptr_t)memory ^ 0x5a5a000000000000u); }

static char *reveal(const cuvil_device_buffer *buffer) {
  return (char *)hide(buffer->memory) + buffer->offset;
}

static int32_t device_open(const cuvil_device_api *api, void **device) {
  (void)api;
  toy_counts.opened++;
  *device = &toy_counts;
  return CUVIL_OK;
}

static void device_close(void *device) {
  (void)device;
  toy_counts.opened--;
}

static int32_t device_allocate(void *device, uint64_t bytes, void **memory) {
  (void)device;
  void *real = malloc(bytes);
  if (!real) return CUVIL_OUT_OF_MEMORY;
  memset(real, 0xff, bytes); /* NaN */
  toy_counts.allocated++;
  *memory = hide(real);
  return CUVIL_OK;
}

static void device_free(void *device, void *memory) {
  (void)device;
  toy_counts.allocated--;
  free(hide(memory));
}

/* A blob: a row of 32-bit numbers. Letters of a contraction with their extents (-1 - i: dims[i]),
 * then the letters of both operands and of the result. */
typedef struct {
  int32_t letters, extents[MAX_LETTERS];
  int32_t ranks[MAX_BUFFERS], axes[MAX_BUFFERS][MAX_LETTERS];
} function;

static int32_t read_function(const int32_t *word, size_t count, function *f) {
  const int32_t *end = word + count;
  if (count < 2 || *word++ != MAGIC) return CUVIL_BAD_ARTEFACT;
  f->letters = *word++;
  if (f->letters > MAX_LETTERS || end - word < f->letters) return CUVIL_BAD_ARTEFACT;
  for (int i = 0; i < f->letters; i++) f->extents[i] = *word++;
  for (int b = 0; b < MAX_BUFFERS; b++) {
    if (word == end || *word > MAX_LETTERS || end - word <= *word) return CUVIL_BAD_ARTEFACT;
    f->ranks[b] = *word++;
    for (int i = 0; i < f->ranks[b]; i++) f->axes[b][i] = *word++;
  }
  return word == end ? CUVIL_OK : CUVIL_BAD_ARTEFACT;
}

static int32_t load(void *device, const cuvil_device_kernel *kernel, void **result) {
  (void)device;
  if (strcmp(kernel->kind, "toy") || strcmp(kernel->symbol, "contract")) return CUVIL_BAD_ARTEFACT;
  function *f = malloc(sizeof *f);
  if (!f) return CUVIL_OUT_OF_MEMORY;
  int32_t status = read_function(kernel->blob, kernel->blob_bytes / sizeof(int32_t), f);
  if (status) {
    free(f);
    return status;
  }
  toy_counts.loaded++;
  *result = f;
  return CUVIL_OK;
}

static void unload(void *device, void *f) {
  (void)device;
  toy_counts.loaded--;
  free(f);
}

typedef struct task {
  struct task *next;
  enum { UPLOAD, DOWNLOAD, COPY, LAUNCH } kind;
  cuvil_device_buffer buffers[MAX_BUFFERS];
  const void *from;
  void *to;
  uint64_t bytes;
  const function *function;
  int64_t dims[MAX_LETTERS];
} task;

typedef struct {
  task *first, **last;
  uint64_t added, done;
} queue;

static int32_t queue_open(void *device, void **result) {
  (void)device;
  queue *q = calloc(1, sizeof *q);
  if (!q) return CUVIL_OUT_OF_MEMORY;
  q->last = &q->first;
  toy_counts.queues++;
  *result = q;
  return CUVIL_OK;
}

static void queue_close(void *state) {
  toy_counts.queues--;
  free(state);
}

static int32_t add(queue *q, task made) {
  task *t = malloc(sizeof *t);
  if (!t) return CUVIL_OUT_OF_MEMORY;
  *t = made;
  t->next = NULL;
  *q->last = t;
  q->last = &t->next;
  q->added++;
  return CUVIL_OK;
}

static int32_t upload(void *state, const cuvil_device_buffer *to, const void *from,
                      uint64_t bytes) {
  toy_counts.uploads++;
  return add(state, (task){.kind = UPLOAD, .buffers = {*to}, .from = from, .bytes = bytes});
}

static int32_t download(void *state, void *to, const cuvil_device_buffer *from, uint64_t bytes) {
  toy_counts.downloads++;
  return add(state, (task){.kind = DOWNLOAD, .buffers = {*from}, .to = to, .bytes = bytes});
}

static int32_t copy(void *state, const cuvil_device_buffer *to, const cuvil_device_buffer *from,
                    uint64_t bytes) {
  toy_counts.copies++;
  return add(state, (task){.kind = COPY, .buffers = {*to, *from}, .bytes = bytes});
}

static int32_t launch(void *state, void *f, const cuvil_device_buffer *buffers, uint32_t count,
                      const int64_t *dims, uint32_t dim_count) {
  if (toy_counts.fail_launches) return CUVIL_INTERNAL;
  if (count != MAX_BUFFERS || dim_count > MAX_LETTERS) return CUVIL_INVALID_ARGUMENT;
  toy_counts.launches++;
  task t = {.kind = LAUNCH, .function = f};
  memcpy(t.buffers, buffers, sizeof t.buffers);
  if (dim_count) memcpy(t.dims, dims, dim_count * sizeof *dims);
  return add(state, t);
}

/* out += a * b over all indices, one letter per level. */
static void contract(const function *f, const int64_t *extents, int64_t (*strides)[MAX_LETTERS],
                     int letter, const float *a, const float *b, float *out) {
  if (letter == f->letters) {
    *out += *a * *b;
    return;
  }
  for (int64_t i = 0; i < extents[letter]; i++) {
    contract(f, extents, strides, letter + 1, a + i * strides[0][letter],
             b + i * strides[1][letter], out + i * strides[2][letter]);
  }
}

static void run_contract(const task *t) {
  const function *f = t->function;
  int64_t extents[MAX_LETTERS], strides[MAX_BUFFERS][MAX_LETTERS] = {{0}}, size = 1;
  for (int i = 0; i < f->letters; i++) {
    extents[i] = f->extents[i] < 0 ? t->dims[-1 - f->extents[i]] : f->extents[i];
  }
  for (int b = 0; b < MAX_BUFFERS; b++) {
    size = 1;
    for (int i = f->ranks[b]; i-- > 0;) {
      strides[b][f->axes[b][i]] = size;
      size *= extents[f->axes[b][i]];
    }
  }
  float *out = (float *)reveal(&t->buffers[2]);
  memset(out, 0, (size_t)size * sizeof *out);
  contract(f, extents, strides, 0, (float *)reveal(&t->buffers[0]), (float *)reveal(&t->buffers[1]),
           out);
}

static void perform(const task *t) {
  switch (t->kind) {
    case UPLOAD:
      memcpy(reveal(&t->buffers[0]), t->from, t->bytes);
      break;
    case DOWNLOAD:
      memcpy(t->to, reveal(&t->buffers[0]), t->bytes);
      break;
    case COPY:
      memcpy(reveal(&t->buffers[0]), reveal(&t->buffers[1]), t->bytes);
      break;
    case LAUNCH:
      run_contract(t);
  }
}

static uint64_t signal_queue(void *state) { return ((queue *)state)->added + 1; }

static int32_t wait_queue(void *state, uint64_t ticket) {
  queue *q = state;
  toy_counts.waits++;
  while (q->first && q->done + 1 < ticket) {
    task *t = q->first;
    perform(t);
    q->first = t->next;
    if (!q->first) q->last = &q->first;
    q->done++;
    free(t);
  }
  return CUVIL_OK;
}

static void message(void *device, char *text, uint64_t room) {
  (void)device;
  snprintf(text, room, "%s", toy_counts.fail_launches ? "out of toys" : "");
}

const cuvil_device_api toy_device = {
    .size = sizeof(cuvil_device_api),
    .version = CUVIL_DEVICE_API_VERSION,
    .name = "toy",
    .open = device_open,
    .close = device_close,
    .allocate = device_allocate,
    .free = device_free,
    .load = load,
    .unload = unload,
    .queue_open = queue_open,
    .queue_close = queue_close,
    .upload = upload,
    .download = download,
    .copy = copy,
    .launch = launch,
    .signal = signal_queue,
    .wait = wait_queue,
    .message = message,
};
