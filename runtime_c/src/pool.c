/* The thread pool. One atomic word holds the job's life: a worker joins by a compare-and-swap that
 * takes a seat of an open job, so a job never waits for a worker that is slow to wake. */
#include <stdatomic.h>
#include <string.h>

#include "arch.h"
#include "cuvil/cuvil.h"
#include "internal.h"
#include "platform.h"

enum { MAX_THREADS = 256, SPIN_NS = 200000, SPINS_PER_CLOCK = 32 };

/* state: generation << 33 | open << 32 | free seats << 16 | active workers */
#define ACTIVE_MASK 0xffffu
#define SEAT ((uint64_t)1 << 16)
#define SEATS(state) ((int32_t)(((state) >> 16) & 0xffffu))
#define OPEN ((uint64_t)1 << 32)
#define GENERATION(state) ((state) >> 33)

typedef struct pool {
  cuvil_pool interface; /* first: a cuvil_pool of this file is a pool */
  atomic_int references;
  atomic_int threads; /* wanted, the caller counted */
  atomic_int busy;    /* a job holds the pool */
  atomic_int stopping;
  _Atomic int64_t process; /* whose threads these are; -1 while a fork's child resets the pool */
  atomic_int *mark;        /* not 0 where `process` is this one, without asking; or NULL */
  int32_t started;         /* workers; guarded by busy */
  int32_t spin_ns;
  int32_t caller_cpu; /* workers keep off it; guarded by busy, like the next */
  int32_t placed;     /* workers that know */
  atomic_int born;    /* workers whose name is in `ids` */
  void (*body)(void *argument, int32_t worker);
  void *argument;
  int32_t limit;
  char padding[CUVIL_ARENA_ALIGN];
  _Atomic uint64_t state;
  atomic_uint epoch;    /* workers sleep on it */
  atomic_uint sleepers; /* how many do */
  atomic_uint finished; /* the caller sleeps on it */
  atomic_uint caller_sleeps;
  cuvil_thread workers[MAX_THREADS];
  _Atomic int32_t ids[MAX_THREADS]; /* of the system, in the order that workers began */
} pool;

int32_t cuvil_default_threads(void) {
  const char *text = cuvil_platform_environment("CUVIL_NUM_THREADS");
  int32_t count = text && *text ? 0 : cuvil_platform_cpu_count();
  for (; text && *text >= '0' && *text <= '9'; text++) {
    if (count <= MAX_THREADS) count = count * 10 + (*text - '0');
  }
  if (text && *text) return 0;
  return count > MAX_THREADS ? MAX_THREADS : count;
}

/* Takes a seat of an open job other than `*seen`, which becomes the one looked at; returns the
 * worker's number, or 0. */
static int32_t join_job(pool *p, uint64_t *seen) {
  uint64_t state = atomic_load(&p->state), last = *seen;
  while (GENERATION(state) != last && (state & OPEN) && SEATS(state) > 0) {
    if (atomic_compare_exchange_weak(&p->state, &state, state - SEAT + 1)) {
      *seen = GENERATION(state);
      return p->limit - SEATS(state);
    }
  }
  *seen = GENERATION(state);
  return 0;
}

static void leave_job(pool *p) {
  uint64_t before = atomic_fetch_sub(&p->state, 1);
  if ((before & OPEN) || (before & ACTIVE_MASK) != 1) return;
  atomic_fetch_add(&p->finished, 1);
  if (atomic_load(&p->caller_sleeps)) cuvil_platform_wake(&p->finished, 1);
}

/* True when `state` left generation `seen` within the spin time. */
static int spin_for_job(pool *p, uint64_t seen) {
  int64_t end = 0;
  for (;;) {
    for (int i = 0; i < SPINS_PER_CLOCK; i++) {
      if (GENERATION(atomic_load_explicit(&p->state, memory_order_acquire)) != seen) return 1;
      cuvil_pause();
    }
    int64_t now = cuvil_platform_now();
    if (!end) end = now + p->spin_ns;
    if (now >= end || atomic_load(&p->stopping)) return 0;
  }
}

