/* npu-v2, an accelerator that does not exist: a simulator of the chip.
 *
 * Its memory lies in banks, which only the chip's own functions reach; an address is a bank and an
 * offset in bytes. A program is a row of 32-bit words: MAGIC, VERSION, then instructions. A field
 * of an instruction is a number, or -1 - i: the i-th of the launch's dims. Operands are f32.
 *
 *   END                          of the innermost loop, or of the program
 *   LOOP   count, step[3]        repeats up to its END; operand i moves by step[i] elements
 *   GEMM   m, n, k, a_m, a_k, b_k, b_n, c_m, c_n    operands a, b, c; strides in elements
 *   CONV2D groups, x: n, c, h, w, their strides, y: n, c, h, w, their strides, kernel h, w,
 *          strides, dilations, pads above and left; operands x, w, y
 */
#ifndef NPU_H
#define NPU_H

#include <stddef.h>
#include <stdint.h>

enum { NPU_MAGIC = 0x2055504e, NPU_VERSION = 2, NPU_OPERANDS = 3, NPU_DIMS = 32 };
enum { NPU_END, NPU_LOOP, NPU_GEMM, NPU_CONV2D };

typedef struct npu npu;
typedef struct npu_address {
  uint32_t bank;
  uint64_t offset;
} npu_address;

typedef struct npu_launch {
  const int32_t *words; /* after MAGIC and VERSION */
  size_t count;
  npu_address operands[NPU_OPERANDS];
  int64_t dims[NPU_DIMS];
} npu_launch;

npu *npu_power_on(void);
void npu_power_off(npu *chip);

/* A bank's number; 0 where there is no room. */
uint32_t npu_bank_open(npu *chip, uint64_t bytes);
void npu_bank_close(npu *chip, uint32_t bank);

/* These return 0, or 1 after a fault: an address outside its bank, or no instruction. */
int npu_write(npu *chip, npu_address to, const void *from, uint64_t bytes);
int npu_read(npu *chip, void *to, npu_address from, uint64_t bytes);
int npu_copy(npu *chip, npu_address to, npu_address from, uint64_t bytes);
int npu_execute(npu *chip, const npu_launch *launch);

/* Notes why something failed, as printf does, and returns 1. */
int npu_fail(npu *chip, const char *format, ...);
/* What failed last; "" where nothing did. */
void npu_fault(npu *chip, char *text, size_t room);

#endif
