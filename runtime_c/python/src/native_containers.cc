/* Lists, dicts and sets of compiled functions. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "native_context.h"
#include "native_words.h"

namespace cuvil::native {

namespace {

List *new_list(Context *context, int64_t capacity, int64_t slots) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(capacity, slots * 8, &bytes)) fail(context, NO_MEMORY);
  List *list = static_cast<List *>(allocate(context, sizeof(List)));
  *list = {0, capacity, static_cast<int64_t *>(allocate(context, bytes)), nullptr};
  return list;
}

/* Room for `extra` more items. */
void grow(Context *context, List *list, int64_t slots, int64_t extra) {
  int64_t needed = list->size + extra;
  if (needed <= list->capacity) return;
  int64_t capacity = std::max(needed, list->capacity * 2 + 4);
  int64_t more = (capacity - list->capacity) * slots * 8;
  if (widen(context, list->data + list->capacity * slots, more)) {
    list->capacity = capacity;
    return;
  }
  int64_t *data = static_cast<int64_t *>(allocate(context, capacity * slots * 8));
  std::memcpy(data, list->data, list->size * slots * 8);
  list->data = data;
  list->capacity = capacity;
}

List *slice(Context *context, const List *list, int64_t start, int64_t step, int64_t items,
            int64_t slots) {
  List *made = new_list(context, items, slots);
  for (int64_t i = 0; i < items; i++) {
    std::memcpy(made->data + i * slots, list->data + (start + i * step) * slots, slots * 8);
  }
  made->size = items;
  return made;
}

void extend(Context *context, List *list, const List *other, int64_t slots) {
  int64_t added = other->size;
  grow(context, list, slots, added);
  std::memcpy(list->data + list->size * slots, other->data, added * slots * 8);
  list->size += added;
}

List *concat(Context *context, const List *a, const List *b, int64_t slots) {
  List *made = new_list(context, a->size + b->size, slots);
  extend(context, made, a, slots);
  extend(context, made, b, slots);
  return made;
}

List *repeat(Context *context, const List *list, int64_t times, int64_t slots) {
  int64_t items = 0;
  if (__builtin_mul_overflow(list->size, std::max<int64_t>(times, 0), &items)) {
    fail(context, NO_MEMORY);
  }
  List *made = new_list(context, items, slots);
  for (int64_t i = 0; i < times; i++) extend(context, made, list, slots);
  return made;
}

/* The place of a new item before `at`. */
int64_t *insert(Context *context, List *list, int64_t at, int64_t slots) {
  grow(context, list, slots, 1);
  int64_t *place = list->data + at * slots;
  std::memmove(place + slots, place, (list->size - at) * slots * 8);
  list->size++;
  return place;
}

void remove(List *list, int64_t at, int64_t items, int64_t slots) {
  int64_t *place = list->data + at * slots;
  std::memmove(place, place + items * slots, (list->size - at - items) * slots * 8);
  list->size -= items;
}

void reverse(List *list, int64_t slots) {
  for (int64_t i = 0, j = list->size - 1; i < j; i++, j--) {
    std::swap_ranges(list->data + i * slots, list->data + (i + 1) * slots, list->data + j * slots);
  }
}

