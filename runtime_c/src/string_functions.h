/* What generated kernels call for strings: the functions of string_functions.c, which reach
 * artefacts that use them. Tables are constants in the formats of core/cuvil/ir/string_tables.py.
 *
 * All have one form: strings and numbers as many as the function takes, the table or NULL, and the
 * place of the result (a cuvil_string or an int64_t), which is written whatever happens. They
 * return 0 or CUVIL_OUT_OF_MEMORY. Strings need not be UTF-8: bytes that are not stand for
 * themselves. */
#ifndef CUVIL_STRING_FUNCTIONS_H
#define CUVIL_STRING_FUNCTIONS_H

#include "cuvil/abi.h"

#define CUVIL_STRING_FUNCTION(name)                                                                \
  int32_t cuvil_string_##name(cuvil_frame *run, const cuvil_string *texts, const int64_t *numbers, \
                              const void *table, void *result)

CUVIL_STRING_FUNCTION(at);     /* the string of a list at a position */
CUVIL_STRING_FUNCTION(order);  /* < 0, 0 or > 0, by bytes */
CUVIL_STRING_FUNCTION(find);   /* the position in a sorted list, or its length */
CUVIL_STRING_FUNCTION(match);  /* whether an automaton accepts all of it */
CUVIL_STRING_FUNCTION(concat); /* two strings, one behind the other */
CUVIL_STRING_FUNCTION(case);   /* every character by a case mapping */
CUVIL_STRING_FUNCTION(count);  /* how many pieces there are after at most numbers[0] splits */
CUVIL_STRING_FUNCTION(piece);  /* piece numbers[0] after at most numbers[1] splits, or "" */
CUVIL_STRING_FUNCTION(tokens); /* how many matches have at least numbers[0] characters */
CUVIL_STRING_FUNCTION(token);  /* match numbers[0] of those of at least numbers[1], or "" */

#endif
