/* What one call of a compiled function owns: its memory, and the way out of it on failure. */
#ifndef CUVIL_NATIVE_CONTEXT_H
#define CUVIL_NATIVE_CONTEXT_H

#include <csetjmp>

#include "native_types.h"

namespace cuvil::native {

/* A call of something of Python's: a callee, or the method of the first argument by its name. */
struct Call {
  PyObject *callee; /* NULL: a method */
  PyObject *method;
  std::vector<Type> parameters;
  Type result;
  int argument_slots;
};

enum : int64_t { NO_MEMORY = -1, PYTHON_ERROR = -2 };

/* Compiled code knows this only by address. site: number of the failure, or one of the above. */
struct Context {
  char *cursor = nullptr, *end = nullptr;
  struct Chunk *chunks = nullptr;
  Block *blocks = nullptr;
  const std::vector<Call> *calls = nullptr;
  int64_t site = 0;
  bool started = false; /* the code runs: all arguments are there */
  int depth = 0;
  std::jmp_buf *way_out = nullptr;

  Context() = default;
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;
  ~Context();
};

/* Leaves compiled code; no object with a destructor may live between here and `way_out`. */
[[noreturn]] void fail(Context *context, int64_t site);

void *allocate_slowly(Context *context, int64_t bytes);

/* Memory until the end of the call, 8-byte aligned. Fails where there is none. */
inline void *allocate(Context *context, int64_t bytes) {
  bytes = (bytes + 7) & ~INT64_C(7);
  if (bytes > context->end - context->cursor) return allocate_slowly(context, bytes);
  char *found = context->cursor;
  context->cursor += bytes;
  return found;
}

/* Whether the memory that was allocated last, and ends there, has that much more at its end now. */
bool widen(Context *context, const void *end, int64_t bytes);

/* A block with room for so many bytes behind its header, or NULL. */
Block *make_block(int64_t bytes, bool cleared);
void free_block(Block *block);

bool unbox(Context *context, const Type &type, PyObject *object, int64_t *slots);
/* A new reference, or NULL with an exception set. */
PyObject *box(Context *context, const Type &type, const int64_t *slots);

/* Gives the object that a list or dict came from the contents of the value, and tells torch of a
 * tensor that was written. False: an exception. */
bool write_back(Context *context, const Type &type, const int64_t *slots);

Dict *new_dict(Context *context, const Type &key, int value_slots);
int64_t *dict_put(Context *context, Dict *dict, const int64_t *key);
Str read_any_str(PyObject *object);

/* Of an object that is a str and ready. */
inline Str read_str(PyObject *object) {
  if (!PyUnicode_IS_COMPACT_ASCII(object)) return read_any_str(object);
  uint64_t length = static_cast<uint64_t>(PyUnicode_GET_LENGTH(object));
  const char *data = reinterpret_cast<char *>(reinterpret_cast<PyASCIIObject *>(object) + 1);
  return {data, length << KIND_BITS | ASCII};
}

PyObject *make_str(const Str &text);

/* Addresses of the functions that compiled code calls, by name. */
struct Symbol {
  const char *name;
  void *address;
};
const Symbol *string_symbols();
const Symbol *container_symbols();
const Symbol *context_symbols();

}  // namespace cuvil::native
#endif
