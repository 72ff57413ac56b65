#include "model.h"

#include <algorithm>
#include <cstring>

#include "errors.h"
#include "outputs.h"

namespace cuvil {

namespace {

/* The weights callback of a Python callable; an exception is kept for the opener to raise. */
struct Reader {
  py::object call;
  std::optional<py::error_already_set> error;

  static int32_t read(void *user, uint64_t offset, void *to, uint64_t bytes) {
    auto *self = static_cast<Reader *>(user);
    try {
      py::buffer chunk = py::reinterpret_borrow<py::object>(self->call(offset, bytes));
      py::buffer_info info = chunk.request();
      if (static_cast<uint64_t>(info.size * info.itemsize) != bytes) return 1;
      std::memcpy(to, info.ptr, bytes);
      return 0;
    } catch (py::error_already_set &error) {
      self->error.emplace(std::move(error));
      return 2;
    }
  }
};

/* cuvil_options and all that it points to. */
struct NativeOptions {
  cuvil_options native = CUVIL_OPTIONS_INIT;
  char message[512] = "";
  std::string path;
  Reader reader;
  py::buffer_info image;
  std::vector<const cuvil_device_api *> devices;

  NativeOptions(const OpenOptions &options, const cuvil_artefact &artefact, py::list &kept) {
    native.message = message;
    native.message_bytes = sizeof message;
    native.threads = options.threads;
    native.flags = CUVIL_FLAT | (options.keep_denormals ? CUVIL_KEEP_DENORMALS : 0u);
    if (options.variant) native.variant = options.variant->c_str();
    set_weights(options, artefact);
    set_devices(options, artefact, kept);
  }

  void set_devices(const OpenOptions &options, const cuvil_artefact &artefact, py::list &kept) {
    for (uint32_t i = 0; i < artefact.device_count; i++) {
      py::object found = options.find_device(artefact.devices[i].name);
      void *api = PyCapsule_GetPointer(found.ptr(), DEVICE_CAPSULE);
      if (!api) throw py::error_already_set();
      devices.push_back(static_cast<const cuvil_device_api *>(api));
      kept.append(found);
    }
    native.devices = devices.data();
    native.device_count = static_cast<uint32_t>(devices.size());
  }

  void set_weights(const OpenOptions &options, const cuvil_artefact &artefact) {
    const py::object &weights = options.weights;
    if (weights.is_none()) {
      std::string file = artefact.weights_file ? artefact.weights_file : "";
      if (options.folder.empty() || file.empty() || file.find('/') != std::string::npos) return;
      path = options.folder + "/" + file;
      native.weights_path = path.c_str();
    } else if (py::isinstance<py::str>(weights)) {
      path = weights.cast<std::string>();
      native.weights_path = path.c_str();
    } else if (py::isinstance<py::buffer>(weights)) {
      image = py::reinterpret_borrow<py::buffer>(weights).request();
      if (!PyBuffer_IsContiguous(image.view(), 'C')) {
        raise("InputError", "the weights buffer is not contiguous");
      }
      native.weights_image = image.ptr;
      native.weights_image_bytes = static_cast<uint64_t>(image.size * image.itemsize);
    } else {
      reader.call = weights;
      native.weights_reader = Reader::read;
      native.weights_user = &reader;
    }
  }
};

}  // namespace

/* A context for the time of one run. */
class Model::Lease {
 public:
  explicit Lease(Model &model) : model_(model), context_(model.check_out()) {}
  Lease(const Lease &) = delete;
  Lease &operator=(const Lease &) = delete;
  ~Lease() { model_.check_in(context_); }
  cuvil_context *context() const { return context_; }

 private:
  Model &model_;
  cuvil_context *context_;
};

Model::Model(cuvil_code *code, const OpenOptions &options) : weights_(options.weights) {
  native_.code = code;
  try {
    NativeOptions open(options, *cuvil_code_artefact(code), devices_);
    cuvil_status status = cuvil_model_open(cuvil_code_artefact(code), &open.native, &native_.model);
    if (open.reader.error) throw std::move(*open.reader.error);
    if (status == CUVIL_INVALID_ARGUMENT) raise("OptionError", open.message);
    if (status) raise_status(status, open.message);
  } catch (...) {
    native_.free();
    throw;
  }
}

Model::~Model() { native_.free(); }

void Model::Native::free() {
  for (cuvil_context *context : idle) cuvil_context_destroy(context);
  cuvil_model_close(model);
  cuvil_code_unload(code);
  *this = Native();
}

void Model::close() {
  Native closing;
  bool busy;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    busy = !in_use_.empty();
    if (!busy) std::swap(closing, native_);
  }
  if (busy) raise("RuntimeFailure", "the model cannot be closed during a run");
  closing.free();
}

void Model::fail(cuvil_status status, const std::string &message) const {
  raise_status(status, std::string(artefact().name) + ": " + message);
}

const cuvil_artefact &Model::artefact() const {
  if (!native_.model) raise("RuntimeFailure", "the model is closed");
  return *cuvil_model_artefact(native_.model);
}

std::string Model::variant() const {
  artefact();
  return cuvil_model_variant(native_.model);
}

int Model::threads() const {
  artefact();
  return cuvil_model_threads(native_.model);
}

size_t Model::arena_bytes() {
  int64_t fixed = artefact().arena_bytes;
  std::lock_guard<std::mutex> guard(mutex_);
  return fixed > 0 ? static_cast<size_t>(fixed) : arena_bytes_;
}

