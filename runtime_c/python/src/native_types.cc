#include "native_types.h"

#include <stdexcept>

namespace cuvil::native {

namespace {

void parse_parts(Type &type, const char *&text, char end) {
  while (*text != end) type.parts.push_back(parse_type(text));
  text++;
}

int slots_of(const Type &type) {
  int sum = 0, most = 0;
  for (const Type &part : type.parts) {
    sum += part.slots;
    most = part.slots > most ? part.slots : most;
  }
  switch (type.kind) {
    case Kind::None:
      return 0;
    case Kind::Number:
    case Kind::Str:
      return 2;
    case Kind::Tuple:
      return sum;
    case Kind::Array:
    case Kind::Tensor:
      return 2 + 2 * type.rank;
    case Kind::Union:
      return 1 + most;
    default:
      return 1;
  }
}

void parse_array(Type &type, const char *&text) {
  type.dtype = *text++;
  type.rank = *text++ - '0';
  type.contiguous = *text++ == 'C';
  type.writable = *text++ == 'w';
}

}  // namespace

Type parse_type(const char *&text) {
  static const std::string known = "ifbnuUNs([{<aT|";
  if (!*text || known.find(*text) == std::string::npos) throw std::invalid_argument("type text");
  Type type{static_cast<Kind>(*text++)};
  if (type.kind == Kind::Tuple) parse_parts(type, text, ')');
  if (type.kind == Kind::Union) parse_parts(type, text, ';');
  if (type.kind == Kind::List || type.kind == Kind::Set || type.kind == Kind::Dict) {
    type.parts.push_back(parse_type(text));
    if (type.kind == Kind::Dict) type.parts.push_back(parse_type(text));
  }
  type.key_kinds = kinds_of(type);
  if (type.kind == Kind::Scalar || type.kind == Kind::Element) type.dtype = *text++;
  if (type.kind == Kind::Array || type.kind == Kind::Tensor) parse_array(type, text);
  type.slots = slots_of(type);
  return type;
}

}  // namespace cuvil::native
