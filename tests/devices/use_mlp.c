/* Runs mlp on a device that the program hands over; prints what comes out for x = 0.0, 0.1, ... */
#include <stdio.h>

#include "mlp.h"

extern const cuvil_device_api toy_device;

int main(void) {
  static float x[3 * 8], y[3 * 5];
  const cuvil_device_api *devices[] = {&toy_device};
  char message[256] = "";
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.message = message;
  options.message_bytes = sizeof message;
  mlp_model *model;
  mlp_context *context;
  if (mlp_open(&options, &model) != CUVIL_INVALID_ARGUMENT) return 1;
  printf("%s\n", message);
  options.devices = devices;
  options.device_count = 1;
  if (mlp_open(&options, &model) || mlp_context_create(model, &context)) return 2;
  for (int i = 0; i < 24; i++) x[i] = 0.1f * (float)i;
  cuvil_value input = cuvil_tensor(CUVIL_F32, x, 2, (const int64_t[]){3, 8});
  cuvil_value output = cuvil_output(y, sizeof y);
  if (mlp_run(model, context, &input, &output)) return 3;
  for (int i = 0; i < 15; i++) printf("%.9g\n", y[i]);
  mlp_context_destroy(context);
  mlp_close(model);
  return 0;
}
