/* Where threads run. A kernel that wakes a worker on the cpu of the thread that it is to help makes
 * both wait for each other until its next balancing, milliseconds later. Memory belongs to the node
 * of the thread that touches it first: workers on the caller's node get theirs there. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "numa_linux.h"
#include "platform.h"

int32_t cuvil_platform_cpu(void) { return sched_getcpu(); }

int32_t cuvil_platform_thread_id(void) { return (int32_t)syscall(SYS_gettid); }

static cuvil_nodes nodes;
static atomic_int nodes_state;

/* Reads the nodes once; NULL for a thread that comes while another reads them. */
static const cuvil_nodes *known_nodes(void) {
  int state = 0;
  if (atomic_compare_exchange_strong(&nodes_state, &state, 1)) {
    cuvil_read_nodes("/sys/devices/system/node", &nodes);
    atomic_store(&nodes_state, state = 2);
  }
  return state == 2 ? &nodes : NULL;
}

void cuvil_platform_place(int32_t thread, int32_t cpu, int32_t threads) {
  cpu_set_t allowed;
  if (cpu < 0 || sched_getaffinity(0, sizeof allowed, &allowed)) return;
  const cuvil_nodes *known = known_nodes();
  if (known) cuvil_stay_near(known, cpu, threads, &allowed);
  CPU_CLR(cpu, &allowed);
  if (CPU_COUNT(&allowed)) sched_setaffinity(thread, sizeof allowed, &allowed);
}
