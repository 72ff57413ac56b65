#include "native_context.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace cuvil::native {

/* A piece of a call's memory, of STANDARD_BYTES or a power of two times as many. One of each of the
 * smaller sizes is kept between calls: pages that are new to a process cost more than what is
 * written to them. */
struct Chunk {
  Chunk *next;
  int64_t bytes;
};

namespace {

constexpr int64_t STANDARD_BYTES = 1 << 16, LARGEST_BYTES = 1 << 26, MAX_BYTES = INT64_C(1) << 46;
constexpr int MAX_DEPTH = 2000, KEPT_SIZES = 7; /* 8 MiB at most */
Chunk *kept[KEPT_SIZES] = {nullptr};            /* the interpreter's lock is held in all of this */

/* Where a chunk of that size is kept, or NULL for sizes that are not. */
Chunk **place_of(int64_t bytes) {
  int doublings = __builtin_ctzll(static_cast<uint64_t>(bytes / STANDARD_BYTES));
  return doublings < KEPT_SIZES ? kept + doublings : nullptr;
}

Chunk *new_chunk(int64_t bytes) {
  Chunk **place = place_of(bytes);
  if (place && *place) {
    Chunk *chunk = *place;
    *place = nullptr;
    return chunk;
  }
  Chunk *chunk = bytes > MAX_BYTES ? nullptr : static_cast<Chunk *>(std::malloc(bytes));
  if (chunk) chunk->bytes = bytes;
  return chunk;
}

Block *new_block(Context *context, int64_t bytes, int64_t cleared) {
  if (bytes < 0 || bytes > MAX_BYTES) fail(context, NO_MEMORY);
  Block *block = make_block(bytes, cleared != 0);
  if (!block) fail(context, NO_MEMORY);
  block->next = context->blocks;
  context->blocks = block;
  return block;
}

void enter(Context *context, int64_t site) {
  if (++context->depth > MAX_DEPTH) fail(context, site);
}

void leave(Context *context) { context->depth--; }

/* Calls into Python with values that are boxed and a result that is unboxed. */
void call_python(Context *context, int64_t number, const int64_t *slots, int64_t *result) {
  enum { MOST = 8 };
  const Call &call = (*context->calls)[static_cast<size_t>(number)];
  PyObject *arguments[MOST + 1] = {nullptr};
  size_t count = call.parameters.size();
  PyObject *answer = nullptr;
  bool good = count <= MOST;
  for (size_t i = 0; i < count && good; i++) {
    arguments[i] = box(context, call.parameters[i], slots);
    good = arguments[i] != nullptr;
    slots += call.parameters[i].slots;
  }
  if (good && call.callee) {
    answer = PyObject_Vectorcall(call.callee, arguments, count, nullptr);
  } else if (good) {
    answer = PyObject_VectorcallMethod(call.method, arguments, count, nullptr);
  }
  for (size_t i = 0; i < count; i++) Py_XDECREF(arguments[i]);
  if (answer) {
    good = unbox(context, call.result, answer, result);
    if (good && call.result.kind == Kind::List) {
      reinterpret_cast<List *>(static_cast<uintptr_t>(*result))->source = nullptr; /* a copy */
    }
    /* What was unboxed may borrow from the answer: it stays until the call ends. */
    Block *holder = new_block(context, 0, 0);
    holder->capsule = answer;
    if (!good) PyErr_SetString(PyExc_TypeError, "a function of Python's gave another type");
  }
  if (!answer || !good) fail(context, PYTHON_ERROR);
}

double raise_to(double base, double exponent) { return std::pow(base, exponent); }

template <double (*F)(double)>
double one(double x) {
  return F(x);
}

const Symbol SYMBOLS[] = {
    {"py_fail", reinterpret_cast<void *>(fail)},
    {"py_allocate", reinterpret_cast<void *>(allocate)},
    {"py_block", reinterpret_cast<void *>(new_block)},
    {"py_enter", reinterpret_cast<void *>(enter)},
    {"py_leave", reinterpret_cast<void *>(leave)},
    {"py_call", reinterpret_cast<void *>(call_python)},
    {"pow", reinterpret_cast<void *>(raise_to)},
    {"exp", reinterpret_cast<void *>(one<std::exp>)},
    {"exp2", reinterpret_cast<void *>(one<std::exp2>)},
    {"expm1", reinterpret_cast<void *>(one<std::expm1>)},
    {"log", reinterpret_cast<void *>(one<std::log>)},
    {"log2", reinterpret_cast<void *>(one<std::log2>)},
    {"log10", reinterpret_cast<void *>(one<std::log10>)},
    {"log1p", reinterpret_cast<void *>(one<std::log1p>)},
    {"sin", reinterpret_cast<void *>(one<std::sin>)},
    {"cos", reinterpret_cast<void *>(one<std::cos>)},
    {"tan", reinterpret_cast<void *>(one<std::tan>)},
    {"asin", reinterpret_cast<void *>(one<std::asin>)},
    {"acos", reinterpret_cast<void *>(one<std::acos>)},
    {"atan", reinterpret_cast<void *>(one<std::atan>)},
    {"sinh", reinterpret_cast<void *>(one<std::sinh>)},
    {"cosh", reinterpret_cast<void *>(one<std::cosh>)},
    {"tanh", reinterpret_cast<void *>(one<std::tanh>)},
    {"asinh", reinterpret_cast<void *>(one<std::asinh>)},
    {"acosh", reinterpret_cast<void *>(one<std::acosh>)},
    {"atanh", reinterpret_cast<void *>(one<std::atanh>)},
    {"erf", reinterpret_cast<void *>(one<std::erf>)},
    {"erfc", reinterpret_cast<void *>(one<std::erfc>)},
    {"floor", reinterpret_cast<void *>(one<std::floor>)},
    {"ceil", reinterpret_cast<void *>(one<std::ceil>)},
    {"trunc", reinterpret_cast<void *>(one<std::trunc>)},
    {"rint", reinterpret_cast<void *>(one<std::rint>)},
    {"fmod", reinterpret_cast<void *>(static_cast<double (*)(double, double)>(std::fmod))},
    {"atan2", reinterpret_cast<void *>(static_cast<double (*)(double, double)>(std::atan2))},
    {"hypot", reinterpret_cast<void *>(static_cast<double (*)(double, double)>(std::hypot))},
    {nullptr, nullptr},
};

}  // namespace

