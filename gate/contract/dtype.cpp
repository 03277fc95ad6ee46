// Names and sizes of dtypes, and what follows from them: the packed parameter block and the extent of a tensor.
#include <fmt/format.h>

#include <limits>

#include "contract/contract.h"

namespace kgate {

namespace {

struct DtypeRow {
  Dtype dtype;
  const char* name;
  uint32_t bytes;
  bool floating;
};
constexpr DtypeRow kDtypes[] = {
    {Dtype::f64, "f64", 8, true},       {Dtype::f32, "f32", 4, true},   {Dtype::tf32, "tf32", 4, true},
    {Dtype::f16, "f16", 2, true},       {Dtype::bf16, "bf16", 2, true}, {Dtype::e4m3, "e4m3", 1, true},
    {Dtype::e5m2, "e5m2", 1, true},     {Dtype::i8, "i8", 1, false},    {Dtype::i16, "i16", 2, false},
    {Dtype::i32, "i32", 4, false},      {Dtype::i64, "i64", 8, false},  {Dtype::u8, "u8", 1, false},
    {Dtype::u16, "u16", 2, false},      {Dtype::u32, "u32", 4, false},  {Dtype::u64, "u64", 8, false},
    {Dtype::boolean, "bool", 1, false},
};

const DtypeRow& row_of(Dtype dtype) {
  for (const DtypeRow& row : kDtypes)
    if (row.dtype == dtype) return row;
  throw Error(Exit::internal, "a dtype that the table lacks");
}

}  // namespace

const char* dtype_name(Dtype dtype) { return row_of(dtype).name; }
uint32_t dtype_bytes(Dtype dtype) { return row_of(dtype).bytes; }
bool is_floating(Dtype dtype) { return row_of(dtype).floating; }

std::optional<Dtype> dtype_from_name(std::string_view name) {
  for (const DtypeRow& row : kDtypes)
    if (name == row.name) return row.dtype;
  return std::nullopt;
}

std::vector<const char*> dtype_names() {
  std::vector<const char*> names;
  for (const DtypeRow& row : kDtypes) names.push_back(row.name);
  return names;
}

const char* role_name(Role role) {
  switch (role) {
    case Role::in:
      return "in";
    case Role::out:
      return "out";
    case Role::inout:
      return "inout";
    case Role::workspace:
      return "workspace";
  }
  throw Error(Exit::internal, "a role without a name");
}

std::vector<ParamSlot> param_layout(const Contract& contract) {
  std::vector<ParamSlot> slots;
  uint32_t end = 0;
  for (const Param& param : contract.params) {
    const auto* scalar = std::get_if<ScalarParam>(&param.kind);
    uint32_t size = scalar ? dtype_bytes(scalar->dtype) : 8;
    uint32_t offset = (end + size - 1) / size * size;
    slots.push_back({offset, size});
    end = offset + size;
  }
  return slots;
}

uint32_t param_block_bytes(const Contract& contract) {
  std::vector<ParamSlot> slots = param_layout(contract);
  return slots.empty() ? 0 : slots.back().offset + slots.back().size;
}

Result<uint64_t> tensor_elements(const TensorParam& tensor, const Environment& shape) {
  const Failure too_large{"the tensor has more bytes than 64 bits count", {}, {}};
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.dims.size())
    return Failure{fmt::format("{} strides for {} dimensions", tensor.strides.size(), tensor.dims.size()), {}, {}};
  int64_t product = 1, last = 0;
  bool empty = false;
  for (size_t i = 0; i < tensor.dims.size(); ++i) {
    Result<int64_t> dim = tensor.dims[i].evaluate(shape);
    if (!dim) return dim.failure();
    if (*dim < 0) return Failure{fmt::format("dimension '{}' is {}", tensor.dims[i].text(), *dim), {}, {}};
    empty = empty || *dim == 0;
    if (tensor.strides.empty()) {
      if (!empty && __builtin_mul_overflow(product, *dim, &product)) return too_large;
      continue;
    }
    Result<int64_t> stride = tensor.strides[i].evaluate(shape);
    if (!stride) return stride.failure();
    if (*stride < 0) return Failure{fmt::format("stride '{}' is {}", tensor.strides[i].text(), *stride), {}, {}};
    int64_t reach = 0;
    if (*dim > 0 && (__builtin_mul_overflow(*dim - 1, *stride, &reach) || __builtin_add_overflow(last, reach, &last)))
      return too_large;
  }
  if (empty) return uint64_t{0};
  if (!tensor.strides.empty() && __builtin_add_overflow(last, int64_t{1}, &product)) return too_large;
  if (product > std::numeric_limits<int64_t>::max() / 8) return too_large;
  return static_cast<uint64_t>(product);
}

}  // namespace kgate
