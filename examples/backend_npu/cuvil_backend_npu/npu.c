/* The simulator of npu-v2; see npu.h. */
#include "npu.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BANKS = 256 };

struct npu {
  pthread_mutex_t lock;
  struct {
    char *bytes;
    uint64_t size;
  } banks[BANKS]; /* bank 0 is none */
  char fault[96];
};

npu *npu_power_on(void) {
  npu *chip = calloc(1, sizeof *chip);
  if (chip) pthread_mutex_init(&chip->lock, NULL);
  return chip;
}

void npu_power_off(npu *chip) {
  for (int i = 1; i < BANKS; i++) free(chip->banks[i].bytes);
  pthread_mutex_destroy(&chip->lock);
  free(chip);
}

uint32_t npu_bank_open(npu *chip, uint64_t bytes) {
  uint32_t bank = 1;
  char *memory = malloc(bytes ? bytes : 1);
  if (!memory) return 0;
  memset(memory, 0xff, bytes); /* NaN: what nobody wrote is seen */
  pthread_mutex_lock(&chip->lock);
  while (bank < BANKS && chip->banks[bank].bytes) bank++;
  if (bank < BANKS) {
    chip->banks[bank].bytes = memory;
    chip->banks[bank].size = bytes;
  }
  pthread_mutex_unlock(&chip->lock);
  if (bank < BANKS) return bank;
  free(memory);
  return 0;
}

void npu_bank_close(npu *chip, uint32_t bank) {
  pthread_mutex_lock(&chip->lock);
  free(chip->banks[bank].bytes);
  chip->banks[bank].bytes = NULL;
  pthread_mutex_unlock(&chip->lock);
}

int npu_fail(npu *chip, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  pthread_mutex_lock(&chip->lock);
  vsnprintf(chip->fault, sizeof chip->fault, format, arguments);
  pthread_mutex_unlock(&chip->lock);
  va_end(arguments);
  return 1;
}

void npu_fault(npu *chip, char *text, size_t room) {
  pthread_mutex_lock(&chip->lock);
  snprintf(text, room, "%s", chip->fault);
  pthread_mutex_unlock(&chip->lock);
}

/* Where an address is, if `bytes` bytes lie in its bank from there. */
static char *reach(npu *chip, npu_address at, uint64_t bytes) {
  char *found = NULL;
  pthread_mutex_lock(&chip->lock);
  if (at.bank < BANKS && chip->banks[at.bank].bytes && at.offset <= chip->banks[at.bank].size &&
      bytes <= chip->banks[at.bank].size - at.offset) {
    found = chip->banks[at.bank].bytes + at.offset;
  }
  pthread_mutex_unlock(&chip->lock);
  if (!found) npu_fail(chip, "address %u:%llu is outside", at.bank, (unsigned long long)at.offset);
  return found;
}

int npu_write(npu *chip, npu_address to, const void *from, uint64_t bytes) {
  char *at = reach(chip, to, bytes);
  if (at && bytes) memcpy(at, from, bytes);
  return !at;
}

int npu_read(npu *chip, void *to, npu_address from, uint64_t bytes) {
  const char *at = reach(chip, from, bytes);
  if (at && bytes) memcpy(to, at, bytes);
  return !at;
}

int npu_copy(npu *chip, npu_address to, npu_address from, uint64_t bytes) {
  const char *source = reach(chip, from, bytes);
  char *target = source ? reach(chip, to, bytes) : NULL;
  if (target) memmove(target, source, bytes);
  return !target;
}

/* The elements of an operand whose last one, counted from 0, is at `last`. */
static float *operand(npu *chip, npu_address at, int64_t last) {
  if (last < 0) last = -1; /* an empty tensor */
  return (float *)reach(chip, at, (uint64_t)(last + 1) * sizeof(float));
}

/* The place of the last element, for `count` extents with their strides. */
static int64_t last_of(const int64_t *extents, const int64_t *strides, int count) {
  int64_t last = 0;
  for (int i = 0; i < count; i++) {
    if (extents[i] < 1) return -1;
    last += (extents[i] - 1) * strides[i];
  }
  return last;
}

typedef struct {
  int64_t m, n, k, a_m, a_k, b_k, b_n, c_m, c_n;
} gemm_fields;

static int gemm(npu *chip, const gemm_fields *f, const npu_address *at) {
  const float *a = operand(chip, at[0], last_of((int64_t[]){f->m, f->k}, &f->a_m, 2));
  const float *b = operand(chip, at[1], last_of((int64_t[]){f->k, f->n}, &f->b_k, 2));
  float *c = operand(chip, at[2], last_of((int64_t[]){f->m, f->n}, &f->c_m, 2));
  if (!a || !b || !c) return 1;
  for (int64_t i = 0; i < f->m; i++) {
    float *row = c + i * f->c_m;
    for (int64_t j = 0; j < f->n; j++) row[j * f->c_n] = 0;
    for (int64_t p = 0; p < f->k; p++) {
      float factor = a[i * f->a_m + p * f->a_k];
      for (int64_t j = 0; j < f->n; j++) row[j * f->c_n] += factor * b[p * f->b_k + j * f->b_n];
    }
  }
  return 0;
}

