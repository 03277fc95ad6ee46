# kgate_library(NAME SOURCES... DEPS...): one static library a folder of gate/, target kgate_NAME.
# kgate_test(NAME SOURCES... DEPS...): one GoogleTest program a folder of tests/, discovered test by test.

add_library(kgate_flags INTERFACE)
target_include_directories(kgate_flags INTERFACE ${CMAKE_SOURCE_DIR}/gate)
target_compile_options(kgate_flags INTERFACE -Wall -Wextra -Werror -ffp-contract=off -fno-omit-frame-pointer)
if(KGATE_SANITIZE)
  target_compile_options(kgate_flags INTERFACE -fsanitize=${KGATE_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(kgate_flags INTERFACE -fsanitize=${KGATE_SANITIZE})
elseif(KGATE_STATIC)
  target_link_options(kgate_flags INTERFACE -static-libstdc++ -static-libgcc)
endif()

function(kgate_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(kgate_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(kgate_${name} PUBLIC kgate_flags ${ARG_DEPS})
endfunction()

function(kgate_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE kgate_flags ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name}_test PRIVATE
    KGATE_SOURCE_DIR="${CMAKE_SOURCE_DIR}" KGATE_BINARY_DIR="${CMAKE_BINARY_DIR}")
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
endfunction()
