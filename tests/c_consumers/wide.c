/* The one-call form of a model with more inputs than most. */
#include "wide.h"
#include "check.h"

int main(void) {
  float x[12][4], y[4];
  for (int i = 0; i < 12; i++) {
    for (int j = 0; j < 4; j++) x[i][j] = (float)(i + j);
  }
  for (int call = 0; call < 3; call++) {
    CHECK(wide_inference(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10], x[11],
                         y) == CUVIL_OK);
    for (int j = 0; j < 4; j++) CHECK(y[j] == (float)(66 + 12 * j));
  }
  puts("fine");
  return 0;
}
