/* What Linux says of nodes: cpus and the memory that is near to them. */
#ifndef CUVIL_NUMA_LINUX_H
#define CUVIL_NUMA_LINUX_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

enum { CUVIL_MAX_NODES = 255 };

/* The nodes that have cpus, from 1 on; of: of each cpu, 0 where unknown. */
typedef struct cuvil_nodes {
  int32_t count;
  uint8_t of[CPU_SETSIZE];
} cuvil_nodes;

/* Reads the start of a small file as text; returns 0 when it cannot be read. */
size_t cuvil_read_text(const char *path, char *text, size_t room);

/* The first and last number of the next part of a list such as "0-3,8", and moves *list behind it;
 * 0 at the end, and where the text is none. */
int cuvil_next_span(const char **list, int32_t *first, int32_t *last);

/* root: of the files, "/sys/devices/system/node"; no nodes where there are none. */
void cuvil_read_nodes(const char *root, cuvil_nodes *nodes);

/* Leaves in *allowed the cpus of as few nodes as have one for each of `threads`, that of `cpu`
 * first; all of them where there are too few, or that is unknown. */
void cuvil_stay_near(const cuvil_nodes *nodes, int32_t cpu, int32_t threads, cpu_set_t *allowed);

#endif
