#include "native_function.h"

#include <pybind11/stl.h>
#include <structmember.h>

#include <map>
#include <memory>

#include "cuvil/loader.h"
#include "errors.h"
#include "native_arrays.h"
#include "native_call.h"
#include "native_tensors.h"

namespace cuvil::native {

namespace py = pybind11;

namespace {

enum { MAX_PARAMETERS = 24, MAX_FAILURES = 16 };

/* A function that looks and is called like the Python function behind it.
 * compiler: has miss(arguments) -> whether there is new code for them, failed(number, site) which
 * raises, and often_failing(). closed: no new code is made. interpreted: Python runs it, always. */
struct Function {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *python, *compiler, *names, *defaults, *attributes, *weak_references;
  std::vector<std::unique_ptr<Specialisation>> *codes;
  int64_t calls, failures;
  char interpreted, closed;
};

PyObject *interpret(Function *self, PyObject *const *arguments, size_t flags, PyObject *keywords) {
  return PyObject_Vectorcall(self->python, arguments, flags, keywords);
}

/* Index of the parameter with that name, -1 where there is none. */
Py_ssize_t parameter(const Function *self, PyObject *name) {
  Py_ssize_t count = PyTuple_GET_SIZE(self->names);
  for (Py_ssize_t i = 0; i < count; i++) {
    if (PyTuple_GET_ITEM(self->names, i) == name) return i;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    if (PyUnicode_Compare(PyTuple_GET_ITEM(self->names, i), name) == 0) return i;
  }
  return -1;
}

/* One object per parameter, from positions, keywords and defaults. False: not called correctly. */
bool bind(const Function *self, PyObject *const *arguments, Py_ssize_t given, PyObject *keywords,
          PyObject **bound) {
  Py_ssize_t count = PyTuple_GET_SIZE(self->names);
  if (given > count) return false;
  for (Py_ssize_t i = 0; i < count; i++) bound[i] = i < given ? arguments[i] : nullptr;
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); i++) {
    Py_ssize_t at = parameter(self, PyTuple_GET_ITEM(keywords, i));
    if (at < 0 || bound[at]) return false;
    bound[at] = arguments[given + i];
  }
  Py_ssize_t first = count - PyTuple_GET_SIZE(self->defaults);
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!bound[i] && i >= first) bound[i] = PyTuple_GET_ITEM(self->defaults, i - first);
    if (!bound[i]) return false;
  }
  return true;
}

/* Outcome of the first specialisation that takes the objects. */
Outcome try_all(const Function *self, PyObject *const *objects, PyObject **result, size_t *number,
                int64_t *site) {
  for (*number = 0; *number < self->codes->size(); ++*number) {
    Outcome outcome = run(*(*self->codes)[*number], objects, result, site);
    if (outcome != Outcome::Mismatch) return outcome;
  }
  return Outcome::Mismatch;
}

/* Has code made for the objects. Returns whether there is some, -1 on an exception. */
int ask_for_code(Function *self, PyObject *const *objects) {
  PyObject *tuple = PyTuple_New(PyTuple_GET_SIZE(self->names));
  if (!tuple) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    Py_INCREF(objects[i]);
    PyTuple_SET_ITEM(tuple, i, objects[i]);
  }
  PyObject *answer = PyObject_CallMethod(self->compiler, "miss", "(O)", tuple);
  Py_DECREF(tuple);
  int found = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  return found;
}

/* The interpreter takes over; where that happens often, for good. */
bool note_failure(Function *self) {
  self->failures++;
  if (self->failures < MAX_FAILURES || self->failures * 2 < self->calls) return true;
  PyObject *answer = PyObject_CallMethod(self->compiler, "often_failing", nullptr);
  Py_XDECREF(answer);
  return answer != nullptr;
}

PyObject *raise_failure(const Function *self, size_t number, int64_t site) {
  if (site < 0 && PyErr_Occurred()) return nullptr;
  PyObject *answer =
      PyObject_CallMethod(self->compiler, "failed", "(nL)", static_cast<Py_ssize_t>(number),
                          static_cast<long long>(site));
  Py_XDECREF(answer);
  return nullptr;
}

