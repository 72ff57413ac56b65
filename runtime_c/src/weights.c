/* Weights that are not embedded: a mapped file, an image in memory, or a reader's bytes. */
#include <string.h>

#include "internal.h"
#include "platform.h"
#include "text.h"

enum { PATH_ROOM = 1024, READ_BLOCK = 16 << 20 };

static cuvil_status check_header(const cuvil_artefact *a, const cuvil_weights_header *header,
                                 const char *from, const cuvil_report *report) {
  const char *reason = NULL;
  if (header->magic != CUVIL_ARTEFACT_MAGIC) {
    reason = "it is not a Cuvil weights file";
  } else if (header->abi_version != CUVIL_ABI_VERSION) {
    reason = "it has another ABI version";
  } else if (memcmp(header->build_id, a->build_id, sizeof a->build_id)) {
    reason = "it belongs to another build of the model";
  } else if (header->weights_bytes != a->weights_bytes) {
    reason = "its size is not the model's";
  }
  if (!reason) return CUVIL_OK;
  return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT, "weights of '%s' from %s: %s", a->name,
                              from, reason);
}

static cuvil_status out_of_memory(const cuvil_artefact *a, const cuvil_report *report) {
  return cuvil_report_failure(report, CUVIL_OUT_OF_MEMORY, "no memory for %d bytes of weights",
                              (int64_t)a->weights_bytes);
}

/* Uses the image where it is when it is aligned, else copies it. */
static cuvil_status use_image(const cuvil_artefact *a, const char *image, uint64_t bytes,
                              const char *from, const cuvil_report *report,
                              cuvil_weights *weights) {
  cuvil_weights_header header;
  if (bytes < sizeof header || bytes - sizeof header < a->weights_bytes) {
    return cuvil_report_failure(report, CUVIL_BAD_ARTEFACT,
                                "weights of '%s' from %s: %d bytes, %d expected", a->name, from,
                                (int64_t)bytes, (int64_t)(a->weights_bytes + sizeof header));
  }
  memcpy(&header, image, sizeof header);
  cuvil_status status = check_header(a, &header, from, report);
  if (status) return status;
  const char *data = image + sizeof header;
  if ((uintptr_t)data % CUVIL_ARENA_ALIGN) {
    weights->owned = cuvil_platform_allocate(a->weights_bytes);
    if (!weights->owned) return out_of_memory(a, report);
    data = memcpy(weights->owned, data, a->weights_bytes);
  }
  weights->data = data;
  return CUVIL_OK;
}

static cuvil_status use_file(const cuvil_artefact *a, const char *path, const cuvil_report *report,
                             cuvil_weights *weights) {
  cuvil_status status = cuvil_platform_map_file(path, &weights->mapped, &weights->mapped_bytes);
  if (status) {
    return cuvil_report_failure(report, status, "weights file '%s' of '%s' cannot be read", path,
                                a->name);
  }
  return use_image(a, weights->mapped, weights->mapped_bytes, path, report, weights);
}

static cuvil_status use_reader(const cuvil_artefact *a, const cuvil_options *options,
                               const cuvil_report *report, cuvil_weights *weights) {
  cuvil_weights_header header;
  int32_t failed = options->weights_reader(options->weights_user, 0, &header, sizeof header);
  cuvil_status status = failed ? CUVIL_OK : check_header(a, &header, "the reader", report);
  if (status) return status;
  weights->owned = failed ? NULL : cuvil_platform_allocate(a->weights_bytes);
  if (!failed && !weights->owned) return out_of_memory(a, report);
  for (uint64_t done = 0; !failed && done < a->weights_bytes; done += READ_BLOCK) {
    uint64_t rest = a->weights_bytes - done;
    failed = options->weights_reader(options->weights_user, sizeof header + done,
                                     (char *)weights->owned + done,
                                     rest < READ_BLOCK ? rest : READ_BLOCK);
  }
  weights->data = weights->owned;
  if (!failed) return CUVIL_OK;
  return cuvil_report_failure(report, CUVIL_IO_ERROR, "the weights reader of '%s' failed (%d)",
                              a->name, (int64_t)failed);
}

/* The file the artefact names, in the folder of the library that holds the artefact. */
static cuvil_status use_neighbour(const cuvil_artefact *a, const cuvil_report *report,
                                  cuvil_weights *weights) {
  char path[PATH_ROOM];
  const char *file = a->weights_file;
  if (!file || !file[0] || strchr(file, '/') || cuvil_platform_library_path(a, path, sizeof path)) {
    return cuvil_report_failure(report, CUVIL_INVALID_ARGUMENT,
                                "'%s' needs its weights file: give its path", a->name);
  }
  char *slash = strrchr(path, '/');
  size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
  if (folder + strlen(file) >= sizeof path) {
    return cuvil_report_failure(report, CUVIL_IO_ERROR, "the path of '%s' is too long", file);
  }
  memcpy(path + folder, file, strlen(file) + 1);
  return use_file(a, path, report, weights);
}

cuvil_status cuvil_weights_open(const cuvil_artefact *a, const cuvil_options *options,
                                const cuvil_report *report, cuvil_weights *weights) {
  weights->data = a->weights;
  if (a->weights || !a->weights_bytes) return CUVIL_OK;
  if (options->weights_path) return use_file(a, options->weights_path, report, weights);
  if (options->weights_image) {
    return use_image(a, options->weights_image, options->weights_image_bytes, "memory", report,
                     weights);
  }
  if (options->weights_reader) return use_reader(a, options, report, weights);
  return use_neighbour(a, report, weights);
}

void cuvil_weights_close(cuvil_weights *weights) {
  if (weights->mapped) cuvil_platform_unmap_file(weights->mapped, weights->mapped_bytes);
  cuvil_platform_free(weights->owned);
}