cuvil_context *Model::check_out() {
  artefact();
  cuvil_context *context = nullptr;
  cuvil_status status = CUVIL_OK;
  {
    std::lock_guard<std::mutex> guard(mutex_);
    if (native_.idle.empty()) {
      status = cuvil_context_create(native_.model, &context);
    } else {
      context = native_.idle.back();
      native_.idle.pop_back();
    }
    if (!status) {
      cuvil_context_uncancel(context);
      in_use_.push_back(context);
    }
  }
  if (status) fail(status, "no memory, or no queue of a device, for another context");
  return context;
}

void Model::check_in(cuvil_context *context) {
  std::lock_guard<std::mutex> guard(mutex_);
  arena_bytes_ = std::max(arena_bytes_, cuvil_context_arena_bytes(context));
  in_use_.erase(std::find(in_use_.begin(), in_use_.end(), context));
  native_.idle.push_back(context);
}

void Model::cancel() {
  std::lock_guard<std::mutex> guard(mutex_);
  for (cuvil_context *context : in_use_) cuvil_context_cancel(context);
}

namespace {

py::list make_outputs(const cuvil_artefact &a, cuvil_value *values) {
  py::list results(a.output_count);
  for (uint32_t i = 0; i < a.output_count; i++) {
    results[i] = make_output(a.outputs[i], values[i]);
  }
  return results;
}

}  // namespace

py::list Model::run_on(cuvil_context *context, const py::sequence &inputs,
                       const py::object &given) {
  const cuvil_artefact &a = artefact();
  Borrowed borrowed;
  Values in(a.input_count), out(a.output_count);
  read_inputs(inputs, in.data(), borrowed);
  for (uint32_t i = 0; i < a.output_count; i++) out.data()[i] = cuvil_output(nullptr, 0);
  cuvil_status status = cuvil_shapes(native_.model, context, in.data(), out.data());
  if (status) fail(status, cuvil_context_message(context));
  py::list results = given.is_none() ? make_outputs(a, out.data()) : use_outputs(given, out.data());
  if (!given.is_none()) check_apart(a, in.data(), out.data());
  {
    py::gil_scoped_release unlocked;
    status = cuvil_run(native_.model, context, in.data(), out.data());
  }
  if (status) fail(status, cuvil_context_message(context));
  for (uint32_t i = 0; i < a.output_count; i++) {
    results[i] = finish_output(results[i], a.outputs[i], out.data()[i]);
  }
  return results;
}

void Model::read_inputs(const py::sequence &inputs, cuvil_value *values, Borrowed &borrowed) const {
  const cuvil_artefact &a = artefact();
  if (inputs.size() != a.input_count) {
    fail(CUVIL_INVALID_ARGUMENT, "expected " + std::to_string(a.input_count) + " inputs, got " +
                                     std::to_string(inputs.size()));
  }
  for (uint32_t i = 0; i < a.input_count; i++) {
    values[i] = read_input(py::object(inputs[i]), a.inputs[i], borrowed);
  }
}

py::list Model::use_outputs(const py::object &given, cuvil_value *values) const {
  const cuvil_artefact &a = artefact();
  py::list results(given);
  if (results.size() != a.output_count) {
    fail(CUVIL_INVALID_ARGUMENT, "expected " + std::to_string(a.output_count) +
                                     " output arrays, got " + std::to_string(results.size()));
  }
  for (uint32_t i = 0; i < a.output_count; i++) use_output(results[i], a.outputs[i], values[i]);
  return results;
}

py::list Model::run(const py::sequence &inputs, const py::object &given, double time_limit) {
  Lease lease(*this);
  int64_t limit = 0;
  if (time_limit > 0) limit = static_cast<int64_t>(std::min(time_limit * 1e9, 9e18));
  cuvil_context_set_time_limit(lease.context(), limit);
  return run_on(lease.context(), inputs, given);
}

void Model::run_values(cuvil_value *inputs, cuvil_value *values, Outputs &outputs) {
  Lease lease(*this);
  cuvil_context *context = lease.context();
  cuvil_context_set_time_limit(context, 0);
  for (uint32_t i = 0; i < artefact().output_count; i++) values[i] = cuvil_output(nullptr, 0);
  cuvil_status status = cuvil_shapes(native_.model, context, inputs, values);
  if (status) fail(status, cuvil_context_message(context));
  outputs.make(values);
  {
    py::gil_scoped_release unlocked;
    status = cuvil_run(native_.model, context, inputs, values);
  }
  if (status) fail(status, cuvil_context_message(context));
  outputs.finish(values);
}

py::tuple Model::profile(const py::sequence &inputs, size_t capacity) {
  Lease lease(*this);
  std::vector<cuvil_profile_row> rows(std::max<size_t>(capacity, 1));
  cuvil_profile profile = {rows.data(), rows.size(), 0};
  cuvil_context_set_time_limit(lease.context(), 0);
  cuvil_context_set_profile(lease.context(), &profile);
  py::list outputs;
  try {
    outputs = run_on(lease.context(), inputs, py::none());
  } catch (...) {
    cuvil_context_set_profile(lease.context(), nullptr);
    throw;
  }
  cuvil_context_set_profile(lease.context(), nullptr);
  py::list result;
  uint64_t first = profile.count > rows.size() ? profile.count - rows.size() : 0;
  for (uint64_t i = first; i < profile.count; i++) {
    const cuvil_profile_row &row = rows[i % rows.size()];
    result.append(py::make_tuple(row.site, row.begin_ns, row.end_ns));
  }
  return py::make_tuple(outputs, result);
}

}  // namespace cuvil
