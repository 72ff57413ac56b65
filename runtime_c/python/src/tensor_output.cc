#include "tensor_output.h"

#include <cstdlib>
#include <new>

namespace cuvil {

namespace {

constexpr size_t ALIGNMENT = 64;

/* What lies before the elements. */
struct Header {
  DLVersionedTensor tensor;
  int64_t shape[CUVIL_MAX_RANK], strides[CUVIL_MAX_RANK];
};

constexpr size_t rounded(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

void destroy(DLVersionedTensor *tensor) { std::free(tensor); }

}  // namespace

NewTensor::NewTensor(uint8_t dtype, int rank, const int64_t *shape, const std::vector<int> &axes) {
  int64_t count = 1;
  for (int d = 0; d < rank; d++) count *= shape[d];
  size_t bytes = static_cast<size_t>(count) * cuvil_dtype_size(dtype);
  size_t start = rounded(sizeof(Header));
  auto *memory = static_cast<char *>(std::aligned_alloc(ALIGNMENT, start + rounded(bytes + 1)));
  if (!memory) throw std::bad_alloc();
  auto *header = new (memory) Header();
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; d--) {
    int axis = axes.empty() ? d : axes[static_cast<size_t>(d)];
    header->shape[axis] = shape[d];
    header->strides[axis] = stride;
    stride *= shape[d] > 1 ? shape[d] : 1;
  }
  owned_ = &header->tensor;
  DLType type = dlpack_type(dtype);
  owned_->version = {1, 0};
  owned_->deleter = destroy;
  DLTensor &tensor = owned_->tensor;
  tensor.data = memory + start;
  tensor.device = {DL_CPU, 0};
  tensor.rank = rank;
  tensor.dtype = {type.code, type.bits, 1};
  tensor.shape = header->shape;
  tensor.strides = header->strides;
}

NewTensor &NewTensor::operator=(NewTensor &&other) noexcept {
  std::swap(owned_, other.owned_);
  return *this;
}

NewTensor::~NewTensor() {
  if (owned_) destroy(owned_);
}

py::object NewTensor::release(const DLExchange &exchange) {
  DLVersionedTensor *given = owned_;
  owned_ = nullptr;
  void *object = nullptr;
  if (exchange.to_object(given, &object)) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(static_cast<PyObject *>(object));
}

}  // namespace cuvil
