/* What Python's own objects cost, whoever handles them: functions of `jit_functions` by hand in C.
 * Each takes the list that the function of its name takes, whose items are of the right types. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <string.h>

static double norm(PyObject *pair) {
  double x = PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(pair, 0));
  double y = PyFloat_AS_DOUBLE(PyTuple_GET_ITEM(pair, 1));
  return sqrt(x * x + y * y);
}

static PyObject *norm_sum(PyObject *self, PyObject *pairs) {
  double total = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs); i++) total += norm(PyList_GET_ITEM(pairs, i));
  return PyFloat_FromDouble(total);
}

static PyObject *norms(PyObject *self, PyObject *pairs) {
  PyObject *made = PyList_New(PyList_GET_SIZE(pairs));
  for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(pairs); i++) {
    PyList_SET_ITEM(made, i, PyFloat_FromDouble(norm(PyList_GET_ITEM(pairs, i))));
  }
  return made;
}

/* A list of as many floats: nothing is read or calculated. */
static PyObject *floats(PyObject *self, PyObject *pairs) {
  PyObject *made = PyList_New(PyList_GET_SIZE(pairs));
  for (Py_ssize_t i = 0; made && i < PyList_GET_SIZE(pairs); i++) {
    PyList_SET_ITEM(made, i, PyFloat_FromDouble((double)i));
  }
  return made;
}

/* The sum of the first and last characters. */
static PyObject *read_names(PyObject *self, PyObject *names) {
  long total = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++) {
    PyObject *name = PyList_GET_ITEM(names, i);
    const char *data = PyUnicode_DATA(name);
    total += data[0] + data[PyUnicode_GET_LENGTH(name) - 1];
  }
  return PyLong_FromLong(total);
}

static PyObject *cleaned(PyObject *name) {
  const char *data = PyUnicode_DATA(name), *end = data + PyUnicode_GET_LENGTH(name);
  while (data < end && *data == ' ') data++;
  while (end > data && end[-1] == ' ') end--;
  PyObject *made = PyUnicode_New(end - data, 127);
  char *to = made ? PyUnicode_DATA(made) : NULL;
  for (; to && data < end; data++) *to++ = *data >= 'A' && *data <= 'Z' ? *data | 32 : *data;
  return made;
}

/* With a str for every name, and Python's dict. */
static PyObject *names(PyObject *self, PyObject *items) {
  PyObject *counts = PyDict_New();
  for (Py_ssize_t i = 0; counts && i < PyList_GET_SIZE(items); i++) {
    PyObject *name = cleaned(PyList_GET_ITEM(items, i));
    PyObject *before = name ? PyDict_GetItemWithError(counts, name) : NULL;
    PyObject *now = PyLong_FromLong(before ? PyLong_AsLong(before) + 1 : 1);
    if (!name || !now || PyDict_SetItem(counts, name, now)) Py_CLEAR(counts);
    Py_XDECREF(name);
    Py_XDECREF(now);
  }
  return counts;
}

static PyMethodDef functions[] = {
    {"norm_sum", norm_sum, METH_O, NULL}, {"norms", norms, METH_O, NULL},
    {"floats", floats, METH_O, NULL},     {"read_names", read_names, METH_O, NULL},
    {"names", names, METH_O, NULL},       {NULL, NULL, 0, NULL},
};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "jit_floor", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_jit_floor(void) { return PyModule_Create(&module); }
