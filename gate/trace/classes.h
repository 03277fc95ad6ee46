// Launch classes: launches that do the same amount of work, so that their times may be put together.
//
// The key is (kernel, grid, block, dynamic shared bytes, cluster), the kernel being its id or, where that is not known,
// its name. A kernel has at most 16 classes, the most frequent first; the rest are pooled by the power of two of their
// thread count.
//
// In a replay a class belongs to a launch of the *workload*, not to what an arm runs in its place: both arms' samples
// of one class are then comparable although their kernels, grids and blocks differ. Its key is what the lowest arm
// launches there. In a traced application there is no plan, and a class is a shape.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace kgate::trace {

constexpr size_t kMaxClasses = 16;  // of one kernel, pools not counted

struct LaunchShape {
  std::string kernel_name, kernel_id;
  std::array<uint32_t, 3> grid{}, block{};
  uint32_t shared = 0;
  std::array<uint32_t, 3> cluster{};  // 0: none
  auto operator<=>(const LaunchShape&) const = default;
};

struct LaunchClass {
  std::string kernel_name, label;
  bool pooled = false;
};

class LaunchClasses {
 public:
  // A workload launch that was seen `count` times in this shape. Launches that have a class keep it.
  struct Seen {
    uint32_t launch = 0;
    LaunchShape shape;
    uint64_t count = 0;
  };
  void assign(const std::vector<Seen>& seen);
  uint32_t class_of(uint32_t launch) const;  // 0xffffffff: none yet

  // Without a plan: the class of each shape. Shapes that have one keep it.
  std::vector<uint32_t> assign(const std::vector<std::pair<LaunchShape, uint64_t>>& shapes);  // with their counts
  const std::vector<LaunchClass>& classes() const { return classes_; }

 private:
  uint32_t class_for(const LaunchShape& shape);
  std::vector<LaunchClass> classes_;
  std::unordered_map<uint32_t, uint32_t> by_launch_;
  std::map<LaunchShape, uint32_t> by_shape_;
  std::map<std::pair<std::string, int>, uint32_t> pools_;  // (kernel, log2 threads)
  std::map<std::string, size_t> used_;                     // classes of a kernel
};

}  // namespace kgate::trace
