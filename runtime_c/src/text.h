/* Messages without stdio. */
#ifndef CUVIL_TEXT_H
#define CUVIL_TEXT_H

#include <stdarg.h>
#include <stddef.h>

/* Writes `format` to `out`, cut to `room` bytes with the closing zero. Knows two directives: %s is
 * a string (NULL prints "?"), %d an int64_t. */
void cuvil_format(char *out, size_t room, const char *format, ...);
void cuvil_format_list(char *out, size_t room, const char *format, va_list arguments);

#endif
