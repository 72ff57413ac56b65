/* Strings of compiled functions. ASCII is done here; for the rest Python's own methods are asked.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "native_context.h"
#include "native_words.h"

namespace cuvil::native {

Str read_any_str(PyObject *object) {
  uint64_t kind =
      PyUnicode_IS_ASCII(object) ? uint64_t{ASCII} : static_cast<uint64_t>(PyUnicode_KIND(object));
  uint64_t length = static_cast<uint64_t>(PyUnicode_GET_LENGTH(object));
  return {static_cast<const char *>(PyUnicode_DATA(object)), length << KIND_BITS | kind};
}

PyObject *make_str(const Str &text) {
  if (!is_ascii(text)) {
    return PyUnicode_FromKindAndData(static_cast<int>(kind_of(text)), text.data, length_of(text));
  }
  if (length_of(text) < 2) return PyUnicode_FromKindAndData(1, text.data, length_of(text));
  PyObject *object = PyUnicode_New(length_of(text), 127);
  if (object) std::memcpy(PyUnicode_1BYTE_DATA(object), text.data, length_of(text));
  return object;
}

namespace {

Str ascii(const char *data, int64_t length) {
  return {data, static_cast<uint64_t>(length) << KIND_BITS};
}

/* Takes a new reference until the call ends; fails where there is none. */
PyObject *hold(Context *context, PyObject *object) {
  if (!object) fail(context, PYTHON_ERROR);
  Block *block = make_block(0, false);
  if (!block) {
    Py_DECREF(object);
    fail(context, NO_MEMORY);
  }
  block->capsule = object;
  block->next = context->blocks;
  context->blocks = block;
  return object;
}

PyObject *made(Context *context, const Str &text) { return hold(context, make_str(text)); }

Str by_method(Context *context, const Str &text, const char *name) {
  PyObject *object = made(context, text);
  return read_str(hold(context, PyObject_CallMethod(object, name, nullptr)));
}

uint32_t character(const Str &s, int64_t i) {
  uint64_t kind = kind_of(s);
  return PyUnicode_READ(static_cast<int>(kind ? kind : 1), s.data, i);
}

/* Characters [start, stop), in the narrowest kind that holds them, as Python has it. */
Str piece(Context *context, const Str &s, int64_t start, int64_t stop) {
  if (is_ascii(s)) return ascii(s.data + start, stop - start);
  if (start == 0 && stop == length_of(s)) return s;
  int64_t kind = static_cast<int64_t>(kind_of(s));
  PyObject *object =
      PyUnicode_FromKindAndData(static_cast<int>(kind), s.data + start * kind, stop - start);
  return read_str(hold(context, object));
}

bool equal(Str a, Str b) { return a.meta == b.meta && same_bytes(a.data, b.data, bytes_of(a)); }

int64_t compare(Str a, Str b) {
  int64_t shorter = length_of(a) < length_of(b) ? length_of(a) : length_of(b);
  if (is_ascii(a) && is_ascii(b)) {
    int order = std::memcmp(a.data, b.data, shorter);
    if (order) return order < 0 ? -1 : 1;
  } else {
    for (int64_t i = 0; i < shorter; i++) {
      uint32_t x = character(a, i), y = character(b, i);
      if (x != y) return x < y ? -1 : 1;
    }
  }
  return length_of(a) < length_of(b) ? -1 : length_of(a) > length_of(b);
}

bool is_space(unsigned char c) { return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31); }

enum { LEFT = 1, RIGHT = 2 };

inline Str strip_quick(Str s, int64_t sides) {
  int64_t length = length_of(s);
  uint32_t kept = ~bits_of(spaces(read_chars(s.data))) & ((1u << length) - 1);
  if (!kept) return ascii(s.data, 0);
  int64_t start = __builtin_ctz(kept), stop = 32 - __builtin_clz(kept);
  if (__builtin_expect(sides == LEFT, 0)) stop = length;
  if (__builtin_expect(sides == RIGHT, 0)) start = 0;
  return ascii(s.data + start, stop - start);
}

