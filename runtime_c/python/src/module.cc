/* The Python module cuvil_runtime._runtime. */
#include <dlfcn.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <memory>

#include "errors.h"
#include "model.h"
#include "native_function.h"
#include "tensor_call.h"

namespace cuvil {

namespace {

py::object dim(const cuvil_artefact &artefact, int64_t value) {
  if (value >= 0) return py::int_(value);
  int64_t slot = -(value + 1);
  if (slot < artefact.symbol_count) return py::str(artefact.symbol_names[slot]);
  return py::none();
}

/* Rows (name, dtype, dims); a dim is an int, a symbol's name, or None where derived or produced. */
py::list describe(const cuvil_artefact &artefact, const cuvil_tensor_info *tensors,
                  uint32_t count) {
  py::list result;
  for (uint32_t i = 0; i < count; i++) {
    py::list dims;
    for (int d = 0; d < tensors[i].rank; d++) dims.append(dim(artefact, tensors[i].dims[d]));
    result.append(
        py::make_tuple(tensors[i].name, cuvil_dtype_name(tensors[i].dtype), py::tuple(dims)));
  }
  return result;
}

py::list sites(const cuvil_artefact &artefact) {
  py::list result;
  for (uint32_t i = 0; i < artefact.site_count; i++) result.append(py::str(artefact.sites[i]));
  return result;
}

py::list variants(const cuvil_artefact &artefact) {
  py::list result;
  for (uint32_t i = 0; i < artefact.variant_count; i++) {
    result.append(py::str(artefact.variants[i].name));
  }
  return result;
}

py::dict symbols(const cuvil_artefact &artefact) {
  py::dict result;
  for (uint32_t i = 0; i < artefact.symbol_count; i++) {
    result[artefact.symbol_names[i]] =
        py::make_tuple(artefact.symbol_bounds[2 * i], artefact.symbol_bounds[2 * i + 1]);
  }
  return result;
}

OpenOptions make_options(int threads, bool keep_denormals, std::optional<std::string> variant,
                         std::string folder, py::object weights, py::object find_device) {
  OpenOptions options;
  options.threads = threads;
  options.keep_denormals = keep_denormals;
  options.variant = std::move(variant);
  options.folder = std::move(folder);
  options.weights = std::move(weights);
  options.find_device = std::move(find_device);
  return options;
}

/* Asks a dict of addresses for the code of a custom operator. */
void *find_symbol(void *state, const char *name) {
  const auto &addresses = *static_cast<const std::map<std::string, uintptr_t> *>(state);
  auto found = addresses.find(name);
  return found == addresses.end() ? nullptr : reinterpret_cast<void *>(found->second);
}

std::unique_ptr<Model> open_object(const py::buffer &object, const std::string &origin,
                                   const std::optional<std::string> &symbol, int threads,
                                   bool keep_denormals, std::optional<std::string> variant,
                                   std::string folder, py::object weights, py::object find_device,
                                   std::map<std::string, uintptr_t> addresses) {
  char message[512] = "";
  cuvil_code *code = nullptr;
  py::buffer_info info = object.request();
  cuvil_status status = cuvil_object_load(info.ptr, static_cast<size_t>(info.size * info.itemsize),
                                          symbol ? symbol->c_str() : nullptr, find_symbol,
                                          &addresses, &code, message, sizeof message);
  if (status) raise_status(status, origin + ": " + message);
  return std::make_unique<Model>(
      code, make_options(threads, keep_denormals, std::move(variant), std::move(folder),
                         std::move(weights), std::move(find_device)));
}

std::unique_ptr<Model> open_library(const std::string &path,
                                    const std::optional<std::string> &symbol, int threads,
                                    bool keep_denormals, std::optional<std::string> variant,
                                    py::object weights, py::object find_device) {
  char message[512] = "";
  cuvil_code *code = nullptr;
  cuvil_status status = cuvil_library_load(path.c_str(), symbol ? symbol->c_str() : nullptr, &code,
                                           message, sizeof message);
  if (status) raise_status(status, path + ": " + message);
  return std::make_unique<Model>(code, make_options(threads, keep_denormals, std::move(variant), "",
                                                    std::move(weights), std::move(find_device)));
}

/* The api struct `symbol` of a backend's shim, which stays loaded. */
py::capsule open_device(const std::string &path, const std::string &symbol) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) raise("TargetError", std::string("device library: ") + dlerror());
  void *api = dlsym(library, symbol.c_str());
  if (!api) raise("TargetError", path + " lacks the device's symbol '" + symbol + "'");
  return py::capsule(api, DEVICE_CAPSULE);
}

void define_model(py::module_ &module) {
  py::class_<Model>(module, "NativeModel")
      .def("run", &Model::run, py::arg("inputs"), py::arg("outputs") = py::none(),
           py::arg("time_limit") = 0.0)
      .def("profile", &Model::profile, py::arg("inputs"), py::arg("capacity") = 1 << 16)
      .def("cancel", &Model::cancel)
      .def("close", &Model::close)
      .def("inputs",
           [](const Model &m) {
             return describe(m.artefact(), m.artefact().inputs, m.artefact().input_count);
           })
      .def("outputs",
           [](const Model &m) {
             return describe(m.artefact(), m.artefact().outputs, m.artefact().output_count);
           })
      .def("symbols", [](const Model &m) { return symbols(m.artefact()); })
      .def("sites", [](const Model &m) { return sites(m.artefact()); })
      .def("variants", [](const Model &m) { return variants(m.artefact()); })
      .def("name", [](const Model &m) { return std::string(m.artefact().name); })
      .def("producer",
           [](const Model &m) {
             return std::string(m.artefact().producer ? m.artefact().producer : "");
           })
      .def("weights_bytes", [](const Model &m) { return m.artefact().weights_bytes; })
      .def("variant", &Model::variant)
      .def("threads", &Model::threads)
      .def("arena_bytes", &Model::arena_bytes);
}

void define_tensor_call(py::module_ &module) {
  py::class_<TensorCall>(module, "TensorCall")
      .def(py::init<py::object, py::capsule, py::tuple, py::str,
                    const std::vector<TensorCall::Row> &, std::vector<std::vector<int>>,
                    const std::vector<TensorCall::Constant> &>(),
           py::arg("model"), py::arg("exchange"), py::arg("classes"), py::arg("declined"),
           py::arg("inputs"), py::arg("outputs"), py::arg("constants"))
      .def("__call__", &TensorCall::call, py::arg("args"));
}

}  // namespace

}  // namespace cuvil

PYBIND11_MODULE(_runtime, module) {
  namespace py = pybind11;
  cuvil::define_model(module);
  cuvil::define_tensor_call(module);
  module.def("open_object", &cuvil::open_object, py::arg("object"), py::arg("origin"),
             py::arg("symbol"), py::arg("threads"), py::arg("keep_denormals"), py::arg("variant"),
             py::arg("folder"), py::arg("weights"), py::arg("find_device"),
             py::arg("addresses") = std::map<std::string, uintptr_t>());
  module.def("open_library", &cuvil::open_library, py::arg("path"), py::arg("symbol"),
             py::arg("threads"), py::arg("keep_denormals"), py::arg("variant"), py::arg("weights"),
             py::arg("find_device"));
  module.def("open_device", &cuvil::open_device, py::arg("path"), py::arg("symbol"));
  module.def("default_threads", &cuvil_default_threads);
  cuvil::native::define_native(module);
  module.attr("ABI_VERSION") = CUVIL_ABI_VERSION;
}
