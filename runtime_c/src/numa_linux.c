/* Machines whose memory is near to some cpus and far from others. */
#include "numa_linux.h"

#include <string.h>

#include "text.h"

enum { NODE_PATH_ROOM = 256, NODE_LIST_ROOM = 4096 };

static int32_t decimal(const char **text) {
  int32_t value = -1;
  for (; **text >= '0' && **text <= '9' && value < INT32_MAX / 16; ++*text) {
    value = (value < 0 ? 0 : value) * 10 + (**text - '0');
  }
  return value;
}

int cuvil_next_span(const char **list, int32_t *first, int32_t *last) {
  if (**list == ',') ++*list;
  *first = *last = decimal(list);
  if (*first >= 0 && **list == '-') {
    ++*list;
    *last = decimal(list);
  }
  return *first >= 0 && *last >= *first;
}

/* The cpus of a node; those that it has not yet, since a list may be damaged. */
static void read_node(const char *root, int32_t number, cuvil_nodes *nodes) {
  char path[NODE_PATH_ROOM], text[NODE_LIST_ROOM];
  int32_t first, last, found = 0;
  cuvil_format(path, sizeof path, "%s/node%d/cpulist", root, (int64_t)number);
  if (nodes->count == CUVIL_MAX_NODES || !cuvil_read_text(path, text, sizeof text)) return;
  for (const char *at = text; cuvil_next_span(&at, &first, &last);) {
    for (int32_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) {
      if (nodes->of[cpu]) continue;
      nodes->of[cpu] = (uint8_t)(nodes->count + 1);
      found = 1;
    }
  }
  nodes->count += found;
}

void cuvil_read_nodes(const char *root, cuvil_nodes *nodes) {
  char path[NODE_PATH_ROOM], text[NODE_LIST_ROOM];
  int32_t first, last;
  memset(nodes, 0, sizeof *nodes);
  cuvil_format(path, sizeof path, "%s/online", root);
  if (!cuvil_read_text(path, text, sizeof text)) return;
  for (const char *at = text; cuvil_next_span(&at, &first, &last);) {
    for (int32_t node = first; node <= last && node < CPU_SETSIZE; node++) {
      read_node(root, node, nodes);
    }
  }
}

/* Moves the cpus of a node from one set to another; returns how many. */
static int32_t move_node(const cuvil_nodes *nodes, int32_t node, cpu_set_t *from, cpu_set_t *to) {
  int32_t count = 0;
  for (int32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (nodes->of[cpu] != node || !CPU_ISSET(cpu, from)) continue;
    CPU_CLR(cpu, from);
    CPU_SET(cpu, to);
    count++;
  }
  return count;
}

/* The node with the most cpus of a set; 0 when there is none. */
static int32_t largest_node(const cuvil_nodes *nodes, const cpu_set_t *set) {
  int32_t counts[CUVIL_MAX_NODES + 1] = {0}, best = 0;
  for (int32_t cpu = 0; cpu < CPU_SETSIZE; cpu++) counts[nodes->of[cpu]] += !!CPU_ISSET(cpu, set);
  counts[0] = 0;
  for (int32_t node = 1; node <= nodes->count; node++) {
    if (counts[node] > counts[best]) best = node;
  }
  return best;
}

void cuvil_stay_near(const cuvil_nodes *nodes, int32_t cpu, int32_t threads, cpu_set_t *allowed) {
  if (nodes->count < 2 || cpu < 0 || cpu >= CPU_SETSIZE) return;
  cpu_set_t left = *allowed, near;
  int32_t count = 0;
  CPU_ZERO(&near);
  for (int32_t node = nodes->of[cpu]; node && count < threads; node = largest_node(nodes, &left)) {
    count += move_node(nodes, node, &left, &near);
  }
  if (count >= threads) *allowed = near;
}
