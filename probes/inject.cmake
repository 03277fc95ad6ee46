# libkgate_inject.so: loaded by the CUDA driver into a traced or recorded application. It brings everything along and is
# never unloaded: CUPTI may call it until the process ends.
set(KGATE_TRACE_SOURCES ${CMAKE_SOURCE_DIR}/gate/trace)
add_library(kgate_inject SHARED
  inject.cpp inject_driver.cpp inject_listener.cpp inject_session.cpp
  record_allocations.cpp record_calls.cpp record_code.cpp record_copies.cpp record_driver.cpp record_graph.cpp
  record_launches.cpp record_memory.cpp record_modules.cpp record_nvtx.cpp record_options.cpp record_output.cpp
  record_ranges.cpp record_session.cpp record_slice.cpp record_streams.cpp record_thread.cpp nvtx_abi_check.cpp
  ${CMAKE_SOURCE_DIR}/gate/workload/block_hash.cpp
  ${KGATE_TRACE_SOURCES}/collector.cpp ${KGATE_TRACE_SOURCES}/cupti_buffers.cpp
  ${KGATE_TRACE_SOURCES}/cupti_library.cpp ${KGATE_TRACE_SOURCES}/writer.cpp)
target_link_libraries(kgate_inject PRIVATE kgate_flags kgate_support kgate_dep_json Threads::Threads ${CMAKE_DL_LIBS})
target_link_libraries(kgate_inject PRIVATE kgate_dep_cuda_headers)  # nvtx_abi_check.cpp alone
target_include_directories(kgate_inject PRIVATE ${CMAKE_SOURCE_DIR})
target_link_options(kgate_inject PRIVATE -Wl,-Bsymbolic -Wl,-z,nodelete
  -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/inject.map)
set_target_properties(kgate_inject PROPERTIES
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/inject.map)