typedef struct {
  int64_t extent[4], stride[4]; /* n, c, h, w */
} image;

typedef struct {
  int64_t groups;
  image x, y;
  int64_t kernel[2], step[2], dilation[2], pad[2];
} conv_fields;

/* One element of the result: the sum over the channels of its group and the kernel. */
static float taps(const conv_fields *f, const float *x, const float *w, int64_t per_group,
                  int64_t row, int64_t column) {
  float sum = 0;
  for (int64_t c = 0; c < per_group; c++) {
    for (int64_t i = 0; i < f->kernel[0]; i++) {
      int64_t h = row * f->step[0] - f->pad[0] + i * f->dilation[0];
      for (int64_t j = 0; j < f->kernel[1]; j++, w++) {
        int64_t v = column * f->step[1] - f->pad[1] + j * f->dilation[1];
        if (h < 0 || h >= f->x.extent[2] || v < 0 || v >= f->x.extent[3]) continue;
        sum += *w * x[c * f->x.stride[1] + h * f->x.stride[2] + v * f->x.stride[3]];
      }
    }
  }
  return sum;
}

static int conv(npu *chip, const conv_fields *f, const npu_address *at) {
  int64_t per_group = f->x.extent[1] / f->groups, channels = f->y.extent[1];
  int64_t filter = per_group * f->kernel[0] * f->kernel[1];
  const float *x = operand(chip, at[0], last_of(f->x.extent, f->x.stride, 4));
  const float *w = operand(chip, at[1], channels * filter - 1);
  float *y = operand(chip, at[2], last_of(f->y.extent, f->y.stride, 4));
  if (!x || !w || !y) return 1;
  for (int64_t n = 0; n < f->y.extent[0]; n++) {
    for (int64_t c = 0; c < channels; c++) {
      int64_t group = c / (channels / f->groups);
      const float *from = x + n * f->x.stride[0] + group * per_group * f->x.stride[1];
      for (int64_t h = 0; h < f->y.extent[2]; h++) {
        for (int64_t v = 0; v < f->y.extent[3]; v++) {
          float *to = y + n * f->y.stride[0] + c * f->y.stride[1] + h * f->y.stride[2];
          to[v * f->y.stride[3]] = taps(f, from, w + c * filter, per_group, h, v);
        }
      }
    }
  }
  return 0;
}

typedef struct {
  npu *chip;
  const npu_launch *launch;
  size_t next; /* the word to read */
} machine;

/* Reads the fields of an instruction; 1 where the program ends too early. */
static int fetch(machine *m, int64_t *fields, size_t count) {
  if (m->launch->count - m->next < count) return npu_fail(m->chip, "the program ends too early");
  for (size_t i = 0; i < count; i++) {
    int64_t word = m->launch->words[m->next++];
    if (word < -NPU_DIMS) return npu_fail(m->chip, "there is no dim %lld", (long long)(-1 - word));
    fields[i] = word < 0 ? m->launch->dims[-1 - word] : word;
  }
  return 0;
}

static int execute(machine *m, const npu_address *at, int idle);

/* Executes a body `count` times; none at all is a pass that only reads it. */
static int loop(machine *m, const npu_address *at, int idle) {
  int64_t fields[4];
  if (fetch(m, fields, 4)) return 1;
  npu_address moved[NPU_OPERANDS];
  memcpy(moved, at, sizeof moved);
  idle |= fields[0] < 1;
  size_t body = m->next;
  for (int64_t i = 0; i < (idle ? 1 : fields[0]); i++) {
    m->next = body;
    if (execute(m, moved, idle)) return 1;
    for (int o = 0; o < NPU_OPERANDS; o++)
      moved[o].offset += (uint64_t)fields[1 + o] * sizeof(float);
  }
  return 0;
}

static int execute(machine *m, const npu_address *at, int idle) {
  for (;;) {
    int64_t opcode;
    union {
      int64_t words[sizeof(conv_fields) / sizeof(int64_t)];
      gemm_fields gemm;
      conv_fields conv;
    } f;
    if (fetch(m, &opcode, 1)) return 1;
    switch (opcode) {
      case NPU_END:
        return 0;
      case NPU_LOOP:
        if (loop(m, at, idle)) return 1;
        break;
      case NPU_GEMM:
        if (fetch(m, f.words, sizeof(gemm_fields) / sizeof(int64_t))) return 1;
        if (!idle && gemm(m->chip, &f.gemm, at)) return 1;
        break;
      case NPU_CONV2D:
        if (fetch(m, f.words, sizeof(conv_fields) / sizeof(int64_t))) return 1;
        if (f.conv.groups < 1) return npu_fail(m->chip, "no groups");
        if (!idle && conv(m->chip, &f.conv, at)) return 1;
        break;
      default:
        return npu_fail(m->chip, "no instruction %lld", (long long)opcode);
    }
  }
}

int npu_execute(npu *chip, const npu_launch *launch) {
  machine m = {chip, launch, 0};
  return execute(&m, launch->operands, 0);
}
