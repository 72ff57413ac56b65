/* One specialisation of a compiled function: how it is called with Python objects. */
#ifndef CUVIL_NATIVE_CALL_H
#define CUVIL_NATIVE_CALL_H

#include "native_context.h"

namespace cuvil::native {

/* A global that the code took for a constant, or the content of a cell (then name is NULL). */
struct Guard {
  PyObject *globals, *name, *value;
};

struct Specialisation {
  std::vector<Type> parameters; /* of the arguments, then of `more` */
  std::vector<PyObject *> more; /* globals that are passed along */
  Type result;
  void (*entry)(int64_t *arguments, int64_t *result, Context *context) = nullptr;
  std::vector<Call> calls;
  std::vector<Guard> guards;
  std::vector<bool> written; /* per parameter: a list or dict whose object gets the contents */
  bool pure = true;          /* it can be run again by the interpreter */
  int argument_slots = 0;
  PyObject *code = nullptr; /* keeps the machine code */

  Specialisation() = default;
  Specialisation(const Specialisation &) = delete;
  Specialisation &operator=(const Specialisation &) = delete;
  ~Specialisation();
};

enum class Outcome { Done, Mismatch, Again, Failed };

/* Runs it on objects, one per parameter. Done: `result` is a new reference. Mismatch: the objects
 * are not of its types. Again: the interpreter is to run it and to raise what there is to raise.
 * Failed: `site` is the failure, with a Python exception set where it is negative. */
Outcome run(const Specialisation &code, PyObject *const *objects, PyObject **result, int64_t *site);

}  // namespace cuvil::native
#endif
