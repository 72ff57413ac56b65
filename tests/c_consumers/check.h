/* What the test programs share: a failed check names its place and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static inline int near_to(float a, float b) {
  float difference = a - b, size = b < 0 ? -b : b;
  if (difference < 0) difference = -difference;
  return difference <= 1e-5f + 1e-4f * size;
}

#endif
