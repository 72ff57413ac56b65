/* Multiplies matrices by a BLAS, for what an emulator counts meanwhile.
 *
 *   repeat_gemm LIBRARY ROWS COLUMNS INNER RUNS    [ROWS, INNER] by [INNER, COLUMNS], row-major
 *
 * Says for which cpu OpenBLAS takes this one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROW_MAJOR = 101, AS_IT_IS = 111 };

typedef void (*product)(int order, int a_form, int b_form, int rows, int columns, int inner,
                        float scale, const float *a, int a_row, const float *b, int b_row,
                        float kept, float *c, int c_row);

static float *numbers(int count) {
  float *found = malloc((size_t)count * sizeof *found);
  for (int i = 0; found && i < count; i++) found[i] = (float)(i % 13) - 6;
  return found;
}

int main(int count, char **arguments) {
  void *library = count == 6 ? dlopen(arguments[1], RTLD_NOW) : NULL;
  product sgemm = NULL;
  if (library) *(void **)&sgemm = dlsym(library, "cblas_sgemm");
  if (!sgemm) {
    fprintf(stderr, "%s\n", count == 6 ? dlerror() : "five arguments");
    return 1;
  }
  int rows = atoi(arguments[2]), columns = atoi(arguments[3]), inner = atoi(arguments[4]);
  float *a = numbers(rows * inner), *b = numbers(inner * columns), *c = numbers(rows * columns);
  if (!a || !b || !c) return 1;
  for (int i = atoi(arguments[5]); i > 0; i--) {
    sgemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, rows, columns, inner, 1, a, inner, b, columns, 0, c,
          columns);
  }
  const char *(*core)(void) = NULL;
  *(void **)&core = dlsym(library, "openblas_get_corename");
  puts(core ? core() : "?");
  return 0;
}
