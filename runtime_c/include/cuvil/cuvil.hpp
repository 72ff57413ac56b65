/* C++17 over the functions of a generated library: owners, views and errors, in this header alone.
 *
 *   cuvil::model model(CUVIL_FUNCTIONS(bert));
 *   cuvil::context context(model);  // one for each thread
 *   std::vector<float> x(8), y(4);
 *   context.run({cuvil::view<float>(x.data(), {2, 4})}, {cuvil::room(y)});
 *
 * Models and contexts are moved, not copied, and a context keeps its model open. What fails throws
 * cuvil::error; open, create and try_run return a status instead (the others abort where exceptions
 * are switched off). */
#ifndef CUVIL_CUVIL_HPP
#define CUVIL_CUVIL_HPP

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "cuvil.h"

/* The functions of the library whose names begin with `name`. */
#define CUVIL_FUNCTIONS(name)                                                           \
  cuvil::functions {                                                                    \
    &name##_artefact, name##_open, name##_close, name##_variant, name##_context_create, \
        name##_context_destroy, name##_context_message, name##_run                      \
  }

namespace cuvil {

struct functions {
  const cuvil_artefact *artefact;
  cuvil_status (*open)(const cuvil_options *, cuvil_model **);
  void (*close)(cuvil_model *);
  const char *(*variant)(const cuvil_model *);
  cuvil_status (*create)(const cuvil_model *, cuvil_context **);
  void (*destroy)(cuvil_context *);
  const char *(*message)(const cuvil_context *);
  cuvil_status (*run)(const cuvil_model *, cuvil_context *, const cuvil_value *, cuvil_value *);
};

/* what() is the line that names the input or node, what was expected and what came. */
struct error : std::runtime_error {
  error(cuvil_status status, const char *what) : std::runtime_error(what), status(status) {}
  cuvil_status status;
};

inline void check(cuvil_status status, const char *what) {
  if (status == CUVIL_OK) return;
#ifdef __cpp_exceptions
  throw error(status, what);
#else
  (void)what;
  std::abort();
#endif
}

/* The cuvil_dtype of a C++ type. Others (float16, int4, ...) are made by cuvil_tensor. */
template <class T>
constexpr cuvil_dtype dtype_of() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8, "cuvil has no such dtype");
  constexpr int steps = sizeof(T) == 8 ? 3 : sizeof(T) == 4 ? 2 : sizeof(T) == 2 ? 1 : 0;
  if (std::is_same_v<T, bool>) return CUVIL_BOOL;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? CUVIL_F32 : CUVIL_F64;
  return cuvil_dtype((std::is_signed_v<T> ? CUVIL_I8 : CUVIL_U8) + steps);
}

/* A dense tensor in memory that somebody else owns: an input, or what an output has become. */
template <class T>
class view {
 public:
  view(const T *data, const std::vector<int64_t> &shape)
      : value_(cuvil_tensor(dtype_of<T>(), data, unsigned(shape.size()), shape.data())) {}
  explicit view(const cuvil_value &value) : value_(value) {
    check(value.dtype == dtype_of<T>() ? CUVIL_OK : CUVIL_DTYPE_MISMATCH,
          "a view of another dtype");
  }
  operator cuvil_value() const { return value_; }
  std::vector<int64_t> shape() const { return {value_.shape, value_.shape + value_.rank}; }
  size_t size() const {
    size_t count = 1;
    for (unsigned i = 0; i < value_.rank; i++) count *= size_t(value_.shape[i]);
    return count;
  }
  const T *begin() const {
    return reinterpret_cast<const T *>(static_cast<char *>(value_.data) + value_.byte_offset);
  }
  const T *end() const { return begin() + size(); }
  const T &operator[](size_t i) const { return begin()[i]; }

 private:
  cuvil_value value_;
};

/* The place of an output: the elements of a container; with none, memory of the runtime's. */
inline cuvil_value room() { return cuvil_output(nullptr, 0); }
template <class C>
cuvil_value room(C &place) {
  return cuvil_output(place.data(), place.size() * sizeof *place.data());
}

class model {
 public:
  model() = default;
  explicit model(const functions &f, cuvil_options options = CUVIL_OPTIONS_INIT) {
    char why[256] = "";
    if (!options.message) options.message = why, options.message_bytes = sizeof why;
    check(open(f, options), options.message);
  }
  model(model &&) = default;
  model &operator=(model &&) = default;
  cuvil_status open(const functions &f, const cuvil_options &options = CUVIL_OPTIONS_INIT) {
    cuvil_model *made = nullptr;
    cuvil_status status = f.open(&options, &made);
    if (status == CUVIL_OK) handle_.reset(made, f.close), functions_ = f;
    return status;
  }
  const char *variant() const { return handle_ ? functions_.variant(handle_.get()) : ""; }

 private:
  friend class context;
  functions functions_{};
  std::shared_ptr<cuvil_model> handle_;
};

class context {
 public:
  using values = std::vector<cuvil_value>;
  context() = default;
  explicit context(const model &m) { check(create(m), "no context for the model"); }
  context(context &&) = default;
  context &operator=(context &&) = default;
  cuvil_status create(const model &m) {
    cuvil_context *made = nullptr;
    if (!m.handle_) return CUVIL_INVALID_ARGUMENT;
    cuvil_status status = m.functions_.create(m.handle_.get(), &made);
    if (status) return status;
    functions_ = m.functions_, model_ = m.handle_.get();
    handle_.reset(made, [keep = m.handle_, f = functions_](cuvil_context *c) { f.destroy(c); });
    return status;
  }
  /* Outputs are told their dtype and shape. */
  cuvil_status try_run(const values &inputs, values &outputs) {
    fits_ = handle_ && inputs.size() == count(false) && outputs.size() == count(true);
    if (!fits_) return CUVIL_INVALID_ARGUMENT;
    return functions_.run(model_, handle_.get(), inputs.data(), outputs.data());
  }
  /* Gives the outputs back, told their shapes; those of the runtime's are valid until the next. */
  values run(const values &inputs, values outputs) {
    const cuvil_status status = try_run(inputs, outputs);
    check(status, message());
    return outputs;
  }
  values run(const values &inputs) { return run(inputs, values(count(true), room())); }
  const char *message() const {
    return fits_ && handle_ ? functions_.message(handle_.get())
                            : "not as many values as the model has";
  }

 private:
  size_t count(bool out) const {
    const cuvil_artefact *a = functions_.artefact;
    if (!a) return 0;
    if (a->has_ports) return out ? a->ports->output_count : a->ports->input_count;
    return out ? a->output_count : a->input_count;
  }
  functions functions_{};
  const cuvil_model *model_ = nullptr;
  bool fits_ = false;
  std::shared_ptr<cuvil_context> handle_;
};

}  // namespace cuvil
#endif
