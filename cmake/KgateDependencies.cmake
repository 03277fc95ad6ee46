# Every third-party library, in one place, as one imported target each: kgate_dep_NAME.
# With KGATE_STATIC the archives are preferred, so that the programs need only glibc at run time.

if(KGATE_STATIC)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
  set(OPENSSL_USE_STATIC_LIBS TRUE)
  set(ZLIB_USE_STATIC_LIBS TRUE)
endif()

find_package(Threads REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)
find_package(fmt REQUIRED)             # Debian 12 ships no libfmt.a: the header-only target serves both builds
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost REQUIRED)           # headers: Boost.Math
find_package(yaml-cpp REQUIRED)

# kgate_find_archive(NAME library header): for packages that ship no CMake config.
function(kgate_find_archive name library header)
  find_library(KGATE_${name}_LIBRARY NAMES ${library} REQUIRED)
  find_path(KGATE_${name}_INCLUDE ${header} REQUIRED)
  add_library(kgate_dep_${name} INTERFACE)
  target_link_libraries(kgate_dep_${name} INTERFACE ${KGATE_${name}_LIBRARY})
  target_include_directories(kgate_dep_${name} SYSTEM INTERFACE ${KGATE_${name}_INCLUDE})
endfunction()

kgate_find_archive(elf elf libelf.h)
kgate_find_archive(bpf bpf bpf/libbpf.h)
kgate_find_archive(sqlite sqlite3 sqlite3.h)
kgate_find_archive(zstd zstd zstd.h)       # its CMake config is not in every distribution
target_link_libraries(kgate_dep_elf INTERFACE ZLIB::ZLIB)
target_link_libraries(kgate_dep_bpf INTERFACE kgate_dep_elf ZLIB::ZLIB)
target_link_libraries(kgate_dep_sqlite INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)

add_library(kgate_dep_fmt INTERFACE)
target_link_libraries(kgate_dep_fmt INTERFACE fmt::fmt-header-only)
add_library(kgate_dep_json INTERFACE)
target_link_libraries(kgate_dep_json INTERFACE nlohmann_json::nlohmann_json)
add_library(kgate_dep_cli11 INTERFACE)
target_link_libraries(kgate_dep_cli11 INTERFACE CLI11::CLI11)
add_library(kgate_dep_crypto INTERFACE)
target_link_libraries(kgate_dep_crypto INTERFACE OpenSSL::Crypto)
add_library(kgate_dep_boost INTERFACE)
target_link_libraries(kgate_dep_boost INTERFACE Boost::headers)
add_library(kgate_dep_yaml INTERFACE)
find_library(KGATE_yaml_LIBRARY NAMES yaml-cpp REQUIRED)
target_link_libraries(kgate_dep_yaml INTERFACE ${KGATE_yaml_LIBRARY})

# The CUDA toolkit is optional: headers are only used to static_assert our own ABI declarations against.
find_path(KGATE_CUDA_INCLUDE cuda.h PATHS /usr/local/cuda/include /usr/include NO_DEFAULT_PATH)
add_library(kgate_dep_cuda_headers INTERFACE)
if(KGATE_CUDA_INCLUDE AND EXISTS ${KGATE_CUDA_INCLUDE}/cupti.h)
  target_include_directories(kgate_dep_cuda_headers SYSTEM INTERFACE ${KGATE_CUDA_INCLUDE})
  target_compile_definitions(kgate_dep_cuda_headers INTERFACE KGATE_HAVE_CUDA_HEADERS=1)
  message(STATUS "CUDA headers: ${KGATE_CUDA_INCLUDE}")
else()
  message(STATUS "CUDA headers: none (the ABI checks against them are skipped)")
endif()
