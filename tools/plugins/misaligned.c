/* Tells the instructions that access memory at addresses that are no multiple of the access's size:
 * what strict cpus refuse, and emulators in user mode do as if it were nothing. */
#include "plugin.h"

enum { MOST = 64 };

static const char *texts[MOST];
static uint64_t addresses[MOST];
static unsigned found;

/* data: the instruction's text. */
static void accessed(unsigned cpu, access_kind kind, uint64_t address, void *data) {
  (void)cpu;
  uint64_t bytes = (uint64_t)1 << qemu_plugin_mem_size_shift(kind);
  if (address % bytes == 0) return;
  unsigned place = __atomic_fetch_add(&found, 1, __ATOMIC_RELAXED);
  if (place < MOST) texts[place] = data, addresses[place] = address;
}

static void translated(plugin_id id, struct qemu_plugin_tb *block) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
    struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
    char *text = qemu_plugin_insn_disas(instruction);
    qemu_plugin_register_vcpu_mem_cb(instruction, accessed, READS_NO_REGISTERS, READS_AND_WRITES,
                                     text);
  }
}

static void tell(FILE *to) {
  for (unsigned i = 0; i < found && i < MOST; i++) {
    fprintf(to, "%s at %" PRIx64 "\n", texts[i], addresses[i]);
  }
}
