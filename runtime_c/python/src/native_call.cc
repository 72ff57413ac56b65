#include "native_call.h"

#include <cstring>

namespace cuvil::native {

namespace {

enum { STACK_SLOTS = 128 };

bool guards_hold(const Specialisation &code) {
  for (const Guard &guard : code.guards) {
    PyObject *now =
        guard.name ? PyDict_GetItemWithError(guard.globals, guard.name) : PyCell_GET(guard.globals);
    if (now != guard.value) return false;
  }
  return true;
}

/* One list passed twice would be two lists in compiled code. */
bool are_distinct(const Specialisation &code, PyObject *const *objects) {
  for (size_t i = 0; i < code.written.size(); i++) {
    bool mine = code.written[i] && code.parameters[i].kind != Kind::Tensor;
    for (size_t j = 0; mine && j < code.written.size(); j++) {
      if (j != i && objects[j] == objects[i]) return false;
    }
  }
  return true;
}

bool take(Context *context, const Specialisation &code, PyObject *const *objects, int64_t *slots) {
  size_t given = code.parameters.size() - code.more.size();
  for (size_t i = 0; i < code.parameters.size(); i++) {
    PyObject *object = i < given ? objects[i] : code.more[i - given];
    if (!unbox(context, code.parameters[i], object, slots)) return false;
    slots += code.parameters[i].slots;
  }
  return true;
}

/* Everything that may fail by a jump. Returns whether the objects were of the right types. */
__attribute__((noinline)) bool execute(Context *context, const Specialisation &code,
                                       PyObject *const *objects, int64_t *arguments,
                                       int64_t *result, bool *failed) {
  std::jmp_buf way_out;
  context->way_out = &way_out;
  if (_setjmp(way_out)) {
    *failed = true;
    return true;
  }
  if (!take(context, code, objects, arguments)) return false;
  context->started = true;
  code.entry(arguments, result, context);
  return true;
}

bool give_back(Context *context, const Specialisation &code, const int64_t *arguments) {
  const int64_t *slots = arguments;
  for (size_t i = 0; i < code.parameters.size(); i++) {
    bool mine = i < code.written.size() && code.written[i];
    if (mine && !write_back(context, code.parameters[i], slots)) return false;
    slots += code.parameters[i].slots;
  }
  return true;
}

/* After a failure: what was written stays written. */
bool tell_of_writes(Context *context, const Specialisation &code, const int64_t *arguments) {
  if (!context->started) return true;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  bool good = give_back(context, code, arguments);
  if (good) PyErr_Restore(type, value, trace);
  return good;
}

/* Boxing may fail by a jump too, when memory ends. */
__attribute__((noinline)) PyObject *finish(Context *context, const Specialisation &code,
                                           const int64_t *arguments, const int64_t *result) {
  std::jmp_buf way_out;
  context->way_out = &way_out;
  if (_setjmp(way_out)) return PyErr_Occurred() ? nullptr : PyErr_NoMemory();
  if (!give_back(context, code, arguments)) return nullptr;
  return box(context, code.result, result);
}

}  // namespace

Specialisation::~Specialisation() {
  for (Guard &guard : guards) {
    Py_DECREF(guard.globals);
    Py_XDECREF(guard.name);
    Py_DECREF(guard.value);
  }
  for (Call &call : calls) {
    Py_XDECREF(call.callee);
    Py_XDECREF(call.method);
  }
  for (PyObject *object : more) Py_DECREF(object);
  Py_XDECREF(code);
}

Outcome run(const Specialisation &code, PyObject *const *objects, PyObject **result,
            int64_t *site) {
  if (!guards_hold(code) || !are_distinct(code, objects)) return Outcome::Mismatch;
  Context context;
  context.calls = &code.calls;
  int64_t buffer[STACK_SLOTS], *arguments = buffer, *answer = buffer + code.argument_slots;
  std::vector<int64_t> large;
  if (code.argument_slots + code.result.slots > STACK_SLOTS) {
    large.resize(static_cast<size_t>(code.argument_slots + code.result.slots));
    arguments = large.data();
    answer = arguments + code.argument_slots;
  }
  bool failed = false;
  if (!execute(&context, code, objects, arguments, answer, &failed)) return Outcome::Mismatch;
  if (!failed) {
    *result = finish(&context, code, arguments, answer);
    *site = PYTHON_ERROR;
    return *result ? Outcome::Done : Outcome::Failed;
  }
  *site = context.site;
  if (code.pure) {
    PyErr_Clear();
    return Outcome::Again;
  }
  if (*site == NO_MEMORY) PyErr_NoMemory();
  if (!tell_of_writes(&context, code, arguments)) *site = PYTHON_ERROR;
  return Outcome::Failed;
}

}  // namespace cuvil::native
