#include "string_functions.h"

#include <string.h>

static const cuvil_string NOTHING = {NULL, 0};

/* ---- lists ---- */

static cuvil_string list_item(const void *table, int64_t i) {
  const int64_t *list = table;
  const char *bytes = (const char *)(list + list[0] + 2);
  return (cuvil_string){bytes + list[1 + i], list[2 + i] - list[1 + i]};
}

static int compare_strings(cuvil_string a, cuvil_string b) {
  size_t both = (size_t)(a.size < b.size ? a.size : b.size);
  int order = both ? memcmp(a.data, b.data, both) : 0;
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

CUVIL_STRING_FUNCTION(at) {
  (void)run, (void)texts;
  *(cuvil_string *)result = list_item(table, numbers[0]);
  return CUVIL_OK;
}

CUVIL_STRING_FUNCTION(order) {
  (void)run, (void)numbers, (void)table;
  *(int64_t *)result = compare_strings(texts[0], texts[1]);
  return CUVIL_OK;
}

CUVIL_STRING_FUNCTION(find) {
  (void)run, (void)numbers;
  int64_t count = *(const int64_t *)table, low = 0, high = count;
  *(int64_t *)result = count;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = compare_strings(texts[0], list_item(table, middle));
    if (!order) *(int64_t *)result = middle;
    if (!order) break;
    if (order < 0) high = middle;
    if (order > 0) low = middle + 1;
  }
  return CUVIL_OK;
}

/* ---- patterns ---- */

typedef struct automaton {
  uint32_t classes;
  const uint8_t *class_of, *accepts;
  const uint32_t *follow;
} automaton;

static automaton read_automaton(const void *table) {
  const uint32_t *head = table;
  const uint8_t *class_of = (const uint8_t *)(head + 2), *accepts = class_of + 256;
  const void *follow = accepts + (head[0] + 3) / 4 * 4;
  return (automaton){head[1], class_of, accepts, follow};
}

static uint32_t step(const automaton *a, uint32_t state, char byte) {
  return a->follow[state * a->classes + a->class_of[(uint8_t)byte]];
}

CUVIL_STRING_FUNCTION(match) {
  (void)run, (void)numbers;
  automaton a = read_automaton(table);
  uint32_t state = 1;
  for (int64_t i = 0; state && i < texts[0].size; i++) state = step(&a, state, texts[0].data[i]);
  *(int64_t *)result = a.accepts[state];
  return CUVIL_OK;
}

/* ---- new strings ---- */

/* Room for a string of `size` bytes; NULL in `result` and a status where there is none. */
static int32_t make_string(cuvil_frame *run, int64_t size, cuvil_string *result) {
  *result = NOTHING;
  if (!size) return CUVIL_OK;
  char *room = run->api->string_bytes(run, size);
  if (!room) return CUVIL_OUT_OF_MEMORY;
  *result = (cuvil_string){room, size};
  return CUVIL_OK;
}

CUVIL_STRING_FUNCTION(concat) {
  (void)numbers, (void)table;
  cuvil_string a = texts[0], b = texts[1], *made = result;
  *made = a.size ? a : b;
  if (!a.size || !b.size) return CUVIL_OK;
  int32_t status = make_string(run, a.size + b.size, made);
  if (status) return status;
  memcpy((char *)made->data, a.data, (size_t)a.size);
  memcpy((char *)made->data + a.size, b.data, (size_t)b.size);
  return CUVIL_OK;
}

enum { NO_CHARACTER = 0x110000 };

