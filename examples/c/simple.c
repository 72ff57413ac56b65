/* The simplest use of a compiled model: one call. */
#include <stdio.h>

#include "digits.h"

int main(void) {
  const float picture[15] = {
      1, 1, 1, /* a seven */
      0, 0, 1, /**/
      0, 1, 0, /**/
      0, 1, 0, /**/
      0, 1, 0,
  };
  float scores[10];
  /* The model takes any number of pictures, so their count comes first: here 1. */
  int32_t status = digits_inference(1, picture, scores);
  if (status) {
    fprintf(stderr, "%s\n", digits_status_text(status));
    return 1;
  }
  int best = 0;
  for (int i = 1; i < 10; i++) {
    if (scores[i] > scores[best]) best = i;
  }
  printf("it is a %d\n", best);
  return 0;
}