__attribute__((noinline)) Str strip_any(Context *context, Str s, int64_t sides) {
  static const char *const names[] = {"", "lstrip", "rstrip", "strip"};
  if (!is_ascii(s)) return by_method(context, s, names[sides]);
  int64_t start = 0, stop = length_of(s);
  while (sides & LEFT && start < stop && is_space(s.data[start])) start++;
  while (sides & RIGHT && stop > start && is_space(s.data[stop - 1])) stop--;
  return ascii(s.data + start, stop - start);
}

Str strip(Context *context, Str s, int64_t sides) {
  return is_quick(s) ? strip_quick(s, sides) : strip_any(context, s, sides);
}

bool among(const Str &set, uint32_t c) {
  for (int64_t i = 0; i < length_of(set); i++) {
    if (character(set, i) == c) return true;
  }
  return false;
}

Str strip_of(Context *context, Str s, Str set, int64_t sides) {
  int64_t start = 0, stop = length_of(s);
  while (sides & LEFT && start < stop && among(set, character(s, start))) start++;
  while (sides & RIGHT && stop > start && among(set, character(s, stop - 1))) stop--;
  return piece(context, s, start, stop);
}

/* What to flip in letters from `first` on to give them their other case. */
Chars flips_of(Chars text, char first) {
  unsigned char low = static_cast<unsigned char>(first);
  return between(text, low, static_cast<unsigned char>(low + 25)) & 0x20;
}

/* Letters from `first` to `first` + 25 of a text of 16 at most get their other case. There is
 * room for it; it is a copy even where nothing changes, which costs less than to guess. */
inline Str change_short(Context *context, Str s, Chars text, char first) {
  text ^= flips_of(text, first);
  s.data = static_cast<char *>(std::memcpy(context->cursor, &text, SHORT_BYTES));
  context->cursor += SHORT_BYTES;
  return s;
}

/* Vectors of which the last overlaps the one before it: from the text, whose case it keeps. */
Str change_long(Context *context, const Str &s, char first) {
  int64_t length = length_of(s), last = length - SHORT_BYTES;
  char *to = static_cast<char *>(allocate(context, length));
  uint32_t changed = 0;
  for (int64_t i = 0; i < length; i = i < last && i + SHORT_BYTES > last ? last : i + SHORT_BYTES) {
    Chars text = read_chars(s.data + i), flips = flips_of(text, first);
    changed |= bits_of(reinterpret_cast<Chars>(flips != 0));
    text ^= flips;
    std::memcpy(to + i, &text, SHORT_BYTES);
  }
  return changed ? ascii(to, length) : s;
}

__attribute__((noinline)) Str change_any(Context *context, Str s, char first) {
  if (!is_ascii(s)) return by_method(context, s, first == 'A' ? "lower" : "upper");
  if (length_of(s) > SHORT_BYTES) return change_long(context, s, first);
  context->cursor = static_cast<char *>(allocate(context, SHORT_BYTES));
  return change_short(context, s, copied(s.data, length_of(s)), first);
}

inline __attribute__((always_inline)) Str change(Context *context, Str s, char first) {
  bool quick = is_quick(s) && context->end - context->cursor >= SHORT_BYTES;
  return quick ? change_short(context, s, read_chars(s.data), first)
               : change_any(context, s, first);
}

Str lower(Context *context, Str s) { return change(context, s, 'A'); }

Str upper(Context *context, Str s) { return change(context, s, 'a'); }

bool is_at(const Str &s, const Str &part, int64_t at) {
  if (at < 0 || at + length_of(part) > length_of(s)) return false;
  if (is_ascii(s) && is_ascii(part)) return !std::memcmp(s.data + at, part.data, length_of(part));
  for (int64_t i = 0; i < length_of(part); i++) {
    if (character(s, at + i) != character(part, i)) return false;
  }
  return true;
}

bool starts(Str s, Str part) { return is_at(s, part, 0); }
bool ends(Str s, Str part) { return is_at(s, part, length_of(s) - length_of(part)); }

int64_t find(Str s, Str part, int64_t from) {
  int64_t last = length_of(s) - length_of(part);
  if (is_ascii(s) && is_ascii(part) && length_of(part) == 1) {
    if (from > last) return -1;
    const void *found = std::memchr(s.data + from, part.data[0], length_of(s) - from);
    return found ? static_cast<const char *>(found) - s.data : -1;
  }
  for (int64_t i = from; i <= last; i++) {
    if (is_at(s, part, i)) return i;
  }
  return -1;
}

