// Memory beyond plain allocations: chosen addresses, streams' allocations, pitches, boxes, pointers.
#include <numeric>

#include "gpu/graph_abi.h"
#include "samples.h"

namespace kgate {

using namespace gpu;

namespace {

constexpr uint64_t kGranule = uint64_t{2} << 20;
constexpr CUdeviceptr kFar = uint64_t{0x30} << 40;  // free in any process

class VirtualMemory : public ::testing::Test {
 protected:
  template <typename... Args>
  CUresult call(const char* name, Args... args) {
    auto function = reinterpret_cast<CUresult (*)(Args...)>(driver->symbol(name));
    EXPECT_NE(function, nullptr) << name;
    return function != nullptr ? function(args...) : CUDA_ERROR_NOT_FOUND;
  }
  CUmemGenericAllocationHandle create(size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(call("cuMemCreate", &handle, bytes, &prop, uint64_t{0}), CUDA_SUCCESS);
    return handle;
  }
  CUresult map(CUdeviceptr at, size_t bytes, CUmemGenericAllocationHandle handle) {
    return call("cuMemMap", at, bytes, size_t{0}, handle, uint64_t{0});
  }
  CUresult open(CUdeviceptr at, size_t bytes) { return call("cuMemSetAccess", at, bytes, &access, size_t{1}); }

