// Assignment happens block by block; within one block the order is by frequency and then by index, so that the same
// records always give the same classes.
#include "trace/classes.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace kgate::trace {

namespace {

std::string dims(const std::array<uint32_t, 3>& d) {
  return "(" + std::to_string(d[0]) + "," + std::to_string(d[1]) + "," + std::to_string(d[2]) + ")";
}

int log2_threads(const LaunchShape& shape) {
  double product = 1;
  for (int i = 0; i < 3; ++i) product *= std::max<double>(shape.grid[i], 1) * std::max<double>(shape.block[i], 1);
  uint64_t threads = product < 1e18 ? static_cast<uint64_t>(product) : uint64_t{1} << 60;
  return std::bit_width(threads) - 1;
}

}  // namespace

uint32_t LaunchClasses::class_for(const LaunchShape& shape) {
  if (auto at = by_shape_.find(shape); at != by_shape_.end()) return at->second;
  auto next = static_cast<uint32_t>(classes_.size());
  const std::string& kernel = shape.kernel_id.empty() ? shape.kernel_name : shape.kernel_id;
  if (size_t& used = used_[kernel]; used < kMaxClasses) {
    ++used;
    std::string label = shape.kernel_name + " grid " + dims(shape.grid) + " block " + dims(shape.block);
    if (shape.shared != 0) label += " shared " + std::to_string(shape.shared);
    if (shape.cluster != std::array<uint32_t, 3>{}) label += " cluster " + dims(shape.cluster);
    classes_.push_back({shape.kernel_name, std::move(label), false});
  } else {
    int size = log2_threads(shape);
    auto [at, added] = pools_.try_emplace({kernel, size}, next);
    if (!added) return by_shape_[shape] = at->second;
    classes_.push_back(
        {shape.kernel_name, shape.kernel_name + " others with 2^" + std::to_string(size) + " threads", true});
  }
  return by_shape_[shape] = next;
}

void LaunchClasses::assign(const std::vector<Seen>& seen) {
  std::map<LaunchShape, std::pair<uint64_t, uint32_t>> shapes;  // count, first launch
  for (const Seen& one : seen) {
    if (by_launch_.contains(one.launch)) continue;
    auto [at, added] = shapes.try_emplace(one.shape, one.count, one.launch);
    if (!added) at->second = {at->second.first + one.count, std::min(at->second.second, one.launch)};
  }
  std::vector<std::pair<std::pair<uint64_t, uint32_t>, const LaunchShape*>> order;
  for (const auto& [shape, weight] : shapes) order.push_back({weight, &shape});
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(b.first.first, a.first.second) < std::tie(a.first.first, b.first.second);
  });
  for (const auto& [weight, shape] : order) class_for(*shape);
  for (const Seen& one : seen) by_launch_.try_emplace(one.launch, class_for(one.shape));
}

std::vector<uint32_t> LaunchClasses::assign(const std::vector<std::pair<LaunchShape, uint64_t>>& shapes) {
  std::vector<const std::pair<LaunchShape, uint64_t>*> order;
  for (const auto& shape : shapes) order.push_back(&shape);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::tie(b->second, a->first) < std::tie(a->second, b->first);
  });
  for (const auto* shape : order) class_for(shape->first);
  std::vector<uint32_t> classes;
  for (const auto& shape : shapes) classes.push_back(class_for(shape.first));
  return classes;
}

uint32_t LaunchClasses::class_of(uint32_t launch) const {
  auto at = by_launch_.find(launch);
  return at == by_launch_.end() ? 0xffffffff : at->second;
}

}  // namespace kgate::trace
