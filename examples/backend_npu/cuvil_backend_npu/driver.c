/* What Cuvil's runtime calls of an npu: cuvil/device.h in terms of npu.h. Each queue has a thread
 * that does its work in order. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuvil/device.h"
#include "npu.h"

typedef struct task {
  struct task *next;
  enum { UPLOAD, DOWNLOAD, COPY, LAUNCH } kind;
  const void *from;
  void *to;
  uint64_t bytes;
  npu_launch launch; /* a transfer has its addresses in `operands` */
} task;

typedef struct {
  npu *chip;
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  task *first, **last;
  uint64_t added, done;
  int32_t failed; /* the first failure that nobody has heard of */
  int closing;
} queue;

/* A bank's number in the shape of a pointer: the host can do nothing with it. */
static npu_address address(const cuvil_device_buffer *buffer) {
  return (npu_address){(uint32_t)(uintptr_t)buffer->memory, buffer->offset};
}

static int32_t device_open(const cuvil_device_api *api, void **chip) {
  (void)api;
  *chip = npu_power_on();
  return *chip ? CUVIL_OK : CUVIL_OUT_OF_MEMORY;
}

static void device_close(void *chip) { npu_power_off(chip); }

static int32_t device_allocate(void *chip, uint64_t bytes, void **memory) {
  uint32_t bank = npu_bank_open(chip, bytes);
  *memory = (void *)(uintptr_t)bank;
  return bank ? CUVIL_OK : CUVIL_OUT_OF_MEMORY;
}

static void device_free(void *chip, void *memory) {
  npu_bank_close(chip, (uint32_t)(uintptr_t)memory);
}

/* Kernels of another chip are refused by kind, those of another compiler by the program's head. */
static int32_t load(void *chip, const cuvil_device_kernel *kernel, void **function) {
  const int32_t *words = kernel->blob;
  size_t count = kernel->blob_bytes / sizeof *words;
  if (strcmp(kernel->kind, "npu-v2") || count < 2 || words[0] != NPU_MAGIC) {
    npu_fail(chip, "code for %.20s, not for npu-v2", kernel->kind);
    return CUVIL_BAD_ARTEFACT;
  }
  if (words[1] != NPU_VERSION) {
    npu_fail(chip, "instructions of version %d, not %d", (int)words[1], NPU_VERSION);
    return CUVIL_BAD_ARTEFACT;
  }
  npu_launch *made = calloc(1, sizeof *made);
  if (!made) return CUVIL_OUT_OF_MEMORY;
  made->words = words + 2; /* the artefact keeps them where they are */
  made->count = count - 2;
  *function = made;
  return CUVIL_OK;
}

static void unload(void *chip, void *function) {
  (void)chip;
  free(function);
}

static int perform(npu *chip, const task *t) {
  const npu_address *at = t->launch.operands;
  switch (t->kind) {
    case UPLOAD:
      return npu_write(chip, at[0], t->from, t->bytes);
    case DOWNLOAD:
      return npu_read(chip, t->to, at[0], t->bytes);
    case COPY:
      return npu_copy(chip, at[0], at[1], t->bytes);
    default:
      return npu_execute(chip, &t->launch);
  }
}

static void *work(void *state) {
  queue *q = state;
  pthread_mutex_lock(&q->lock);
  while (!q->closing || q->first) {
    task *t = q->first;
    if (!t) {
      pthread_cond_wait(&q->changed, &q->lock);
      continue;
    }
    pthread_mutex_unlock(&q->lock);
    int failed = perform(q->chip, t);
    pthread_mutex_lock(&q->lock);
    if (failed && !q->failed) q->failed = CUVIL_INTERNAL;
    if (!(q->first = t->next)) q->last = &q->first;
    free(t);
    q->done++;
    pthread_cond_broadcast(&q->changed);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static int32_t queue_open(void *chip, void **result) {
  queue *q = calloc(1, sizeof *q);
  if (!q) return CUVIL_OUT_OF_MEMORY;
  q->chip = chip;
  q->last = &q->first;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->changed, NULL);
  if (pthread_create(&q->thread, NULL, work, q)) return free(q), CUVIL_OUT_OF_MEMORY;
  *result = q;
  return CUVIL_OK;
}

static void queue_close(void *state) {
  queue *q = state;
  pthread_mutex_lock(&q->lock);
  q->closing = 1;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  pthread_join(q->thread, NULL);
  free(q);
}

static int32_t add(queue *q, task made) {
  task *t = malloc(sizeof *t);
  if (!t) return CUVIL_OUT_OF_MEMORY;
  *t = made;
  pthread_mutex_lock(&q->lock);
  *q->last = t;
  q->last = &t->next;
  q->added++;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return CUVIL_OK;
}

static int32_t upload(void *q, const cuvil_device_buffer *to, const void *from, uint64_t bytes) {
  task t = {.kind = UPLOAD, .from = from, .bytes = bytes, .launch.operands = {address(to)}};
  return add(q, t);
}

static int32_t download(void *q, void *to, const cuvil_device_buffer *from, uint64_t bytes) {
  task t = {.kind = DOWNLOAD, .to = to, .bytes = bytes, .launch.operands = {address(from)}};
  return add(q, t);
}

static int32_t copy(void *q, const cuvil_device_buffer *to, const cuvil_device_buffer *from,
                    uint64_t bytes) {
  task t = {.kind = COPY, .bytes = bytes, .launch.operands = {address(to), address(from)}};
  return add(q, t);
}

static int32_t launch(void *q, void *function, const cuvil_device_buffer *buffers, uint32_t count,
                      const int64_t *dims, uint32_t dim_count) {
  task t = {.kind = LAUNCH, .launch = *(npu_launch *)function};
  if (count > NPU_OPERANDS || dim_count > NPU_DIMS) return CUVIL_INVALID_ARGUMENT;
  for (uint32_t i = 0; i < count; i++) t.launch.operands[i] = address(&buffers[i]);
  if (dim_count) memcpy(t.launch.dims, dims, dim_count * sizeof *dims);
  return add(q, t);
}

static uint64_t signal_queue(void *state) {
  queue *q = state;
  pthread_mutex_lock(&q->lock);
  uint64_t ticket = q->added + 1; /* one more than the tasks before it: never 0 */
  pthread_mutex_unlock(&q->lock);
  return ticket;
}

static int32_t wait_queue(void *state, uint64_t ticket) {
  queue *q = state;
  pthread_mutex_lock(&q->lock);
  while (q->done + 1 < ticket) pthread_cond_wait(&q->changed, &q->lock);
  int32_t failed = q->failed;
  q->failed = CUVIL_OK;
  pthread_mutex_unlock(&q->lock);
  return failed;
}

static void message(void *chip, char *text, uint64_t room) { npu_fault(chip, text, room); }

const cuvil_device_api npu_driver = {
    .size = sizeof(cuvil_device_api),
    .version = CUVIL_DEVICE_API_VERSION,
    .name = "npu",
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
