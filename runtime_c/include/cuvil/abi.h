/* What generated code and the runtime agree upon. Generated code imports nothing: all it needs of
 * the runtime arrives through cuvil_frame::api. Every struct that may grow starts with its size.
 *
 * A compiled model is one constant `cuvil_artefact`. JIT objects and linked libraries hold the
 * same one, so what is tested for one counts for the other.
 */
#ifndef CUVIL_ABI_H
#define CUVIL_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUVIL_ABI_VERSION 3u
#define CUVIL_ARTEFACT_MAGIC 0x4c495643u /* "CVIL", little endian */
#define CUVIL_ARENA_ALIGN 64u
#define CUVIL_MAX_RANK 16u

/* Also the return value of every public function (see cuvil.h). */
typedef enum cuvil_status {
  CUVIL_OK = 0,
  CUVIL_INVALID_ARGUMENT = 1, /* a null pointer, a wrong count, a bad option */
  CUVIL_DTYPE_MISMATCH = 2,
  CUVIL_RANK_MISMATCH = 3,
  CUVIL_SHAPE_MISMATCH = 4, /* a dim differs from the model's, or two uses of one symbol differ */
  CUVIL_NEED_MEMORY = 5,    /* outputs or context too small: the needed size is written back */
  CUVIL_OUT_OF_MEMORY = 6,
  CUVIL_BAD_ARTEFACT = 7, /* magic, version, weights size or build id do not fit */
  CUVIL_UNSUPPORTED_CPU = 8,
  CUVIL_INDEX_OUT_OF_RANGE = 9, /* a gather-like operator met an index outside its axis */
  CUVIL_CANCELLED = 10,
  CUVIL_TIMED_OUT = 11,
  CUVIL_INTERNAL = 12,
  CUVIL_IO_ERROR = 13,
  CUVIL_CUSTOM_FAILED = 14 /* an operator of the user's own gave a status that is not 0 */
} cuvil_status;

/* Element types: the values of DLPack's (code, bits) would not cover int4 and float8. An element of
 * fewer than 8 bits lies in the low bits of a byte of its own, the high bits zero. */
typedef enum cuvil_dtype {
  CUVIL_BOOL = 1,
  CUVIL_I8 = 2,
  CUVIL_I16 = 3,
  CUVIL_I32 = 4,
  CUVIL_I64 = 5,
  CUVIL_U8 = 6,
  CUVIL_U16 = 7,
  CUVIL_U32 = 8,
  CUVIL_U64 = 9,
  CUVIL_F16 = 10,
  CUVIL_BF16 = 11,
  CUVIL_F32 = 12,
  CUVIL_F64 = 13,
  CUVIL_F8E4M3FN = 14,
  CUVIL_F8E4M3FNUZ = 15,
  CUVIL_F8E5M2 = 16,
  CUVIL_F8E5M2FNUZ = 17,
  CUVIL_F8E8M0 = 18,
  CUVIL_F4E2M1 = 19,
  CUVIL_I4 = 20,
  CUVIL_U4 = 21,
  CUVIL_I2 = 22,
  CUVIL_U2 = 23,
  CUVIL_STRING = 24 /* elements are cuvil_string */
} cuvil_dtype;

/* A string: `size` bytes of UTF-8 at `data`, not closed by a zero; data may be NULL where size is
 * 0. Nobody changes or frees what an element points to. The bytes of inputs are the caller's and
 * must stay until the run's outputs have been read, which may point to the same bytes. What a run
 * makes is valid until the context's next run, or its end; what is constant, as long as the model.
 */
typedef struct cuvil_string {
  const char *data;
  int64_t size;
} cuvil_string;

typedef struct cuvil_frame cuvil_frame;

/* A kernel computes tasks [begin, end) of its task space. buffers: one base pointer per buffer
 * operand, already offset. dims: the frame's dim slots. scratch: private to the calling thread,
 * cuvil_variant::scratch_bytes long, 64-byte aligned; it keeps what the thread's earlier calls of
 * one launch left. At the thread's first call its first 8 bytes are zero, but anything if the call
 * begins with task 0, as that of a launch without threads. Returns 0 or a cuvil_status; a kernel
 * that calls an operator of the user's own returns CUVIL_CUSTOM_FAILED + 256 * what that gave. */
typedef int32_t (*cuvil_kernel)(void *const *buffers, const int64_t *dims, int64_t begin,
                                int64_t end, void *scratch);