double as_double(int64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

using Compare = int64_t (*)(Str, Str);

Compare text_order() {
  static Compare found = nullptr;
  for (const Symbol *s = string_symbols(); !found && s->name; s++) {
    if (!std::strcmp(s->name, "py_str_compare")) found = reinterpret_cast<Compare>(s->address);
  }
  return found;
}

/* Whether a comes before b; kinds: per member, i int, f float, s str. */
bool before(const char *kinds, Compare order, const int64_t *a, const int64_t *b) {
  for (; *kinds; kinds++, a++, b++) {
    if (*kinds == 'i' && *a != *b) return *a < *b;
    if (*kinds == 'f' && as_double(*a) != as_double(*b)) return as_double(*a) < as_double(*b);
    if (*kinds == 's') {
      Str x, y;
      std::memcpy(&x, a++, sizeof x);
      std::memcpy(&y, b++, sizeof y);
      int64_t found = order(x, y);
      if (found) return found < 0;
    }
  }
  return false;
}

/* What Python makes of NaNs depends on how it sorts. */
void refuse_nan(Context *context, const List *list, const char *kinds, int64_t slots,
                int64_t site) {
  for (int64_t at = 0; *kinds; at += *kinds == 's' ? 2 : 1, kinds++) {
    for (int64_t i = 0; *kinds == 'f' && i < list->size; i++) {
      if (std::isnan(as_double(list->data[i * slots + at]))) fail(context, site);
    }
  }
}

template <class T, class Less>
void sort_items(Context *context, List *list, const Less &less) {
  T *from = reinterpret_cast<T *>(list->data), *to;
  T *other = static_cast<T *>(allocate(context, list->size * static_cast<int64_t>(sizeof(T))));
  T *data = from;
  for (int64_t width = 1; width < list->size; width *= 2, data = to) {
    to = data == from ? other : from;
    for (int64_t i = 0; i < list->size; i += 2 * width) {
      int64_t middle = std::min(i + width, list->size), end = std::min(i + 2 * width, list->size);
      std::merge(data + i, data + middle, data + middle, data + end, to + i, less);
    }
  }
  if (data != from) std::memcpy(from, data, list->size * sizeof(T));
}

/* Sorts indices, then moves the items. Stable, also when reversed. */
void sort(Context *context, List *list, int64_t slots, const char *kinds, int64_t reversed,
          int64_t site) {
  refuse_nan(context, list, kinds, slots, site);
  Compare order = text_order();
  const int64_t *data = list->data;
  if (slots == 1 && !reversed && !std::strcmp(kinds, "i")) {
    sort_items<int64_t>(context, list, std::less<int64_t>());
    return;
  }
  List *places = new_list(context, list->size, 1);
  for (int64_t i = 0; i < list->size; i++) places->data[i] = i;
  places->size = list->size;
  sort_items<int64_t>(context, places, [=](int64_t x, int64_t y) {
    if (reversed) std::swap(x, y);
    return before(kinds, order, data + x * slots, data + y * slots);
  });
  List *made = new_list(context, list->size, slots);
  for (int64_t i = 0; i < list->size; i++) {
    std::memcpy(made->data + i * slots, data + places->data[i] * slots, slots * 8);
  }
  std::memcpy(list->data, made->data, list->size * slots * 8);
}

uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 product =
      static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t add_short(uint64_t hash, Chars text) {
  uint64_t words[2];
  std::memcpy(words, &text, sizeof words);
  uint64_t mixed = mix(hash ^ words[0], words[1]);
  return mixed ^ mixed >> 32; /* words[1] is mostly 0, and the low bits are what a table takes */
}

__attribute__((noinline)) uint64_t add_long(uint64_t hash, const char *data, int64_t bytes) {
  for (; bytes > SHORT_BYTES; data += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    hash = mix(hash, word);
  }
  return add_short(hash, read_chars(data + bytes - SHORT_BYTES));
}

/* Never DELETED, so that the last step of a hash takes the sign. */
int64_t finished(uint64_t hash) { return static_cast<int64_t>(hash >> 1); }

inline __attribute__((always_inline)) uint64_t add_str(uint64_t hash, Str text) {
  int64_t bytes = bytes_of(text);
  hash ^= text.meta;
  if (bytes > SHORT_BYTES) return add_long(hash, text.data, bytes);
  return add_short(hash, short_text(text.data, bytes) & first_bytes(bytes));
}

inline int64_t hash_str(Str text) { return finished(add_str(0, text)); }

int64_t hash_key(const char *kinds, const int64_t *key) {
  uint64_t hash = 0;
  for (; *kinds; kinds++, key++) {
    if (*kinds == 's') {
      Str text;
      std::memcpy(&text, key++, sizeof text);
      hash = add_str(hash, text);
    } else {
      hash = mix(hash, static_cast<uint64_t>(*key));
    }
  }
  return finished(hash);
}

bool same_key(const char *kinds, const int64_t *a, const int64_t *b) {
  for (; *kinds; kinds++, a++, b++) {
    if (*kinds == 's') {
      Str x, y;
      std::memcpy(&x, a++, sizeof x);
      std::memcpy(&y, b++, sizeof y);
      if (x.meta != y.meta || !same_bytes(x.data, y.data, bytes_of(x))) return false;
    } else if (*a != *b) {
      return false;
    }
  }
  return true;
}

Dict *make_dict(Context *context, const char *kinds, int64_t key_slots, int64_t value_slots) {
  Dict *dict = static_cast<Dict *>(allocate(context, sizeof(Dict)));
  *dict = {};
  dict->key_slots = key_slots;
  dict->entry_slots = 1 + key_slots + value_slots;
  dict->key_kinds = kinds;
  return dict;
}

/* Makes room for one more entry; entries that are deleted go away. Most of the places are free,
 * and more than two thirds always: a search that takes a second step costs more than the rest. */
void rebuild(Context *context, Dict *dict) {
  int64_t capacity = std::max<int64_t>(8, dict->used * 2), width = dict->entry_slots;
  uint64_t places = 16;
  bool is_middling = capacity >= 32 && capacity <= 256; /* the index stays in the nearest cache */
  while (places < static_cast<uint64_t>(capacity) * (is_middling ? 12 : 3)) places *= 2;
  int64_t *entries = static_cast<int64_t *>(allocate(context, capacity * width * 8));
  int32_t *index = static_cast<int32_t *>(allocate(context, static_cast<int64_t>(places) * 4));
  std::memset(index, -1, places * 4);
  int64_t filled = 0;
  for (int64_t i = 0; i < dict->filled; i++) {
    const int64_t *entry = dict->entries + i * width;
    if (entry[0] == DELETED) continue;
    uint64_t at = static_cast<uint64_t>(entry[0]) & (places - 1);
    while (index[at] >= 0) at = (at + 1) & (places - 1);
    index[at] = static_cast<int32_t>(filled);
    std::memcpy(entries + filled++ * width, entry, width * 8);
  }
  dict->entries = entries;
  dict->index = index;
  dict->mask = places - 1;
  dict->capacity = capacity;
  dict->filled = filled;
}

/* The entry of a key, or NULL. */
int64_t *find_entry(const Dict *dict, const int64_t *key, int64_t hash) {
  if (!dict->used) return nullptr;
  for (uint64_t at = static_cast<uint64_t>(hash) & dict->mask; dict->index[at] >= 0;
       at = (at + 1) & dict->mask) {
    int64_t *entry = dict->entries + dict->index[at] * dict->entry_slots;
    if (entry[0] == hash && same_key(dict->key_kinds, entry + 1, key)) return entry;
  }
  return nullptr;
}

/* The place of a key's value, or NULL. */
int64_t *get(const Dict *dict, const int64_t *key) {
  int64_t *entry = find_entry(dict, key, hash_key(dict->key_kinds, key));
  return entry ? entry + 1 + dict->key_slots : nullptr;
}

inline bool is_key(const int64_t *entry, int64_t hash, Str key) {
  Str found;
  std::memcpy(&found, entry + 1, sizeof found);
  return entry[0] == hash && found.meta == key.meta &&
         same_bytes(found.data, key.data, bytes_of(key));
}

/* From the place of a hash on. */
__attribute__((noinline)) int64_t *search_on(const Dict *dict, int64_t hash, Str key) {
  for (uint64_t at = static_cast<uint64_t>(hash) & dict->mask; dict->index[at] >= 0;
       at = (at + 1) & dict->mask) {
    int64_t *entry = dict->entries + dict->index[at] * dict->entry_slots;
    if (is_key(entry, hash, key)) return entry + 3;
  }
  return nullptr;
}

__attribute__((noinline)) int64_t *get_any_str(const Dict *dict, Str key) {
  return search_on(dict, hash_str(key), key);
}

/* The same of a text of 16 bytes at most, with one branch. */
inline bool is_quick_key(const int64_t *entry, int64_t hash, Str key, Chars text, Chars mask) {
  Str found;
  std::memcpy(&found, entry + 1, sizeof found);
  if (ends_page(found.data)) return false;
  uint32_t same = bits_of(reinterpret_cast<Chars>((read_chars(found.data) & mask) == text));
  return !(static_cast<uint64_t>(entry[0] ^ hash) | (found.meta ^ key.meta) | (same ^ 0xFFFF));
}

int64_t *get_str(const Dict *dict, Str key) {
  if (!dict->used) return nullptr;
  if (!is_quick(key)) return get_any_str(dict, key);
  Chars mask = first_bytes(length_of(key)), text = read_chars(key.data) & mask;
  int64_t hash = finished(add_short(key.meta, text));
  int32_t place = dict->index[static_cast<uint64_t>(hash) & dict->mask];
  if (place < 0) return nullptr;
  int64_t *entry = dict->entries + place * dict->entry_slots;
  return is_quick_key(entry, hash, key, text, mask) ? entry + 3 : search_on(dict, hash, key);
}

int64_t *get_int(const Dict *dict, int64_t key) { return get(dict, &key); }

/* Takes a key out; the place of the value that it had, or NULL. */
int64_t *pop(Dict *dict, const int64_t *key) {
  int64_t *entry = find_entry(dict, key, hash_key(dict->key_kinds, key));
  if (!entry) return nullptr;
  entry[0] = DELETED;
  dict->used--;
  return entry + 1 + dict->key_slots;
}

Dict *copy(Context *context, const Dict *from) {
  Dict *dict = static_cast<Dict *>(allocate(context, sizeof(Dict)));
  *dict = *from;
  dict->source = nullptr;
  rebuild(context, dict);
  return dict;
}

void clear(Dict *dict) { dict->used = dict->filled = dict->capacity = 0; }

const Symbol SYMBOLS[] = {
    {"py_list_new", reinterpret_cast<void *>(new_list)},
    {"py_list_grow", reinterpret_cast<void *>(grow)},
    {"py_list_slice", reinterpret_cast<void *>(slice)},
    {"py_list_extend", reinterpret_cast<void *>(extend)},
    {"py_list_concat", reinterpret_cast<void *>(concat)},
    {"py_list_repeat", reinterpret_cast<void *>(repeat)},
    {"py_list_insert", reinterpret_cast<void *>(insert)},
    {"py_list_remove", reinterpret_cast<void *>(remove)},
    {"py_list_reverse", reinterpret_cast<void *>(reverse)},
    {"py_list_sort", reinterpret_cast<void *>(sort)},
    {"py_dict_new", reinterpret_cast<void *>(make_dict)},
    {"py_dict_get", reinterpret_cast<void *>(get)},
    {"py_dict_get_str", reinterpret_cast<void *>(get_str)},
    {"py_dict_get_int", reinterpret_cast<void *>(get_int)},
    {"py_dict_put", reinterpret_cast<void *>(dict_put)},
    {"py_dict_pop", reinterpret_cast<void *>(pop)},
    {"py_dict_copy", reinterpret_cast<void *>(copy)},
    {"py_dict_compact", reinterpret_cast<void *>(rebuild)},
    {"py_dict_clear", reinterpret_cast<void *>(clear)},
    {nullptr, nullptr},
};

void add_kinds(const Type &key, std::string *kinds) {
  if (key.kind == Kind::Tuple) {
    for (const Type &part : key.parts) add_kinds(part, kinds);
  } else {
    *kinds += key.kind == Kind::Str ? 's' : 'i';
  }
}

}  // namespace