  std::unique_ptr<Driver> driver = start_virtual();
  CUmemAllocationProp prop{CU_MEM_ALLOCATION_TYPE_PINNED, 0, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nullptr, {}};
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
};

TEST_F(VirtualMemory, lies_where_it_is_wanted_and_can_be_had_again) {
  for (int round = 0; round < 2; ++round) {
    auto at = driver->allocate_at(kFar, 3 * kGranule - 5);
    ASSERT_TRUE(at);
    EXPECT_EQ(*at, kFar);
    EXPECT_EQ(driver->free_memory(), driver->properties().total_memory - 3 * kGranule);
    EXPECT_FALSE(driver->allocate_at(kFar + kGranule, kGranule)) << "taken";
    driver->fill(kFar + 3 * kGranule - 4, 7, 4, nullptr);
    driver->free(kFar);
    EXPECT_EQ(driver->free_memory(), driver->properties().total_memory);
    EXPECT_NE(code_of([&] { driver->fill(kFar, 7, 4, nullptr); }), 0);
  }
}

TEST_F(VirtualMemory, also_lies_among_plain_allocations_which_go_around_it) {
  CUdeviceptr first = driver->allocate(64);
  CUdeviceptr wanted = (first + 2 * kGranule) / kGranule * kGranule;
  ASSERT_TRUE(driver->allocate_at(wanted, kGranule));
  EXPECT_FALSE(driver->allocate_at(first / kGranule * kGranule, kGranule)) << "an allocation lies there";
  CUdeviceptr big = driver->allocate(4 * kGranule);
  EXPECT_TRUE(big + 4 * kGranule <= wanted || big >= wanted + kGranule);
}

TEST_F(VirtualMemory, kernels_work_across_mappings_side_by_side) {
  ASSERT_TRUE(driver->reserve_at(kFar, 2 * kGranule));
  driver->map(kFar, kGranule);
  driver->map(kFar + kGranule, kGranule);
  VectorAdd add(*driver, 1000);
  CUdeviceptr across = kFar + kGranule - 2000;
  add.params.c = across;
  add.run();
  add.expect_right();
  std::vector<char> bytes(4000);
  driver->download(bytes.data(), across, bytes.size());
}

TEST_F(VirtualMemory, one_memory_can_be_seen_at_two_addresses) {
  ASSERT_TRUE(driver->reserve_at(kFar, 2 * kGranule));
  auto handle = create(kGranule);
  ASSERT_EQ(map(kFar, kGranule, handle), CUDA_SUCCESS);
  ASSERT_EQ(map(kFar + kGranule, kGranule, handle), CUDA_SUCCESS);
  ASSERT_EQ(open(kFar, 2 * kGranule), CUDA_SUCCESS);
  driver->fill(kFar + 16, 0x5a, 4, nullptr);
  uint32_t seen = 0;
  driver->download(&seen, kFar + kGranule + 16, 4);
  EXPECT_EQ(seen, 0x5a5a5a5au);
  EXPECT_EQ(call("cuMemRelease", handle), CUDA_SUCCESS);
  EXPECT_LT(driver->free_memory(), driver->properties().total_memory) << "mappings keep the memory";
  EXPECT_EQ(call("cuMemUnmap", kFar, 2 * kGranule), CUDA_SUCCESS);
  EXPECT_EQ(driver->free_memory(), driver->properties().total_memory);
}

TEST_F(VirtualMemory, is_closed_until_access_is_granted) {
  ASSERT_TRUE(driver->reserve_at(kFar, kGranule));
  EXPECT_NE(code_of([&] { driver->fill(kFar, 1, 4, nullptr); }), 0);
  ASSERT_EQ(map(kFar, kGranule, create(kGranule)), CUDA_SUCCESS);
  EXPECT_EQ(code_of([&] { driver->fill(kFar, 1, 4, nullptr); }), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(open(kFar, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(code_of([&] { driver->fill(kFar, 1, 4, nullptr); }), 0);
}

TEST_F(VirtualMemory, misuse_is_refused) {
  CUdeviceptr out = 0;
  CUmemGenericAllocationHandle handle = create(kGranule), none = 0;
  EXPECT_EQ(call("cuMemAddressReserve", &out, size_t{4096}, size_t{0}, CUdeviceptr{0}, uint64_t{0}),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call("cuMemAddressReserve", &out, size_t{1} << 62, size_t{0}, CUdeviceptr{0}, uint64_t{0}),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(call("cuMemAddressReserve", &out, kGranule, size_t{3}, CUdeviceptr{0}, uint64_t{0}),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call("cuMemCreate", &none, size_t{1} << 50, &prop, uint64_t{0}), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(map(kFar, kGranule, handle), CUDA_ERROR_INVALID_VALUE) << "not reserved";
  ASSERT_TRUE(driver->reserve_at(kFar, 2 * kGranule));
  EXPECT_EQ(map(kFar, 2 * kGranule, handle), CUDA_ERROR_INVALID_VALUE) << "larger than the memory";
  EXPECT_EQ(map(kFar, kGranule, 77), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(map(kFar, kGranule, handle), CUDA_SUCCESS);
  EXPECT_EQ(map(kFar, kGranule, handle), CUDA_ERROR_ALREADY_MAPPED);
  EXPECT_EQ(open(kFar, 2 * kGranule), CUDA_ERROR_INVALID_VALUE) << "half of it is not mapped";
  EXPECT_EQ(call("cuMemAddressFree", kFar, 2 * kGranule), CUDA_ERROR_INVALID_VALUE) << "still mapped";
  EXPECT_EQ(call("cuMemUnmap", kFar, 2 * kGranule), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call("cuMemUnmap", kFar, kGranule), CUDA_SUCCESS);
  EXPECT_EQ(call("cuMemAddressFree", kFar, kGranule), CUDA_ERROR_INVALID_VALUE) << "not the whole";
  EXPECT_EQ(call("cuMemAddressFree", kFar, 2 * kGranule), CUDA_SUCCESS);
  EXPECT_EQ(call("cuMemRelease", handle), CUDA_SUCCESS);
  EXPECT_EQ(call("cuMemRelease", handle), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemory, what_this_process_has_is_not_granted) {
  static char own[4 << 20];
  CUdeviceptr inside = (reinterpret_cast<CUdeviceptr>(own) + kGranule - 1) / kGranule * kGranule;
  CUdeviceptr granted = 0;
  ASSERT_EQ(call("cuMemAddressReserve", &granted, kGranule, size_t{0}, inside, uint64_t{0}), CUDA_SUCCESS);
  EXPECT_NE(granted, inside);
  EXPECT_EQ(call("cuMemAddressFree", granted, kGranule), CUDA_SUCCESS);
}

TEST_F(VirtualMemory, streams_allocate_and_free) {
  CUstream stream = driver->create_stream();
  CUdeviceptr p = driver->allocate_async(64, stream);
  driver->fill(p, 1, 64, stream);
  driver->free_async(p, stream);
  EXPECT_EQ(code_of([&] { driver->free_async(p, stream); }), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(code_of([&] { driver->allocate_async(64, reinterpret_cast<CUstream>(0x99)); }), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(VirtualMemory, boxes_are_copied_row_by_row) {
  std::vector<uint8_t> from(64), to(64, 0xee);
  std::iota(from.begin(), from.end(), uint8_t{0});
  CUdeviceptr a = driver->allocate(64);
  driver->upload(a, from.data(), 64);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = a, copy.srcPitch = 16, copy.srcXInBytes = 2,
  copy.srcY = 1;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = to.data(), copy.dstPitch = 8;
  copy.WidthInBytes = 3, copy.Height = 2;
  ASSERT_EQ(call("cuMemcpy2D_v2", &copy), CUDA_SUCCESS);
  EXPECT_EQ(std::vector<uint8_t>(to.begin(), to.begin() + 12),
            (std::vector<uint8_t>{18, 19, 20, 0xee, 0xee, 0xee, 0xee, 0xee, 34, 35, 36, 0xee}));
  copy.srcPitch = 4;
  EXPECT_EQ(call("cuMemcpy2D_v2", &copy), CUDA_ERROR_INVALID_VALUE) << "the pitch is less than the row";
  copy.srcPitch = 16, copy.Height = 4;
  EXPECT_EQ(call("cuMemcpy2D_v2", &copy), CUDA_ERROR_INVALID_VALUE) << "past the allocation";
  copy.Height = SIZE_MAX / 2;
  EXPECT_EQ(call("cuMemcpy2D_v2", &copy), CUDA_ERROR_INVALID_VALUE);
  copy.Height = 1, copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  EXPECT_EQ(call("cuMemcpy2D_v2", &copy), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(VirtualMemory, fills_of_several_rows_leave_the_gaps) {
  CUdeviceptr a = driver->allocate(64);
  driver->fill(a, 0, 64, nullptr);
  Fill fill;
  fill.to = a, fill.value = 0x0102, fill.unit = 2, fill.count = 2, fill.rows = 2, fill.pitch = 8;
  driver->fill(fill, nullptr);
  uint16_t seen[6];
  driver->download(seen, a, sizeof seen);
  EXPECT_EQ(std::vector<uint16_t>(seen, seen + 6), (std::vector<uint16_t>{0x0102, 0x0102, 0, 0, 0x0102, 0x0102}));
  fill.pitch = 3;
  EXPECT_EQ(code_of([&] { driver->fill(fill, nullptr); }), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemory, pointers_say_what_they_are) {
  CUdeviceptr a = driver->allocate(100), start = 0;
  size_t size = 0;
  unsigned type = 0;
  ASSERT_EQ(call("cuPointerGetAttribute", (void*)&type, int{CU_POINTER_ATTRIBUTE_MEMORY_TYPE}, a + 4), CUDA_SUCCESS);
  EXPECT_EQ(type, 2u);
  call("cuPointerGetAttribute", (void*)&start, int{CU_POINTER_ATTRIBUTE_RANGE_START_ADDR}, a + 4);
  call("cuPointerGetAttribute", (void*)&size, int{CU_POINTER_ATTRIBUTE_RANGE_SIZE}, a + 4);
  EXPECT_EQ(start, a);
  EXPECT_EQ(size, 100u);
  char host[64];
  auto address = reinterpret_cast<CUdeviceptr>(host);
  EXPECT_EQ(call("cuPointerGetAttribute", (void*)&type, int{CU_POINTER_ATTRIBUTE_MEMORY_TYPE}, address),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call("cuMemHostRegister_v2", (void*)host, sizeof host, 0u), CUDA_SUCCESS);
  EXPECT_EQ(call("cuMemHostRegister_v2", (void*)(host + 8), size_t{8}, 0u), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  ASSERT_EQ(call("cuPointerGetAttribute", (void*)&type, int{CU_POINTER_ATTRIBUTE_MEMORY_TYPE}, address + 5),
            CUDA_SUCCESS);
  EXPECT_EQ(type, 1u);
  EXPECT_EQ(call("cuMemHostUnregister", (void*)host), CUDA_SUCCESS);
  EXPECT_EQ(call("cuMemHostUnregister", (void*)host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  int asked[] = {int{CU_POINTER_ATTRIBUTE_MEMORY_TYPE}};
  void* out[] = {&type};
  EXPECT_EQ(call("cuPointerGetAttributes", 1u, &asked[0], &out[0], address), CUDA_SUCCESS);
  EXPECT_EQ(type, 0u) << "of memory that the driver does not know";
}

TEST_F(VirtualMemory, managed_memory_is_refused_by_name) {
  CUdeviceptr p = 0;
  EXPECT_EQ(call("cuMemAllocManaged", &p, size_t{64}, 1u), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(driver->last_fault()->message, "managed memory");
}

}  // namespace
}  // namespace kgate
