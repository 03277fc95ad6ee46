# libkgate_vgpu.so: the virtual GPU behind the driver API's own names. The flags are for the tracer's sake: uprobes sit
# on the exported symbols, so each needs an address of its own (no folding of identical functions), a first instruction
# that the kernel emulates cheaply (push %rbp: a frame, no endbr64, no work before the prologue) and a name in .symtab.
if(NOT TARGET kgate_vgpu_machine)
  return()  # no engine, no library
endif()
add_library(kgate_vgpu SHARED
  cupti_buffers.cpp cupti_callbacks.cpp cupti_exports.cpp cupti_inject.cpp cupti_records.cpp
  driver_capture.cpp driver_context.cpp driver_copy.cpp driver_device.cpp driver_graph.cpp driver_graph_exec.cpp driver_image.cpp driver_injection.cpp driver_launch.cpp driver_lookup.cpp driver_memory.cpp
  driver_module.cpp driver_pointer.cpp driver_settings.cpp driver_state.cpp driver_stream.cpp driver_virtual_memory.cpp driver_work.cpp)
target_link_libraries(kgate_vgpu PRIVATE kgate_flags kgate_vgpu_machine kgate_support)
target_compile_options(kgate_vgpu PRIVATE -fno-lto -fcf-protection=none -fno-ipa-icf -fno-shrink-wrap
  -fno-optimize-sibling-calls -fno-partial-inlining)
target_link_options(kgate_vgpu PRIVATE -Wl,-Bsymbolic -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/driver.map)
set_target_properties(kgate_vgpu PROPERTIES
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON INTERPROCEDURAL_OPTIMIZATION OFF
  LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/driver.map)
