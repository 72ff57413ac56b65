/* What a backend's shim offers the runtime for a device whose memory is not the host's.
 *
 * A program hands its devices over in cuvil_options.devices. A model that was compiled for one
 * finds it by name when it is opened, keeps a copy of its constants there, loads its kernels, and
 * gives every context a queue and an arena.
 *
 * Functions that return int32_t give 0 or a cuvil_status. Any thread may call; calls on one queue
 * never overlap. Work on a queue is done in the order in which it came, some time after the call.
 */
#ifndef CUVIL_DEVICE_H
#define CUVIL_DEVICE_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUVIL_DEVICE_API_VERSION 1u

typedef struct cuvil_device_api cuvil_device_api;

struct cuvil_device_api {
  uint32_t size;    /* sizeof(cuvil_device_api) of the shim */
  uint32_t version; /* CUVIL_DEVICE_API_VERSION */
  const char *name; /* that of the memory space in the backend's record */
  void *state;      /* the shim's own, e.g. which of several devices this is */

  int32_t (*open)(const cuvil_device_api *api, void **device);
  void (*close)(void *device);

  /* Memory of the device, at least 64-byte aligned there. `*memory` means nothing to the host. */
  int32_t (*allocate)(void *device, uint64_t bytes, void **memory);
  void (*free)(void *device, void *memory);

  /* Makes a kernel ready for launches. Kernels of one model often share a blob. */
  int32_t (*load)(void *device, const cuvil_device_kernel *kernel, void **function);
  void (*unload)(void *device, void *function);

  int32_t (*queue_open)(void *device, void **queue);
  void (*queue_close)(void *queue); /* called when all its work is done */

  /* Transfers; the host's bytes stay where and as they are until they have been waited for. */
  int32_t (*upload)(void *queue, const cuvil_device_buffer *to, const void *from, uint64_t bytes);
  int32_t (*download)(void *queue, void *to, const cuvil_device_buffer *from, uint64_t bytes);
  int32_t (*copy)(void *queue, const cuvil_device_buffer *to, const cuvil_device_buffer *from,
                  uint64_t bytes);
  /* buffers: operands, then results. dims: the numbers that the backend asked for when it emitted
   * the kernel. Both arrays may change after the call. */
  int32_t (*launch)(void *queue, void *function, const cuvil_device_buffer *buffers,
                    uint32_t buffer_count, const int64_t *dims, uint32_t dim_count);

  /* A number for all that is on the queue now, no less than any earlier one and never 0. */
  uint64_t (*signal)(void *queue);
  /* Returns when that work is done, with the first failure among it. */
  int32_t (*wait)(void *queue, uint64_t ticket);

  /* One line about the device's last failure, written as snprintf does. May be NULL. */
  void (*message)(void *device, char *text, uint64_t room);
};

#ifdef __cplusplus
}
#endif
#endif
