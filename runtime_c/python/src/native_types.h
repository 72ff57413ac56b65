/* Values of compiled Python functions: how they lie in memory, and the type texts that say so.
 *
 * A value takes a fixed number of 8-byte slots:
 *   i int   f float   b bool   n None (no slot)   u<dtype> a numpy scalar's bits     one slot
 *   N       a number that is an int or a float: the double, then whether it is an int
 *   s       str: address, then length << 3 | kind (0 ASCII, 1 Latin-1, 2, 4 bytes a character)
 *   (T...)  tuple: its members one after another
 *   [T      list, {KV dict, <T set: the address of a List or Dict below
 *   a<dtype><rank><C|A><w|r>  ndarray: address, extents, strides in bytes, owner
 *   T<dtype><rank><C|A>w      a tensor of torch's, as an ndarray;  U<dtype> one of rank 0, as u
 *   |T...;  one of several: its number, then its slots
 * A dtype is numpy's character for it, `l` and `L` for the 64-bit integers.
 */
#ifndef CUVIL_NATIVE_TYPES_H
#define CUVIL_NATIVE_TYPES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <string>
#include <vector>

namespace cuvil::native {

enum class Kind : char {
  Int = 'i',
  Float = 'f',
  Bool = 'b',
  None = 'n',
  Scalar = 'u',
  Number = 'N',
  Str = 's',
  Tuple = '(',
  List = '[',
  Dict = '{',
  Set = '<',
  Array = 'a',
  Tensor = 'T',
  Element = 'U',
  Union = '|',
};

struct Type {
  Kind kind;
  char dtype = 0;
  int rank = 0;
  bool contiguous = false, writable = false;
  int slots = 1;
  std::vector<Type> parts;
  std::string key_kinds; /* of the key of a dict or set: see Dict */
};

std::string kinds_of(const Type &key);

/* The type that a text begins with; moves `text` behind it. Throws std::invalid_argument. */
Type parse_type(const char *&text);

struct Str {
  const char *data;
  uint64_t meta;
};

enum : uint64_t { ASCII = 0, KIND_MASK = 7, KIND_BITS = 3 };

inline int64_t length_of(const Str &s) { return static_cast<int64_t>(s.meta >> KIND_BITS); }
inline uint64_t kind_of(const Str &s) { return s.meta & KIND_MASK; }
inline bool is_ascii(const Str &s) { return kind_of(s) == ASCII; }
inline int64_t bytes_of(const Str &s) {
  uint64_t kind = kind_of(s);
  return length_of(s) * static_cast<int64_t>(kind ? kind : 1);
}

/* source: the object that it came from, or was made into; borrowed. */
struct List {
  int64_t size, capacity;
  int64_t *data;
  PyObject *source;
};

/* Open addressing into entries in order of insertion; an entry is hash, key, value. */
struct Dict {
  int64_t used, filled, capacity;
  int64_t *entries;
  int32_t *index;
  uint64_t mask;
  PyObject *source;
  int64_t key_slots, entry_slots;
  const char *key_kinds; /* per member of the key: i or s */
};

enum : int64_t { DELETED = -1 };

/* Memory of an array made in compiled code. owner of an array: address | 1 for one of these, else
 * the numpy array or tensor that it is (a view) of. */
struct Block {
  Block *next;
  PyObject *capsule;
  void *origin; /* what is to be freed: blocks begin at a multiple of their header's size */
  int64_t padding[5];
};

}  // namespace cuvil::native
#endif
