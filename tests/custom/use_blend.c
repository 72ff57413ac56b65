/* Runs model `net` of test_custom_aot.py, then makes it fail. */
#include <stdio.h>
#include <string.h>

#include "net.h"

int main(void) {
  float x[6] = {-1, 0, 1, 2, 3, 4}, y[6] = {1, 1, 1, 2, 2, 2}, z[6];
  int32_t status = net_inference(2, x, y, z);
  for (int i = 0; i < 6; i++) printf("%g ", (double)z[i]);
  printf("%d\n", (int)status);
  net_model *model;
  net_context *context;
  int64_t shape[2] = {2, 3};
  float w[6];
  if (net_open(NULL, &model) || net_context_create(model, &context)) return 1;
  memcpy(w, x, sizeof w);
  w[0] = 1e30f; /* the operator refuses it */
  cuvil_value in[2] = {cuvil_tensor(CUVIL_F32, w, 2, shape), cuvil_tensor(CUVIL_F32, y, 2, shape)};
  cuvil_value out[1] = {cuvil_output(z, sizeof z)};
  status = net_run(model, context, in, out);
  printf("%d %s: %s\n", (int)status, net_status_text(status), net_context_message(context));
  in[0].data = x;
  printf("%d\n", (int)net_run(model, context, in, out));
  net_context_destroy(context);
  net_close(model);
  return 0;
}