int64_t count(Str s, Str part) {
  int64_t found = 0, step = length_of(part);
  if (!step) return length_of(s) + 1;
  for (int64_t i = find(s, part, 0); i >= 0; i = find(s, part, i + step)) found++;
  return found;
}

Str concat(Context *context, Str a, Str b) {
  if (kind_of(a) != kind_of(b)) {
    PyObject *left = made(context, a), *right = made(context, b);
    return read_str(hold(context, PyUnicode_Concat(left, right)));
  }
  char *to = static_cast<char *>(allocate(context, bytes_of(a) + bytes_of(b)));
  std::memcpy(to, a.data, bytes_of(a));
  std::memcpy(to + bytes_of(a), b.data, bytes_of(b));
  return {to, a.meta + (b.meta & ~uint64_t{KIND_MASK})};
}

Str repeat(Context *context, Str s, int64_t times) {
  int64_t bytes = bytes_of(s), total = 0;
  if (times <= 0 || !bytes) return ascii("", 0);
  if (__builtin_mul_overflow(bytes, times, &total)) fail(context, NO_MEMORY);
  char *to = static_cast<char *>(allocate(context, total));
  for (int64_t i = 0; i < times; i++) std::memcpy(to + i * bytes, s.data, bytes);
  return {to, (s.meta >> KIND_BITS) * static_cast<uint64_t>(times) << KIND_BITS | kind_of(s)};
}

Str slice(Context *context, Str s, int64_t start, int64_t step, int64_t items) {
  if (!items) return ascii("", 0);
  if (step == 1) return piece(context, s, start, start + items);
  int64_t width = kind_of(s) ? static_cast<int64_t>(kind_of(s)) : 1;
  char *to = static_cast<char *>(allocate(context, items * width));
  for (int64_t i = 0; i < items; i++) {
    std::memcpy(to + i * width, s.data + (start + i * step) * width, width);
  }
  if (is_ascii(s)) return ascii(to, items);
  return read_str(
      hold(context, PyUnicode_FromKindAndData(static_cast<int>(kind_of(s)), to, items)));
}

List *new_pieces(Context *context, int64_t capacity) {
  List *list = static_cast<List *>(allocate(context, sizeof(List)));
  int64_t *data = static_cast<int64_t *>(allocate(context, capacity * 2 * 8));
  *list = {0, capacity, data, nullptr};
  return list;
}

void push(List *list, const Str &text) {
  std::memcpy(list->data + 2 * list->size++, &text, sizeof text);
}

/* The list of str that a method of Python's gives. */
List *read_pieces(Context *context, PyObject *found) {
  hold(context, found);
  List *list = new_pieces(context, PyList_GET_SIZE(found));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(found); i++) {
    push(list, read_str(PyList_GET_ITEM(found, i)));
  }
  return list;
}

List *split(Context *context, Str s) {
  if (!is_ascii(s)) return read_pieces(context, PyUnicode_Split(made(context, s), nullptr, -1));
  int64_t length = length_of(s), i = 0;
  List *list = new_pieces(context, length / 2 + 1);
  while (true) {
    while (i < length && is_space(s.data[i])) i++;
    int64_t start = i;
    while (i < length && !is_space(s.data[i])) i++;
    if (i == start) return list;
    push(list, ascii(s.data + start, i - start));
  }
}

List *split_by(Context *context, Str s, Str separator) {
  if (!is_ascii(s) || !is_ascii(separator)) {
    PyObject *text = made(context, s), *by = made(context, separator);
    return read_pieces(context, PyUnicode_Split(text, by, -1));
  }
  List *list = new_pieces(context, count(s, separator) + 1);
  int64_t start = 0;
  for (int64_t i = find(s, separator, 0); i >= 0; i = find(s, separator, start)) {
    push(list, ascii(s.data + start, i - start));
    start = i + length_of(separator);
  }
  push(list, ascii(s.data + start, length_of(s) - start));
  return list;
}