PyObject *call(PyObject *object, PyObject *const *arguments, size_t flags, PyObject *keywords) {
  Function *self = reinterpret_cast<Function *>(object);
  PyObject *bound[MAX_PARAMETERS], *result = nullptr;
  PyObject *const *objects = arguments;
  Py_ssize_t given = PyVectorcall_NARGS(flags);
  size_t number = 0;
  int64_t site = 0;
  if (self->interpreted) return interpret(self, arguments, flags, keywords);
  if (keywords || given != PyTuple_GET_SIZE(self->names)) {
    if (!bind(self, arguments, given, keywords, bound)) {
      return interpret(self, arguments, flags, keywords);
    }
    objects = bound;
  }
  self->calls++;
  Outcome outcome = try_all(self, objects, &result, &number, &site);
  if (outcome == Outcome::Mismatch && !self->closed) {
    int found = ask_for_code(self, objects);
    if (found < 0) return nullptr;
    if (found) outcome = try_all(self, objects, &result, &number, &site);
  }
  if (outcome == Outcome::Done) return result;
  if (outcome == Outcome::Failed) return raise_failure(self, number, site);
  if (outcome == Outcome::Again && !note_failure(self)) return nullptr;
  return interpret(self, arguments, flags, keywords);
}

PyObject *bind_method(PyObject *self, PyObject *instance, PyObject *) {
  if (!instance || instance == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, instance);
}

int traverse(PyObject *object, visitproc visit, void *arg) {
  Function *self = reinterpret_cast<Function *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->python);
  Py_VISIT(self->compiler);
  Py_VISIT(self->defaults);
  Py_VISIT(self->attributes);
  return 0;
}

int clear(PyObject *object) {
  Function *self = reinterpret_cast<Function *>(object);
  self->codes->clear();
  Py_CLEAR(self->python);
  Py_CLEAR(self->compiler);
  Py_CLEAR(self->names);
  Py_CLEAR(self->defaults);
  Py_CLEAR(self->attributes);
  return 0;
}

void deallocate(PyObject *object) {
  Function *self = reinterpret_cast<Function *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  if (self->weak_references) PyObject_ClearWeakRefs(object);
  clear(object);
  delete self->codes;
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject *represent(PyObject *object) {
  return PyUnicode_FromFormat("<cuvil.jit %R>", reinterpret_cast<Function *>(object)->python);
}

/* Pickled and copied as functions are: by name. */
PyObject *reduce(PyObject *self, PyObject *) {
  return PyObject_GetAttrString(self, "__qualname__");
}

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Function, attributes), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak_references), READONLY, nullptr},
    {"_compiler", T_OBJECT, offsetof(Function, compiler), READONLY, nullptr},
    {"_interpreted", T_BOOL, offsetof(Function, interpreted), 0, nullptr},
    {"_closed", T_BOOL, offsetof(Function, closed), 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef accessors[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void *>(bind_method)},
    {Py_tp_traverse, reinterpret_cast<void *>(traverse)},
    {Py_tp_clear, reinterpret_cast<void *>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void *>(deallocate)},
    {Py_tp_repr, reinterpret_cast<void *>(represent)},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, accessors},
    {0, nullptr},
};

PyType_Spec spec = {"cuvil_runtime._runtime.NativeFunction", sizeof(Function), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                    slots};

PyTypeObject *function_type = nullptr;

Function *checked(const py::object &object) {
  if (Py_TYPE(object.ptr()) != function_type) throw py::type_error("not a NativeFunction");
  return reinterpret_cast<Function *>(object.ptr());
}

py::object make_function(const py::object &python, const py::object &compiler,
                         const py::tuple &names, const py::tuple &defaults) {
  if (names.size() > MAX_PARAMETERS) throw py::value_error("too many parameters");
  PyObject *object = function_type->tp_alloc(function_type, 0);
  if (!object) throw py::error_already_set();
  Function *self = reinterpret_cast<Function *>(object);
  self->vectorcall = call;
  self->python = py::object(python).release().ptr();
  self->compiler = py::object(compiler).release().ptr();
  self->names = py::object(names).release().ptr();
  self->defaults = py::object(defaults).release().ptr();
  self->codes = new std::vector<std::unique_ptr<Specialisation>>();
  return py::reinterpret_steal<py::object>(object);
}

