/* What the runtime needs of the C library on targets without one; the program supplies them. */
#ifndef CUVIL_FREESTANDING_STRING_H
#define CUVIL_FREESTANDING_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *a, const void *b, size_t bytes);

#endif
