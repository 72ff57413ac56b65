/* Nodes: read from files as Linux has them, and the cpus that threads stay on. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "check.h"
#include "numa_linux.h"

static char root[] = "/tmp/cuvil-numa-XXXXXX";

static void put(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", root, name);
  FILE *file = fopen(path, "w");
  CHECK(file);
  fputs(text, file);
  fclose(file);
}

/* Makes a machine of these nodes; NULL: one that has memory only. */
static cuvil_nodes machine(const char *online, const char *cpus0, const char *cpus1,
                           const char *cpus2) {
  const char *const lists[] = {cpus0, cpus1, cpus2};
  cuvil_nodes nodes;
  put("online", online);
  for (int i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "node%d/cpulist", i);
    put(name, lists[i] ? lists[i] : "\n");
  }
  cuvil_read_nodes(root, &nodes);
  return nodes;
}

/* Bit c: cpu c. */
static unsigned near(const cuvil_nodes *nodes, int cpu, int threads, unsigned allowed) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int c = 0; c < 32; c++) {
    if (allowed >> c & 1) CPU_SET(c, &set);
  }
  cuvil_stay_near(nodes, cpu, threads, &set);
  unsigned bits = 0;
  for (int c = 0; c < 32; c++) bits |= (unsigned)!!CPU_ISSET(c, &set) << c;
  return bits;
}

static void test_spans(void) {
  const char *list = "0-3,8,10-11\n";
  int32_t first, last;
  CHECK(cuvil_next_span(&list, &first, &last) && first == 0 && last == 3);
  CHECK(cuvil_next_span(&list, &first, &last) && first == 8 && last == 8);
  CHECK(cuvil_next_span(&list, &first, &last) && first == 10 && last == 11);
  CHECK(!cuvil_next_span(&list, &first, &last));
  const char *const wrong[] = {"", "\n", "x", "3-1", "4-", "-2", ","};
  for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    const char *at = wrong[i];
    CHECK(!cuvil_next_span(&at, &first, &last));
  }
}

static void test_threads_stay_on_the_callers_node(void) {
  cuvil_nodes two = machine("0-1\n", "0-1,4-5\n", "2-3,6-7\n", NULL);
  CHECK(two.count == 2 && two.of[5] == 1 && two.of[6] == 2 && !two.of[8]);
  CHECK(near(&two, 6, 2, 0xff) == 0xcc);
  CHECK(near(&two, 6, 4, 0xff) == 0xcc);
  CHECK(near(&two, 1, 4, 0xff) == 0x33);
  CHECK(near(&two, 1, 5, 0xff) == 0xff); /* more than one node has */
  CHECK(near(&two, 1, 99, 0xff) == 0xff);
}

static void test_only_cpus_that_are_allowed(void) {
  cuvil_nodes two = machine("0-1\n", "0-3\n", "4-7\n", NULL);
  CHECK(near(&two, 5, 2, 0xb2) == 0xb0);
  CHECK(near(&two, 1, 2, 0xb2) == 0xb2); /* one on the caller's node is too few */
  CHECK(near(&two, 4, 2, 0x30) == 0x30);
}

static void test_the_largest_node_helps_out(void) {
  cuvil_nodes three = machine("0-2\n", "0-1\n", "2-3\n", "4-7\n");
  CHECK(near(&three, 0, 3, 0xff) == 0xf3);
  CHECK(near(&three, 0, 3, 0x1f) == 0x0f); /* of node 2 one cpu is allowed */
  CHECK(near(&three, 0, 7, 0xff) == 0xff);
}

static void test_what_has_no_nodes_is_left_alone(void) {
  cuvil_nodes one = machine("0\n", "0-7\n", "0-7\n", NULL);
  CHECK(one.count == 1 && near(&one, 3, 2, 0xff) == 0xff);
  cuvil_nodes bare = machine("0-1\n", NULL, "0-7\n", NULL); /* node 0 is memory only */
  CHECK(bare.count == 1 && near(&bare, 3, 2, 0xff) == 0xff);
  cuvil_nodes odd = machine("0-1\n", "0-1\n", "4-5\n", NULL);
  CHECK(near(&odd, 3, 2, 0xff) == 0xff); /* no list has the caller's cpu */
  CHECK(near(&odd, -1, 2, 0xff) == 0xff);
  CHECK(near(&odd, 1 << 20, 2, 0xff) == 0xff);
  cuvil_nodes far = machine("0-1,7\n", "0-1\n", "1,3,5000-6000\n", NULL);
  CHECK(far.count == 2 && far.of[1] == 1 && far.of[3] == 2); /* a cpu is on one node */
  cuvil_read_nodes("/nowhere", &odd);
  CHECK(odd.count == 0 && near(&odd, 0, 1, 0xff) == 0xff);
}

int main(void) {
  CHECK(mkdtemp(root));
  for (int i = 0; i < 3; i++) {
    char path[256];
    snprintf(path, sizeof path, "%s/node%d", root, i);
    CHECK(!mkdir(path, 0700));
  }
  test_spans();
  test_threads_stay_on_the_callers_node();
  test_only_cpus_that_are_allowed();
  test_the_largest_node_helps_out();
  test_what_has_no_nodes_is_left_alone();
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", root);
  return system(command);
}
