// The generated header from C++: simple and full use.
#include <vector>

#include "check.h"
#include "dense.h"

int main() {
  std::vector<float> x(3 * 8, 0.5f), simple(3 * 16), full(3 * 16);
  CHECK(dense_inference(3, x.data(), simple.data()) == CUVIL_OK);

  dense_model *model = nullptr;
  dense_context *context = nullptr;
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.threads = 1;
  CHECK(dense_open(&options, &model) == CUVIL_OK);
  CHECK(dense_context_create(model, &context) == CUVIL_OK);
  const int64_t shape[] = {3, 8};
  cuvil_value input = cuvil_tensor(CUVIL_F32, x.data(), 2, shape);
  cuvil_value output = cuvil_output(full.data(), full.size() * sizeof(float));
  CHECK(dense_run(model, context, &input, &output) == CUVIL_OK);
  CHECK(output.rank == 2 && output.shape[0] == 3 && output.shape[1] == 16);
  CHECK(simple == full);
  dense_context_destroy(context);
  dense_close(model);
  puts("fine");
}
