/* Where threads run. A kernel that wakes a worker on the cpu of the thread that it is to help makes
 * both wait for each other until its next balancing, milliseconds later. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "platform.h"

int32_t cuvil_platform_cpu(void) { return sched_getcpu(); }

int32_t cuvil_platform_thread_id(void) { return (int32_t)syscall(SYS_gettid); }

void cuvil_platform_keep_off(int32_t thread, int32_t cpu) {
  cpu_set_t allowed;
  if (cpu < 0 || sched_getaffinity(0, sizeof allowed, &allowed)) return;
  CPU_CLR(cpu, &allowed);
  if (CPU_COUNT(&allowed)) sched_setaffinity(thread, sizeof allowed, &allowed);
}