Type read_type(const std::string &text) {
  const char *at = text.c_str();
  return parse_type(at);
}

std::vector<Type> read_types(const std::vector<std::string> &texts) {
  std::vector<Type> types;
  for (const std::string &text : texts) types.push_back(read_type(text));
  return types;
}

using CallRow = std::tuple<py::object, py::object, std::vector<std::string>, std::string>;
using GuardRow = std::tuple<py::object, py::object, py::object>;

Call read_call(const CallRow &row) {
  const auto &[callee, method, parameters, result] = row;
  Call made{};
  made.callee = callee.is_none() ? nullptr : py::object(callee).release().ptr();
  made.method = method.is_none() ? nullptr : py::object(method).release().ptr();
  made.parameters = read_types(parameters);
  made.result = read_type(result);
  return made;
}

void add_code(const py::object &function, uintptr_t entry, const py::object &keeper,
              const std::vector<std::string> &parameters, const std::string &result,
              const std::vector<CallRow> &calls, const std::vector<GuardRow> &guards,
              const std::vector<bool> &written, bool pure, const std::vector<py::object> &more) {
  auto code = std::make_unique<Specialisation>();
  code->parameters = read_types(parameters);
  code->result = read_type(result);
  code->entry = reinterpret_cast<void (*)(int64_t *, int64_t *, Context *)>(entry);
  for (const CallRow &row : calls) code->calls.push_back(read_call(row));
  for (const auto &[globals, name, value] : guards) {
    PyObject *text = name.is_none() ? nullptr : py::object(name).release().ptr();
    code->guards.push_back(
        {py::object(globals).release().ptr(), text, py::object(value).release().ptr()});
  }
  code->written = written;
  code->pure = pure;
  for (const py::object &object : more) code->more.push_back(py::object(object).release().ptr());
  code->code = py::object(keeper).release().ptr();
  for (const Type &type : code->parameters) code->argument_slots += type.slots;
  checked(function)->codes->push_back(std::move(code));
}

const std::map<std::string, void *> &support() {
  static const std::map<std::string, void *> found = [] {
    std::map<std::string, void *> all;
    for (const Symbol *table : {context_symbols(), string_symbols(), container_symbols()}) {
      for (; table->name; table++) all[table->name] = table->address;
    }
    return all;
  }();
  return found;
}

void *find_support(void *, const char *name) {
  auto found = support().find(name);
  return found == support().end() ? nullptr : found->second;
}

py::tuple load_function(const py::buffer &object, const std::string &symbol) {
  char message[512] = "";
  cuvil_code *code = nullptr;
  const void *function = nullptr;
  py::buffer_info info = object.request();
  cuvil_status status =
      cuvil_function_load(info.ptr, static_cast<size_t>(info.size * info.itemsize), symbol.c_str(),
                          find_support, nullptr, &code, &function, message, sizeof message);
  if (status) raise_status(status, message);
  py::capsule keeper(code, [](void *p) { cuvil_code_unload(static_cast<cuvil_code *>(p)); });
  return py::make_tuple(reinterpret_cast<uintptr_t>(function), keeper);
}

}  // namespace

void define_native(py::module_ &module) {
  function_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  if (!function_type) throw py::error_already_set();
  module.attr("NativeFunction") = py::handle(reinterpret_cast<PyObject *>(function_type));
  module.def("make_function", &make_function, py::arg("python"), py::arg("compiler"),
             py::arg("names"), py::arg("defaults"));
  module.def("load_function", &load_function, py::arg("object"), py::arg("symbol"));
  module.def("add_code", &add_code, py::arg("function"), py::arg("entry"), py::arg("keeper"),
             py::arg("parameters"), py::arg("result"), py::arg("calls"), py::arg("guards"),
             py::arg("written"), py::arg("pure"), py::arg("more"));
  if (define_tensors(module.ptr())) throw py::error_already_set();
  module.attr("MAX_PARAMETERS") = static_cast<int>(MAX_PARAMETERS);
  module.def("array_text", [](const py::object &object) { return array_text(object.ptr()); });
}

}  // namespace cuvil::native
