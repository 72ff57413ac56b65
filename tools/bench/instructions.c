/* Counts the instructions that an emulated program executes, in all its threads: a plugin of QEMU.
 *
 *   qemu-ARCH -plugin file=instructions.so,to=FILE PROGRAM    FILE gets the count when it ends
 *
 * Emulators of distributions come without the header that declares what plugins call; the few
 * functions that are needed here are declared as QEMU documents them (version 1 of the interface).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
struct qemu_plugin_tb;

enum { READS_NO_REGISTERS = 0 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                           void (*translated)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
                                          void (*executed)(unsigned cpu, void *data), int flags,
                                          void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*ended)(plugin_id, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);

EXPORT int qemu_plugin_version = 1;

static uint64_t count;
static char file[4096];

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

static void ended(plugin_id id, void *data) {
  (void)id, (void)data;
  FILE *to = fopen(file, "w");
  if (!to) return;
  fprintf(to, "%" PRIu64 "\n", count);
  fclose(to);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *machine, int words, char **arguments) {
  (void)machine;
  for (int i = 0; i < words; i++) {
    if (!strncmp(arguments[i], "to=", 3)) snprintf(file, sizeof file, "%s", arguments[i] + 3);
  }
  if (!*file) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
  qemu_plugin_register_atexit_cb(id, ended, NULL);
  return 0;
}
