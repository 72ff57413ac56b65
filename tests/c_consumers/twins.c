/* Libraries by dlopen, symbols shared: each must run its own code, also where names are equal.
 *     twins LIBRARY FACTOR SHIFT ...    all of models called add1, computing x * FACTOR + SHIFT */
#include <dlfcn.h>
#include <stdint.h>

#include "check.h"

typedef int32_t (*inference)(const float *x, float *y);

int main(int count, char **words) {
  inference functions[8];
  int libraries = (count - 1) / 3;
  for (int i = 0; i < libraries; i++) {
    void *library = dlopen(words[1 + 3 * i], RTLD_NOW | RTLD_GLOBAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    *(void **)&functions[i] = dlsym(library, "add1_inference");
    CHECK(functions[i]);
    CHECK(!dlclose(library)); /* the code stays: threads of its pool may live on */
  }
  for (int i = 0; i < libraries; i++) {
    float x[4] = {0, 1, 2, -3}, y[4];
    CHECK(functions[i](x, y) == 0);
    for (int j = 0; j < 4; j++) {
      CHECK(y[j] == x[j] * (float)atof(words[2 + 3 * i]) + (float)atof(words[3 + 3 * i]));
    }
  }
  puts("fine");
  return 0;
}