/* How many bytes the character that a byte begins has; 0: none begins so. */
static int length_of(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

/* The character at `at`, and its length; NO_CHARACTER of one byte for what is not UTF-8. */
static uint32_t decode(const uint8_t *at, const uint8_t *end, int *length) {
  static const uint8_t lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  int count = length_of(*at);
  *length = 1;
  if (!count || end - at < count) return NO_CHARACTER;
  uint32_t code = *at & lead_bits[count];
  for (int i = 1; i < count; i++) {
    if ((at[i] & 0xC0) != 0x80) return NO_CHARACTER;
    code = code << 6 | (at[i] & 0x3Fu);
  }
  *length = count;
  return code;
}

static int encoded_length(uint32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

static void encode(uint32_t code, uint8_t *to) {
  static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
  int count = encoded_length(code);
  for (int i = count - 1; i > 0; i--, code >>= 6) to[i] = (uint8_t)(0x80 | (code & 0x3F));
  to[0] = (uint8_t)(leads[count] | code);
}

static uint32_t map_character(const uint32_t *table, uint32_t code) {
  const uint32_t *pairs = table + 1;
  uint32_t low = 0, high = table[0];
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (pairs[2 * middle] < code) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < table[0] && pairs[2 * low] == code ? pairs[2 * low + 1] : code;
}

/* Writes the mapped characters where `to` is not NULL; returns how many bytes they take. */
static int64_t map_case(cuvil_string text, const uint32_t *table, uint8_t *to) {
  const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
  int64_t total = 0;
  for (int length; at < end; at += length) {
    uint32_t code = decode(at, end, &length), other = code;
    if (code != NO_CHARACTER) other = map_character(table, code);
    int written = code == NO_CHARACTER ? 1 : encoded_length(other);
    if (to && code == NO_CHARACTER) to[total] = *at;
    if (to && code != NO_CHARACTER) encode(other, to + total);
    total += written;
  }
  return total;
}

CUVIL_STRING_FUNCTION(case) {
  (void)numbers;
  cuvil_string *made = result, text = texts[0];
  if (!text.size) return make_string(run, 0, made);
  int32_t status = make_string(run, map_case(text, table, NULL), made);
  if (!status) map_case(text, table, (uint8_t *)made->data);
  return status;
}

/* ---- pieces ---- */

/* The characters that Unicode calls white space or separators of lines. */
static int is_space(uint32_t code) {
  if (code < 0x80) return (code >= 9 && code <= 13) || (code >= 0x1C && code <= 0x20);
  if (code < 0x2000) return code == 0x85 || code == 0xA0 || code == 0x1680;
  return code <= 0x200A || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

/* Past all characters from `at` on that are white space (space = 1) or are not (0). */
static const char *skip_characters(const char *at, const char *end, int space) {
  for (int length; at < end; at += length) {
    uint32_t code = decode((const uint8_t *)at, (const uint8_t *)end, &length);
    if (is_space(code) != space) break;
  }
  return at;
}

/* What is left of a string, and how many splits may follow (< 0: any number). */
typedef struct cursor {
  const char *at, *end;
  int64_t splits;
  int done;
} cursor;

static cursor begin_pieces(cuvil_string text, int64_t splits) {
  const char *at = text.size ? text.data : ""; /* no arithmetic on NULL */
  return (cursor){at, at + text.size, splits, 0};
}

static const char *find_delimiter(const cursor *c, cuvil_string delimiter) {
  for (const char *at = c->at; c->end - at >= delimiter.size; at++) {
    if (!memcmp(at, delimiter.data, (size_t)delimiter.size)) return at;
  }
  return NULL;
}

static int next_word(cursor *c, cuvil_string *piece) {
  c->at = skip_characters(c->at, c->end, 1);
  if (c->at == c->end) return 0;
  const char *stop = c->splits ? skip_characters(c->at, c->end, 0) : c->end;
  *piece = (cuvil_string){c->at, stop - c->at};
  c->at = stop;
  c->splits--;
  return 1;
}

static int next_piece(cursor *c, cuvil_string delimiter, cuvil_string *piece) {
  if (!delimiter.size) return next_word(c, piece);
  if (c->done) return 0;
  const char *stop = c->splits ? find_delimiter(c, delimiter) : NULL;
  c->done = !stop;
  *piece = (cuvil_string){c->at, (stop ? stop : c->end) - c->at};
  if (stop) c->at = stop + delimiter.size;
  c->splits--;
  return 1;
}

CUVIL_STRING_FUNCTION(count) {
  (void)run;
  cuvil_string piece;
  cursor c = begin_pieces(texts[0], numbers[0]);
  int64_t count = 0;
  while (next_piece(&c, list_item(table, 0), &piece)) count++;
  *(int64_t *)result = count;
  return CUVIL_OK;
}

CUVIL_STRING_FUNCTION(piece) {
  (void)run;
  cuvil_string piece;
  cursor c = begin_pieces(texts[0], numbers[1]);
  int64_t left = numbers[0];
  *(cuvil_string *)result = NOTHING;
  while (left >= 0 && next_piece(&c, list_item(table, 0), &piece)) left--;
  if (left < 0) *(cuvil_string *)result = piece;
  return CUVIL_OK;
}

/* ---- tokens ---- */

/* How many bytes from `at` on the longest match has; 0: none but perhaps an empty one. */
static int64_t match_length(const automaton *a, const char *at, const char *end) {
  int64_t longest = 0;
  uint32_t state = 1;
  for (const char *p = at; state && p < end;) {
    state = step(a, state, *p++);
    if (a->accepts[state]) longest = p - at;
  }
  return longest;
}

static int64_t count_characters(const char *at, int64_t size) {
  const char *end = at + size;
  int64_t count = 0;
  for (int length; at < end; at += length, count++) {
    decode((const uint8_t *)at, (const uint8_t *)end, &length);
  }
  return count;
}

/* The next match of at least `least` characters from c->at on. */
static int next_token(cursor *c, const automaton *a, int64_t least, cuvil_string *token) {
  while (c->at < c->end) {
    int64_t size = match_length(a, c->at, c->end);
    int length;
    decode((const uint8_t *)c->at, (const uint8_t *)c->end, &length);
    *token = (cuvil_string){c->at, size};
    c->at += size ? size : length;
    if (size && count_characters(token->data, size) >= least) return 1;
  }
  return 0;
}

CUVIL_STRING_FUNCTION(tokens) {
  (void)run;
  automaton a = read_automaton(table);
  cuvil_string token;
  cursor c = begin_pieces(texts[0], 0);
  int64_t count = 0;
  while (next_token(&c, &a, numbers[0], &token)) count++;
  *(int64_t *)result = count;
  return CUVIL_OK;
}

CUVIL_STRING_FUNCTION(token) {
  (void)run;
  automaton a = read_automaton(table);
  cuvil_string token;
  cursor c = begin_pieces(texts[0], 0);
  int64_t left = numbers[0];
  *(cuvil_string *)result = NOTHING;
  while (left >= 0 && next_token(&c, &a, numbers[1], &token)) left--;
  if (left < 0) *(cuvil_string *)result = token;
  return CUVIL_OK;
}
