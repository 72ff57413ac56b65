/* What POSIX does not have, on macOS, where threads have no affinity and processes no quota. */
#ifdef __APPLE__

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "platform.h"

/* Words share a few queues, so a wake calls all of its queue: waits may return early. */
enum { QUEUES = 8, WORD_STEP = 64 };

typedef struct queue {
  pthread_mutex_t lock;
  pthread_cond_t changed;
} queue;

#define EMPTY {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER}
static queue queues[QUEUES] = {EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY};

static queue *queue_of(const atomic_uint *word) {
  return &queues[(uintptr_t)word / WORD_STEP % QUEUES];
}

void cuvil_platform_wait(atomic_uint *word, unsigned expected) {
  queue *q = queue_of(word);
  pthread_mutex_lock(&q->lock);
  if (atomic_load(word) == expected) pthread_cond_wait(&q->changed, &q->lock);
  pthread_mutex_unlock(&q->lock);
}

/* The word has changed already: whoever holds the lock and has not seen it is in the queue. */
void cuvil_platform_wake(atomic_uint *word, int count) {
  queue *q = queue_of(word);
  if (count <= 0) return;
  pthread_mutex_lock(&q->lock);
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
}

int32_t cuvil_platform_cpu(void) { return -1; }

int32_t cuvil_platform_thread_id(void) {
  uint64_t id = 0;
  pthread_threadid_np(NULL, &id);
  return (int32_t)id;
}

void cuvil_platform_place(int32_t thread, int32_t cpu, int32_t threads) {
  (void)thread, (void)cpu, (void)threads;
}

atomic_int *cuvil_platform_fork_mark(void) { return NULL; }

void cuvil_platform_fork_mark_free(atomic_int *mark) { (void)mark; }

int32_t cuvil_platform_cpu_count(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : (int32_t)count;
}

int cuvil_platform_library_path(const void *address, char *path, size_t room) {
  Dl_info found;
  if (!dladdr(address, &found) || !found.dli_fname) return 1;
  size_t length = strlen(found.dli_fname);
  if (length >= room) return 1;
  memcpy(path, found.dli_fname, length + 1);
  return 0;
}

#endif