/* A part of a device's memory: an allocation of its shim's and a byte offset into it. The host does
 * not look behind `memory`, and does no arithmetic on it. */
typedef struct cuvil_device_buffer {
  void *memory;
  uint64_t offset;
} cuvil_device_buffer;

typedef struct cuvil_runtime_api {
  uint32_t size;    /* sizeof(cuvil_runtime_api) of the runtime */
  uint32_t version; /* CUVIL_ABI_VERSION */
  /* Runs `kernel` over [0, tasks) on the frame's pool; the cut does not depend on the thread
   * count. Falls back to one inline call. Returns the first non-zero status of a task. */
  int32_t (*parallel_for)(cuvil_frame *frame, cuvil_kernel kernel, void *const *buffers,
                          int64_t tasks, int32_t site);
  /* Host-side buffer of unbounded produced extent, freed at the end of the run. NULL if refused. */
  void *(*allocate)(cuvil_frame *frame, int64_t bytes);
  /* Non-zero (a cuvil_status) when the run was cancelled or ran out of time. */
  int32_t (*poll)(cuvil_frame *frame);
  /* One row of a profile: called around every launch only when frame->profile is set. */
  void (*profile_begin)(cuvil_frame *frame, int32_t site);
  void (*profile_end)(cuvil_frame *frame, int32_t site);
  /* Work for cuvil_artefact::devices[device], on the context's own queue of it: done later, one
   * after another. All but device_signal return 0 or a cuvil_status. */
  int32_t (*device_launch)(cuvil_frame *frame, int32_t device, int32_t kernel,
                           const cuvil_device_buffer *buffers, int32_t buffer_count,
                           const int64_t *dims, int32_t dim_count, int32_t site);
  /* The host's side of a transfer must stay as it is until it has been waited for. */
  int32_t (*device_upload)(cuvil_frame *frame, int32_t device, const cuvil_device_buffer *to,
                           const void *from, int64_t bytes, int32_t site);
  int32_t (*device_download)(cuvil_frame *frame, int32_t device, void *to,
                             const cuvil_device_buffer *from, int64_t bytes, int32_t site);
  int32_t (*device_copy)(cuvil_frame *frame, int32_t device, const cuvil_device_buffer *to,
                         const cuvil_device_buffer *from, int64_t bytes, int32_t site);
  /* A ticket for all that is on the queue now; device_wait returns when that is done. */
  uint64_t (*device_signal)(cuvil_frame *frame, int32_t device);
  int32_t (*device_wait)(cuvil_frame *frame, int32_t device, uint64_t ticket);
  /* Memory for the bytes of strings, valid until the context's next run. From any thread of the
   * run; NULL if refused. */
  void *(*string_bytes)(cuvil_frame *frame, int64_t bytes);
} cuvil_runtime_api;

/* What a run has of a device's memory. */
typedef struct cuvil_device_memory {
  void *arena;
  void *weights;
} cuvil_device_memory;

/* One run in flight. Generated code reads the first block and writes dims, site. */
struct cuvil_frame {
  const cuvil_runtime_api *api;
  char *arena;         /* CUVIL_ARENA_ALIGN aligned, at least arena_bytes long */
  const char *weights; /* CUVIL_ARENA_ALIGN aligned */
  /* Inputs, then outputs: data pointers with byte offsets applied, aligned to their elements. An
   * output of unbounded extent is NULL: main stores a buffer from api->allocate there. */
  void *const *io;
  int64_t *dims;    /* dim slots: symbols, then derived, then produced */
  void *scratch;    /* of the calling thread */
  int32_t site;     /* last site launched: names the node in errors (cuvil_artefact::sites) */
  int32_t parallel; /* 0: call kernels inline; 1: use api->parallel_for where tasks > 1 */
  void *profile;    /* not NULL: call profile_begin/end */
  void *runtime;    /* the runtime's own */
  const cuvil_device_memory *devices; /* as many as the artefact has */
};

/* A dim of an input or output: >= 0 is the extent itself, < 0 is slot -(dim) - 1. */
typedef struct cuvil_tensor_info {
  const char *name;
  const int64_t *dims;
  uint8_t dtype; /* cuvil_dtype */
  uint8_t rank;
  uint8_t reserved[6];
} cuvil_tensor_info;

