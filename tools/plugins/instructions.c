/* Counts the instructions that an emulated program executes, in all its threads. */
#include "plugin.h"

static uint64_t count;

/* data: how many instructions the block has, as a pointer. */
static void executed(unsigned cpu, void *data) {
  (void)cpu;
  __atomic_fetch_add(&count, (uintptr_t)data, __ATOMIC_RELAXED);
}

static void translated(plugin_id id, struct qemu_plugin_tb *block) {
  (void)id;
  uintptr_t instructions = qemu_plugin_tb_n_insns(block);
  qemu_plugin_register_vcpu_tb_exec_cb(block, executed, READS_NO_REGISTERS, (void *)instructions);
}

static void tell(FILE *to) { fprintf(to, "%" PRIu64 "\n", count); }