/* The epoch is read before the state: a job published in between makes the wait return at once. */
static void sleep_for_job(pool *p, uint64_t seen) {
  unsigned epoch = atomic_load(&p->epoch);
  atomic_fetch_add(&p->sleepers, 1);
  if (GENERATION(atomic_load(&p->state)) == seen && !atomic_load(&p->stopping)) {
    cuvil_platform_wait(&p->epoch, epoch);
  }
  atomic_fetch_sub(&p->sleepers, 1);
}

static void *worker_main(void *argument) {
  pool *p = argument;
  uint64_t seen = 0;
  p->ids[atomic_fetch_add(&p->born, 1)] = cuvil_platform_thread_id();
  while (!atomic_load(&p->stopping)) {
    int32_t worker = join_job(p, &seen);
    if (worker) {
      p->body(p->argument, worker);
      leave_job(p);
    }
    if (!spin_for_job(p, seen)) sleep_for_job(p, seen);
  }
  return NULL;
}

/* Starts the workers that are still missing; the caller holds `busy`. */
static void start_workers(pool *p) {
  while (p->started < atomic_load(&p->threads) - 1) {
    if (cuvil_platform_thread_start(&p->workers[p->started], worker_main, p)) return;
    p->started++;
  }
}

static int try_claim(pool *p) {
  return !atomic_load_explicit(&p->busy, memory_order_relaxed) && !atomic_exchange(&p->busy, 1);
}

static void unclaim(pool *p) { atomic_store(&p->busy, 0); }

/* In a fork's child the workers are gone, and a job of another thread may be left half done: one
 * thread resets the pool, others find it busy. */
static int reset_after_fork(pool *p, int64_t process) {
  int64_t owner = atomic_load(&p->process);
  if (owner == process) return 1;
  if (owner == -1 || !atomic_compare_exchange_strong(&p->process, &owner, -1)) return 0;
  uint64_t generation = GENERATION(atomic_load(&p->state));
  atomic_store(&p->state, generation << 33);
  atomic_store(&p->sleepers, 0);
  atomic_store(&p->caller_sleeps, 0);
  p->started = p->placed = 0;
  for (int32_t i = atomic_exchange(&p->born, 0); i-- > 0;) atomic_store(&p->ids[i], 0);
  atomic_store(&p->busy, 0);
  atomic_store(&p->process, process);
  return 1;
}

/* Asking for the process at each job takes a tenth of a microsecond. */
static int is_own(pool *p) {
  if (p->mark && atomic_load(p->mark)) return 1;
  if (!reset_after_fork(p, cuvil_platform_process())) return 0;
  if (p->mark) atomic_store(p->mark, 1);
  return 1;
}

/* The caller's cpu is for the caller, those of its node for the workers: a look at its number a
 * job, system calls when it moved. */
static void place_workers(pool *p) {
  int32_t cpu = cuvil_platform_cpu(), born = atomic_load(&p->born);
  if (cpu == p->caller_cpu && born == p->placed) return;
  p->caller_cpu = cpu;
  p->placed = 0;
  for (int32_t i = 0; i < born; i++) {
    int32_t id = atomic_load(&p->ids[i]);
    if (!id) continue; /* it is about to be there */
    cuvil_platform_place(id, cpu, p->started + 1);
    p->placed++;
  }
}

static void publish(pool *p, int32_t seats) {
  uint64_t generation = GENERATION(atomic_load(&p->state)) + 1;
  uint64_t state = generation << 33 | (seats > 0 ? OPEN : 0) | (uint64_t)seats * SEAT;
  atomic_store(&p->state, state);
  atomic_fetch_add(&p->epoch, 1);
  if (atomic_load(&p->sleepers)) cuvil_platform_wake(&p->epoch, seats);
}

static int all_left(pool *p) { return !(atomic_load(&p->state) & ACTIVE_MASK); }

static void wait_until_left(pool *p) {
  atomic_fetch_and(&p->state, ~OPEN);
  for (int i = 0; i < SPINS_PER_CLOCK * 64; i++) {
    if (all_left(p)) return;
    cuvil_pause();
  }
  atomic_store(&p->caller_sleeps, 1);
  for (;;) {
    unsigned finished = atomic_load(&p->finished);
    if (all_left(p)) break;
    cuvil_platform_wait(&p->finished, finished);
  }
  atomic_store(&p->caller_sleeps, 0);
}