/* What a value holds. */
typedef enum cuvil_kind {
  CUVIL_TENSOR = 0,
  CUVIL_NONE = 1, /* an optional that is not there */
  CUVIL_SEQUENCE = 2
} cuvil_kind;

/* An input or output as a caller sees it, where some are no plain tensors: it stands for the next
 * `count` tensors of the artefact. A sequence has as many elements, known when it is compiled; so
 * is whether an optional is there (CUVIL_TENSOR or CUVIL_SEQUENCE) or not (CUVIL_NONE, no tensors).
 */
typedef struct cuvil_port_info {
  const char *name;
  uint32_t count;
  uint8_t kind; /* cuvil_kind */
  uint8_t optional;
  uint8_t reserved[2];
} cuvil_port_info;

/* All inputs and outputs as ports. */
typedef struct cuvil_port_list {
  uint32_t input_count, output_count;
  const cuvil_port_info *inputs, *outputs;
} cuvil_port_list;

/* Runs the whole model once. */
typedef int32_t (*cuvil_main)(cuvil_frame *frame);
/* Fills the derived slots from the symbols, and each produced slot with its upper bound, or -1
 * where there is none; returns 0, or 1 + the site that says which condition fails. */
typedef int32_t (*cuvil_prepare)(int64_t *dims);

typedef struct cuvil_variant {
  const char *name;  /* "avx512", "avx2", "baseline": for people and for overrides */
  uint64_t required; /* bits of cuvil_artefact::detect that must all be set */
  cuvil_main main;
  uint64_t scratch_bytes; /* per thread */
} cuvil_variant;

/* A kernel of a device. kind: what the blob is, for the shim to check ("ptx", "spirv", ...). */
typedef struct cuvil_device_kernel {
  const char *kind;
  const char *symbol;
  const void *blob;
  uint64_t blob_bytes;
} cuvil_device_kernel;

/* A device that the model needs beside the host. */
typedef struct cuvil_device_info {
  const char *name;    /* that of the cuvil_device_api to use, see cuvil/device.h */
  int64_t arena_bytes; /* as cuvil_artefact::arena_bytes */
  uint64_t weights_offset, weights_bytes; /* the part of the weights that it keeps a copy of */
  uint32_t kernel_count, reserved;
  const cuvil_device_kernel *kernels;
} cuvil_device_info;

typedef struct cuvil_artefact {
  uint32_t magic, abi_version;
  const char *name;
  const char *producer; /* "cuvil 0.1.0" */
  uint8_t build_id[32]; /* also at the start of an external weights file's header */
  uint32_t input_count, output_count;
  const cuvil_tensor_info *inputs, *outputs;
  uint32_t symbol_count; /* slots [0, symbol_count) are bound from input shapes, by first use */
  uint32_t dim_count;    /* all slots */
  const char *const *symbol_names;
  const int64_t *symbol_bounds; /* pairs (min, max) per symbol */
  cuvil_prepare prepare;
  int64_t arena_bytes; /* >= 0 literal, < 0 slot -(v) - 1 (as dims) */
  uint64_t weights_bytes;
  const char *weights; /* embedded, or NULL: in the file `weights_file` beside the library */
  const char *weights_file;
  uint32_t variant_count; /* best first; the last requires nothing or the artefact refuses */
  uint32_t site_count;
  const cuvil_variant *variants;
  const char *const *sites;         /* site -> "kernel\tnode names", for profiles and errors */
  uint64_t (*detect)(void);         /* cpu feature bits as the backend numbers them */
  const char *const *feature_names; /* bit -> name, NULL terminated: for the error message */
  uint32_t device_count, has_ports;
  const cuvil_device_info *devices;
  const cuvil_port_list *ports; /* here only where has_ports is 1; 0: each tensor is a port */
} cuvil_artefact;

/* Weights file: this header, padding to CUVIL_ARENA_ALIGN, then weights_bytes of data. */
typedef struct cuvil_weights_header {
  uint32_t magic, abi_version;
  uint8_t build_id[32];
  uint64_t weights_bytes;
  uint8_t reserved[16];
} cuvil_weights_header;

/* Libraries and objects name their artefact in section .note.cuvil: an ELF note with this name and
 * type, whose descriptor is the NUL-terminated symbol of the cuvil_artefact. */
#define CUVIL_NOTE_NAME "cuvil"
#define CUVIL_NOTE_ENTRY 1u

#ifdef __cplusplus
}
#endif
#endif