Str join(Context *context, Str separator, const List *list) {
  const Str *items = reinterpret_cast<const Str *>(list->data);
  int64_t total = 0;
  uint64_t kinds = kind_of(separator);
  for (int64_t i = 0; i < list->size; i++) {
    kinds |= kind_of(items[i]);
    total += bytes_of(items[i]) + bytes_of(separator);
  }
  if (kinds) {
    Str sum = list->size ? items[0] : ascii("", 0);
    for (int64_t i = 1; i < list->size; i++) {
      sum = concat(context, concat(context, sum, separator), items[i]);
    }
    return sum;
  }
  char *data = static_cast<char *>(allocate(context, total)), *to = data;
  for (int64_t i = 0; i < list->size; i++) {
    if (i)
      to = static_cast<char *>(std::memcpy(to, separator.data, bytes_of(separator))) +
           bytes_of(separator);
    std::memcpy(to, items[i].data, bytes_of(items[i]));
    to += bytes_of(items[i]);
  }
  return ascii(data, to - data);
}

/* which: d isdigit, a isalpha, n isalnum, s isspace, u isupper, l islower. */
bool ask(Context *context, const Str &s, int64_t which) {
  const char *name = which == 'd'   ? "isdigit"
                     : which == 'a' ? "isalpha"
                     : which == 'n' ? "isalnum"
                     : which == 's' ? "isspace"
                     : which == 'u' ? "isupper"
                                    : "islower";
  return hold(context, PyObject_CallMethod(made(context, s), name, nullptr)) == Py_True;
}

bool is_made_of(Context *context, Str s, int64_t which) {
  if (!is_ascii(s) || which == 'u' || which == 'l') return ask(context, s, which);
  for (int64_t i = 0; i < length_of(s); i++) {
    unsigned char c = static_cast<unsigned char>(s.data[i]);
    bool digit = c >= '0' && c <= '9', letter = (c | 32) >= 'a' && (c | 32) <= 'z';
    bool good = which == 's' ? is_space(c) : (which != 'a' && digit) || (which != 'd' && letter);
    if (!good) return false;
  }
  return length_of(s) > 0;
}

Str of_int(Context *context, int64_t value) {
  char *to = static_cast<char *>(allocate(context, 24));
  return ascii(to, std::snprintf(to, 24, "%lld", static_cast<long long>(value)));
}

Str of_character(Context *context, int64_t code, int64_t site) {
  if (code < 0 || code > 0x10FFFF) fail(context, site);
  return read_str(hold(context, PyUnicode_FromOrdinal(static_cast<int>(code))));
}

int64_t code_of(Str s) { return character(s, 0); }

const Symbol SYMBOLS[] = {
    {"py_str_equal", reinterpret_cast<void *>(equal)},
    {"py_str_compare", reinterpret_cast<void *>(compare)},
    {"py_str_strip", reinterpret_cast<void *>(strip)},
    {"py_str_strip_of", reinterpret_cast<void *>(strip_of)},
    {"py_str_lower", reinterpret_cast<void *>(lower)},
    {"py_str_upper", reinterpret_cast<void *>(upper)},
    {"py_str_starts", reinterpret_cast<void *>(starts)},
    {"py_str_ends", reinterpret_cast<void *>(ends)},
    {"py_str_find", reinterpret_cast<void *>(find)},
    {"py_str_count", reinterpret_cast<void *>(count)},
    {"py_str_concat", reinterpret_cast<void *>(concat)},
    {"py_str_repeat", reinterpret_cast<void *>(repeat)},
    {"py_str_slice", reinterpret_cast<void *>(slice)},
    {"py_str_split", reinterpret_cast<void *>(split)},
    {"py_str_split_by", reinterpret_cast<void *>(split_by)},
    {"py_str_join", reinterpret_cast<void *>(join)},
    {"py_str_is", reinterpret_cast<void *>(is_made_of)},
    {"py_str_of_int", reinterpret_cast<void *>(of_int)},
    {"py_str_chr", reinterpret_cast<void *>(of_character)},
    {"py_str_ord", reinterpret_cast<void *>(code_of)},
    {nullptr, nullptr},
};

}  // namespace

const Symbol *string_symbols() { return SYMBOLS; }

}  // namespace cuvil::native