Chars copied(const char *data, int64_t bytes) {
  Chars found{};
  std::memcpy(&found, data, static_cast<size_t>(bytes));
  return found;
}

bool same_long(const char *a, const char *b, int64_t bytes) {
  return !std::memcmp(a, b, static_cast<size_t>(bytes));
}

std::string kinds_of(const Type &key) {
  std::string kinds;
  add_kinds(key, &kinds);
  return kinds;
}

Dict *new_dict(Context *context, const Type &key, int value_slots) {
  return make_dict(context, key.key_kinds.c_str(), key.slots, value_slots);
}

int64_t *dict_put(Context *context, Dict *dict, const int64_t *key) {
  int64_t hash = hash_key(dict->key_kinds, key);
  int64_t *found = find_entry(dict, key, hash);
  if (found) return found + 1 + dict->key_slots;
  if (dict->filled == dict->capacity) rebuild(context, dict);
  uint64_t at = static_cast<uint64_t>(hash) & dict->mask;
  while (dict->index[at] >= 0) at = (at + 1) & dict->mask;
  dict->index[at] = static_cast<int32_t>(dict->filled);
  int64_t *entry = dict->entries + dict->filled++ * dict->entry_slots;
  dict->used++;
  entry[0] = hash;
  std::memcpy(entry + 1, key, dict->key_slots * 8);
  return entry + 1 + dict->key_slots;
}

const Symbol *container_symbols() { return SYMBOLS; }

}  // namespace cuvil::native
