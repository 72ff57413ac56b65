// The same from C++: owners that close what they open, tensors as views, errors as exceptions.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "cuvil/cuvil.hpp"
#include "digits.h"

int main() {
  const std::vector<float> pictures = {
      0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1,  // a one
      1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1,  // a five with a hole
  };
  try {
    cuvil::model model(CUVIL_FUNCTIONS(digits));
    cuvil::context context(model);
    const auto outputs = context.run({cuvil::view<float>(pictures.data(), {2, 15})});
    const cuvil::view<float> scores(outputs[0]);
    for (int i = 0; i < scores.shape()[0]; i++) {
      const float *row = scores.begin() + 10 * i;
      const auto digit = std::max_element(row, row + 10) - row;
      std::printf("picture %d: %d\n", i, static_cast<int>(digit));
    }
    context.run({cuvil::view<float>(pictures.data(), {3, 10})});  // not a model's picture
  } catch (const cuvil::error &error) {
    std::printf("%s\n", error.what());
  }
}