void fail(Context *context, int64_t site) {
  context->site = site;
  std::longjmp(*context->way_out, 1);
}

void *allocate_slowly(Context *context, int64_t bytes) {
  int64_t before = context->chunks ? context->chunks->bytes : STANDARD_BYTES / 2;
  int64_t size = before < LARGEST_BYTES ? before * 2 : LARGEST_BYTES;
  int64_t header = static_cast<int64_t>(sizeof(Chunk));
  if (bytes > MAX_BYTES) fail(context, NO_MEMORY);
  while (size < bytes + header) size *= 2;
  Chunk *chunk = new_chunk(size);
  if (!chunk) fail(context, NO_MEMORY);
  chunk->next = context->chunks;
  context->chunks = chunk;
  context->cursor = reinterpret_cast<char *>(chunk + 1);
  context->end = reinterpret_cast<char *>(chunk) + size;
  char *found = context->cursor;
  context->cursor += bytes;
  return found;
}

bool widen(Context *context, const void *end, int64_t bytes) {
  bytes = (bytes + 7) & ~INT64_C(7);
  if (context->cursor != end || bytes > context->end - context->cursor) return false;
  context->cursor += bytes;
  return true;
}

Block *make_block(int64_t bytes, bool cleared) {
  size_t size = 2 * sizeof(Block) + static_cast<size_t>(bytes);
  void *origin = cleared ? std::calloc(1, size) : std::malloc(size);
  if (!origin) return nullptr;
  uintptr_t place = reinterpret_cast<uintptr_t>(origin) + sizeof(Block) - 1;
  Block *block = reinterpret_cast<Block *>(place & ~(sizeof(Block) - 1));
  *block = {nullptr, nullptr, origin, {}};
  return block;
}

void free_block(Block *block) { std::free(block->origin); }

Context::~Context() {
  while (chunks) {
    Chunk *next = chunks->next, **place = place_of(chunks->bytes);
    if (place && !*place) {
      *place = chunks;
    } else {
      std::free(chunks);
    }
    chunks = next;
  }
  while (blocks) {
    Block *next = blocks->next;
    PyObject *capsule = blocks->capsule;
    bool given = capsule && PyCapsule_CheckExact(capsule); /* the capsule frees it */
    if (!given) free_block(blocks);
    Py_XDECREF(capsule);
    blocks = next;
  }
}

const Symbol *context_symbols() { return SYMBOLS; }

}  // namespace cuvil::native
