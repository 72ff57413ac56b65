/* Weights from a file, an image, a reader, and beside the program; damaged ones are refused. */
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "models.h"

typedef struct image {
  cuvil_weights_header header;
  float value;
} image;

static image good(void) {
  image i = {{CUVIL_ARTEFACT_MAGIC, CUVIL_ABI_VERSION, {1, 2, 3}, sizeof(float), {0}}, 2.5f};
  return i;
}

static char message[300];

static cuvil_options with_message(void) {
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.message = message;
  options.message_bytes = sizeof message;
  return options;
}

static void check_scales(const cuvil_options *options) {
  cuvil_model *model = NULL;
  cuvil_context *context;
  float x[] = {1, 2}, y[] = {0, 0};
  cuvil_value in = cuvil_tensor(CUVIL_F32, x, 1, (int64_t[]){2}), out = cuvil_output(y, sizeof y);
  CHECK(cuvil_model_open(&scale_artefact, options, &model) == CUVIL_OK);
  if (!model) return;
  CHECK(cuvil_context_create(model, &context) == CUVIL_OK);
  CHECK(cuvil_run(model, context, &in, &out) == CUVIL_OK && y[0] == 2.5f && y[1] == 5.0f);
  cuvil_context_destroy(context);
  cuvil_model_close(model);
}

static void check_refused(const image *damaged, cuvil_status status, const char *reason) {
  cuvil_options options = with_message();
  cuvil_model *model;
  options.weights_image = damaged;
  options.weights_image_bytes = sizeof *damaged;
  CHECK(cuvil_model_open(&scale_artefact, &options, &model) == status);
  CHECK_TEXT(message, reason);
}

static void test_images(void) {
  _Alignas(64) char memory[sizeof(image) + 64];
  cuvil_options options = with_message();
  image i = good();
  memcpy(memory, &i, sizeof i);
  options.weights_image = memory;
  options.weights_image_bytes = sizeof i;
  check_scales(&options);
  memcpy(memory + 1, &i, sizeof i); /* not aligned: copied */
  options.weights_image = memory + 1;
  check_scales(&options);
  i.header.magic++;
  check_refused(&i, CUVIL_BAD_ARTEFACT, "it is not a Cuvil weights file");
  i = good();
  i.header.build_id[31]++;
  check_refused(&i, CUVIL_BAD_ARTEFACT, "it belongs to another build of the model");
  i = good();
  i.header.weights_bytes++;
  check_refused(&i, CUVIL_BAD_ARTEFACT, "its size is not the model's");
}

static void write_file(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, count, file) == count);
  if (file) fclose(file);
}

static void test_files(void) {
  char path[] = "/tmp/cuvil_weights_XXXXXX";
  cuvil_options options = with_message();
  cuvil_model *model;
  image i = good();
  close(mkstemp(path));
  options.weights_path = path;
  write_file(path, &i, sizeof i);
  check_scales(&options);
  write_file(path, &i, sizeof i.header);
  CHECK(cuvil_model_open(&scale_artefact, &options, &model) == CUVIL_BAD_ARTEFACT);
  CHECK_TEXT(message, "64 bytes, 68 expected");
  options.weights_path = "/tmp";
  CHECK(cuvil_model_open(&scale_artefact, &options, &model) == CUVIL_IO_ERROR);
  options.weights_path = "/tmp/no/such/file";
  CHECK(cuvil_model_open(&scale_artefact, &options, &model) == CUVIL_IO_ERROR);
  CHECK_TEXT(message, "weights file '/tmp/no/such/file' of 'scale' cannot be read");
  unlink(path);
}

static void test_neighbour(void) {
  char path[1024];
  cuvil_options options = with_message();
  cuvil_model *model;
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 32);
  path[length > 0 ? length : 0] = 0;
  CHECK(cuvil_model_open(&scale_artefact, &options, &model) == CUVIL_IO_ERROR);
  strcpy(strrchr(path, '/') + 1, "scale.weights");
  CHECK_TEXT(message, path);
  if (access(path, F_OK)) {
    image i = good();
    FILE *file = fopen(path, "wb");
    if (!file) return; /* a read-only test folder */
    fwrite(&i, 1, sizeof i, file);
    fclose(file);
    check_scales(&options);
    unlink(path);
  }
}

static int32_t read_image(void *user, uint64_t offset, void *to, uint64_t bytes) {
  image i = good();
  if (user && offset) return 5;
  memcpy(to, (const char *)&i + offset, bytes);
  return 0;
}

static void test_reader(void) {
  cuvil_options options = with_message();
  cuvil_model *model;
  options.weights_reader = read_image;
  check_scales(&options);
  options.weights_user = &options; /* makes it fail */
  CHECK(cuvil_model_open(&scale_artefact, &options, &model) == CUVIL_IO_ERROR);
  CHECK_TEXT(message, "the weights reader of 'scale' failed (5)");
}

int main(void) {
  test_images();
  test_files();
  test_neighbour();
  test_reader();
  return check_result();
}
