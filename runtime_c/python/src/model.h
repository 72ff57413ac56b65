/* A loaded model and its pool of contexts. */
#pragma once

#include <pybind11/numpy.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cuvil/loader.h"
#include "inputs.h"

namespace cuvil {

/* How a model is to be opened; the fields are those of cuvil_runtime.load. */
struct OpenOptions {
  int threads = 0;
  bool keep_denormals = false;
  std::optional<std::string> variant;
  std::string
      folder; /* where the artefact's own weights file is looked for; "" beside the library */
  py::object weights = py::none(); /* str, buffer, callable(offset, count) or None */
  py::object find_device; /* callable(name): the capsule of a device that the model needs */
};

/* The capsule of a `const cuvil_device_api *` carries this name. */
inline constexpr const char *DEVICE_CAPSULE = "cuvil_device_api";

/* Values of one call: on the stack for all but models with very many inputs and outputs. */
class Values {
 public:
  explicit Values(size_t count) {
    if (count > FEW) many_.resize(count);
    data_ = count > FEW ? many_.data() : few_;
  }
  cuvil_value *data() { return data_; }

 private:
  static constexpr size_t FEW = 8;
  cuvil_value few_[FEW];
  std::vector<cuvil_value> many_;
  cuvil_value *data_;
};

/* Where the outputs of a run go. */
class Outputs {
 public:
  virtual ~Outputs() = default;
  /* Sets the memory of values of known shapes; an extent below 0 is known after the run only. */
  virtual void make(cuvil_value *values) = 0;
  /* Takes the results, which may lie in memory of the runtime's. */
  virtual void finish(const cuvil_value *values) = 0;
};

class Model {
 public:
  /* Takes the code over. Raises ArtefactError, TargetError, InputError or RuntimeFailure. */
  Model(cuvil_code *code, const OpenOptions &options);
  Model(const Model &) = delete;
  Model &operator=(const Model &) = delete;
  ~Model();

  /* `given`: arrays to write the outputs to, or None. time_limit: seconds, 0 is none. */
  py::list run(const py::sequence &inputs, const py::object &given, double time_limit);
  /* Runs once; as many values as the model has inputs and outputs. */
  void run_values(cuvil_value *inputs, cuvil_value *values, Outputs &outputs);
  /* The outputs and the rows (site, begin_ns, end_ns) of the kernels that ran. */
  py::tuple profile(const py::sequence &inputs, size_t capacity);
  /* Stops every run in flight. */
  void cancel();
  /* Frees all; refused while runs are in flight. Later runs raise. */
  void close();

  const cuvil_artefact &artefact() const;
  std::string variant() const;
  int threads() const;
  /* Of the largest context so far, and of the artefact where that is fixed. */
  size_t arena_bytes();

 private:
  class Lease;

  /* The mutex is never held while Python runs: the interpreter's lock may change hands there. */
  cuvil_context *check_out();
  void check_in(cuvil_context *context);
  py::list run_on(cuvil_context *context, const py::sequence &inputs, const py::object &given);
  void read_inputs(const py::sequence &inputs, cuvil_value *values, Borrowed &borrowed) const;
  py::list use_outputs(const py::object &given, cuvil_value *values) const;
  [[noreturn]] void fail(cuvil_status status, const std::string &message) const;

  /* What the runtime made, freed in one go. */
  struct Native {
    cuvil_code *code = nullptr;
    cuvil_model *model = nullptr;
    std::vector<cuvil_context *> idle;
    void free();
  };

  Native native_;
  py::object weights_; /* kept alive for its memory */
  py::list devices_;   /* likewise */
  std::mutex mutex_;
  std::vector<cuvil_context *> in_use_;
  size_t arena_bytes_ = 0;
};

}  // namespace cuvil
