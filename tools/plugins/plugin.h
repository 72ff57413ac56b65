/* What plugins of QEMU call, as QEMU documents it (version 1 of the interface): emulators of
 * distributions come without the header that declares it. Part of a plugin: its argument "to=FILE",
 * where it tells what it saw when the program ends. */
#ifndef PLUGIN_H
#define PLUGIN_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t plugin_id;
typedef uint32_t access_kind;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum { READS_NO_REGISTERS = 0, READS_AND_WRITES = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id,
                                           void (*translated)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block,
                                          void (*executed)(unsigned cpu, void *data), int flags,
                                          void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction,
                                      void (*accessed)(unsigned cpu, access_kind kind,
                                                       uint64_t address, void *data),
                                      int flags, int which, void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*ended)(plugin_id, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t place);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *instruction);
unsigned qemu_plugin_mem_size_shift(access_kind kind);

EXPORT int qemu_plugin_version = 1;

/* The plugin's own: what it does with a block of instructions, and what it tells at the end. */
static void translated(plugin_id id, struct qemu_plugin_tb *block);
static void tell(FILE *to);

static char file[4096];

static void ended(plugin_id id, void *data) {
  (void)id, (void)data;
  FILE *to = fopen(file, "w");
  if (!to) return;
  tell(to);
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

#endif
