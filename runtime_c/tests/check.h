/* A test is a program: CHECK what must hold, return check_result() from main. */
#ifndef CUVIL_TESTS_CHECK_H
#define CUVIL_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>

static int check_failures;

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #condition); \
      check_failures++;                                                      \
    }                                                                        \
  } while (0)

#define CHECK_TEXT(text, part)                                                           \
  do {                                                                                   \
    if (!strstr(text, part)) {                                                           \
      fprintf(stderr, "%s:%d: '%s' is not in '%s'\n", __FILE__, __LINE__, part, (text)); \
      check_failures++;                                                                  \
    }                                                                                    \
  } while (0)

static inline int check_result(void) {
  if (!check_failures) puts("ok");
  return check_failures != 0;
}

#endif
