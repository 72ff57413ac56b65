// cuvil.hpp: owners that move, views, outputs of either side, and failures.
#include <cstring>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "cuvil/cuvil.hpp"
#include "dense.h"
#include "found.h"

static_assert(!std::is_copy_constructible_v<cuvil::model>);
static_assert(!std::is_copy_assignable_v<cuvil::context>);
static_assert(std::is_nothrow_move_constructible_v<cuvil::model>);
static_assert(cuvil::dtype_of<bool>() == CUVIL_BOOL && cuvil::dtype_of<int8_t>() == CUVIL_I8);
static_assert(cuvil::dtype_of<int64_t>() == CUVIL_I64 && cuvil::dtype_of<uint8_t>() == CUVIL_U8);
static_assert(cuvil::dtype_of<uint16_t>() == CUVIL_U16 && cuvil::dtype_of<uint64_t>() == CUVIL_U64);
static_assert(cuvil::dtype_of<float>() == CUVIL_F32 && cuvil::dtype_of<double>() == CUVIL_F64);

static const std::vector<float> x(3 * 8, 0.5f);

static std::vector<float> expected() {
  std::vector<float> y(3 * 16);
  CHECK(dense_inference(3, x.data(), y.data()) == CUVIL_OK);
  return y;
}

static void owners() {
  cuvil::context context;
  std::vector<float> y(3 * 16);
  {
    cuvil::model first(CUVIL_FUNCTIONS(dense)), second(std::move(first));
    first = std::move(second);
    CHECK(std::strlen(first.variant()) > 0 && std::strlen(second.variant()) == 0);
    cuvil::context made(first);
    context = std::move(made);
    context = cuvil::context(first);  // the one before is destroyed while its model is open
  }  // the model's owner is gone: the context keeps it open
  const auto outputs = context.run({cuvil::view<float>(x.data(), {3, 8})}, {cuvil::room(y)});
  CHECK(y == expected());
  CHECK((cuvil::view<float>(outputs[0]).shape() == std::vector<int64_t>{3, 16}));
}

static void outputs_of_the_runtime() {
  cuvil::context context(cuvil::model(CUVIL_FUNCTIONS(found)));
  const std::vector<float> values = {1, -2, 3, -4};
  const auto outputs = context.run({cuvil::view<float>(values.data(), {4})});
  const cuvil::view<float> positive(outputs[0]);
  CHECK(positive.size() == 2 && positive[1] == 3);
  CHECK(std::accumulate(positive.begin(), positive.end(), 0.0f) == 4);
}

static void statuses() {
  cuvil::model model;
  cuvil::context context;
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.variant = "nothing";
  CHECK(context.create(model) == CUVIL_INVALID_ARGUMENT);
  CHECK(model.open(CUVIL_FUNCTIONS(dense), options) != CUVIL_OK);
  CHECK(model.open(CUVIL_FUNCTIONS(dense)) == CUVIL_OK && context.create(model) == CUVIL_OK);
  cuvil::context::values none, one(1, cuvil::room());
  CHECK(context.try_run(none, one) == CUVIL_INVALID_ARGUMENT);
  CHECK(std::string(context.message()) == "not as many values as the model has");
  CHECK(context.try_run({cuvil::view<float>(x.data(), {4, 6})}, one) == CUVIL_SHAPE_MISMATCH);
  CHECK(std::strstr(context.message(), "dim 1 is 6"));
  CHECK(context.try_run({cuvil::view<float>(x.data(), {3, 8})}, one) == CUVIL_OK);
  CHECK(cuvil::view<float>(one[0]).size() == 3 * 16);
}

#ifdef __cpp_exceptions
template <class F>
static cuvil_status thrown(F call) {
  try {
    call();
  } catch (const cuvil::error &error) {
    CHECK(std::strlen(error.what()) > 0);
    return error.status;
  }
  return CUVIL_OK;
}

static void exceptions() {
  cuvil_options options = CUVIL_OPTIONS_INIT;
  options.variant = "nothing";
  CHECK(thrown([&] { cuvil::model(CUVIL_FUNCTIONS(dense), options); }) != CUVIL_OK);
  CHECK(thrown([] { cuvil::context context{cuvil::model()}; }) == CUVIL_INVALID_ARGUMENT);
  cuvil::context context(cuvil::model(CUVIL_FUNCTIONS(dense)));
  CHECK(thrown([&] { context.run({}); }) == CUVIL_INVALID_ARGUMENT);
  const std::vector<double> doubles(24);
  const cuvil::view<double> wrong(doubles.data(), {3, 8});
  CHECK(thrown([&] { context.run({wrong}); }) == CUVIL_DTYPE_MISMATCH);
  const auto outputs = context.run({cuvil::view<float>(x.data(), {3, 8})});
  CHECK(thrown([&] { cuvil::view<int32_t>{outputs[0]}; }) == CUVIL_DTYPE_MISMATCH);
}
#else
static void exceptions() {}
#endif

int main() {
  owners();
  outputs_of_the_runtime();
  statuses();
  exceptions();
  puts("fine");
}
