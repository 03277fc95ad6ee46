# The virtual GPU's machine. The arithmetic handlers are compiled once for any host and, on x86-64, once more for AVX2+FMA;
# op_table.cpp picks at run time.
set(KGATE_VGPU_OPS ops_integer.cpp ops_wide_integer.cpp ops_bits.cpp ops_float.cpp ops_math.cpp ops_half.cpp ops_convert.cpp
    ops_compare.cpp ops_move.cpp ops_select.cpp)

function(kgate_vgpu_variant name)
  add_library(kgate_vgpu_ops_${name} OBJECT ${KGATE_VGPU_OPS})
  target_link_libraries(kgate_vgpu_ops_${name} PRIVATE kgate_flags)
  target_compile_definitions(kgate_vgpu_ops_${name} PRIVATE KGATE_ISA=${name})
  target_compile_options(kgate_vgpu_ops_${name} PRIVATE -O3 -fno-math-errno -fno-trapping-math ${ARGN})
endfunction()

kgate_vgpu_variant(portable)
set(KGATE_VGPU_OBJECTS $<TARGET_OBJECTS:kgate_vgpu_ops_portable>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  kgate_vgpu_variant(avx2 -mavx2 -mfma -mbmi2 -mlzcnt -mpopcnt)
  list(APPEND KGATE_VGPU_OBJECTS $<TARGET_OBJECTS:kgate_vgpu_ops_avx2>)
endif()

kgate_library(vgpu_machine
  SOURCES memory.cpp memory_mapping.cpp program.cpp decode.cpp decode_arithmetic.cpp decode_memory.cpp decode_control.cpp grid.cpp warp.cpp
          barrier.cpp access.cpp ops_memory.cpp ops_atomic.cpp ops_control.cpp ops_warp.cpp op_table.cpp ${KGATE_VGPU_OBJECTS}
  DEPS kgate_ptx kgate_support)
target_compile_options(kgate_vgpu_machine PRIVATE -O2)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(kgate_vgpu_machine PRIVATE KGATE_HAVE_AVX2_VARIANT=1)
endif()