static int32_t pool_run(void *state, void (*body)(void *argument, int32_t worker), void *argument,
                        int32_t limit) {
  pool *p = state;
  if (!is_own(p) || !try_claim(p)) return 1;
  start_workers(p);
  int32_t seats = (limit <= p->started ? limit : p->started + 1) - 1;
  p->body = body;
  p->argument = argument;
  p->limit = seats + 1;
  place_workers(p);
  publish(p, seats);
  body(argument, 0);
  wait_until_left(p);
  unclaim(p);
  return 0;
}

static int32_t pool_threads(void *state) { return atomic_load(&((pool *)state)->threads); }

static void pool_retain(void *state) { atomic_fetch_add(&((pool *)state)->references, 1); }

static void pool_free(pool *p) {
  atomic_store(&p->stopping, 1);
  atomic_fetch_add(&p->epoch, 1);
  cuvil_platform_wake(&p->epoch, MAX_THREADS);
  if (atomic_load(&p->process) == cuvil_platform_process()) {
    for (int32_t i = 0; i < p->started; i++) cuvil_platform_thread_join(&p->workers[i]);
  }
  cuvil_platform_fork_mark_free(p->mark);
  cuvil_platform_free(p);
}

static void pool_release(void *state) {
  if (atomic_fetch_sub(&((pool *)state)->references, 1) == 1) pool_free(state);
}

static pool *pool_new(int32_t threads, void (*release)(void *state)) {
  pool *p = cuvil_platform_allocate(sizeof *p);
  if (!p) return NULL;
  memset(p, 0, sizeof *p);
  cuvil_pool interface = {sizeof(cuvil_pool), CUVIL_POOL_VERSION, p,      pool_threads,
                          pool_run,           pool_retain,        release};
  p->interface = interface;
  atomic_store(&p->references, 1);
  atomic_store(&p->threads, threads);
  atomic_store(&p->process, cuvil_platform_process());
  p->mark = cuvil_platform_fork_mark();
  p->spin_ns = threads > cuvil_platform_cpu_count() ? 0 : SPIN_NS;
  start_workers(p);
  return p;
}

cuvil_status cuvil_pool_create(int32_t threads, const cuvil_pool **result) {
  if (!result || threads < 0) return CUVIL_INVALID_ARGUMENT;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (!threads) threads = cuvil_default_threads();
  if (!threads) return CUVIL_INVALID_ARGUMENT;
  pool *p = pool_new(threads, pool_release);
  if (!p) return CUVIL_OUT_OF_MEMORY;
  *result = &p->interface;
  return CUVIL_OK;
}

void cuvil_pool_release(const cuvil_pool *pool) {
  if (pool) pool->release(pool->state);
}

/* ---- the process-wide pool: made for the first model, ended with the last ---- */

static pool *default_pool;
static _Atomic int64_t default_owner; /* the process in the section; one that is gone counts not */

static void enter_default(void) {
  int64_t self = cuvil_platform_process();
  for (;;) {
    int64_t owner = atomic_load(&default_owner);
    if (owner != self && atomic_compare_exchange_weak(&default_owner, &owner, self)) return;
    cuvil_platform_yield();
  }
}

static void leave_default(void) { atomic_store(&default_owner, 0); }

static void default_release(void *state) {
  pool *p = state;
  enter_default();
  int last = atomic_fetch_sub(&p->references, 1) == 1;
  if (last) default_pool = NULL;
  leave_default();
  if (last) pool_free(p);
}

static void grow(pool *p, int32_t threads) {
  if (threads <= atomic_load(&p->threads)) return;
  atomic_store(&p->threads, threads);
  if (is_own(p) && try_claim(p)) {
    start_workers(p);
    unclaim(p);
  } /* else the next job starts them */
}

const cuvil_pool *cuvil_default_pool(int32_t threads) {
  int32_t wanted = threads > 0 ? threads : cuvil_default_threads();
  if (wanted > MAX_THREADS) wanted = MAX_THREADS;
  enter_default();
  if (default_pool) {
    pool_retain(default_pool);
    grow(default_pool, wanted);
  } else {
    default_pool = pool_new(wanted, default_release);
  }
  pool *p = default_pool;
  leave_default();
  return p ? &p->interface : NULL;
}
