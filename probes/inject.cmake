# libkgate_inject.so: loaded by the CUDA driver into a traced application. It brings everything along, shows one symbol,
# and is never unloaded: CUPTI may call it until the process ends.
set(KGATE_TRACE_SOURCES ${CMAKE_SOURCE_DIR}/gate/trace)
add_library(kgate_inject SHARED
  inject.cpp inject_driver.cpp inject_listener.cpp inject_session.cpp
  ${KGATE_TRACE_SOURCES}/collector.cpp ${KGATE_TRACE_SOURCES}/cupti_buffers.cpp
  ${KGATE_TRACE_SOURCES}/cupti_library.cpp ${KGATE_TRACE_SOURCES}/writer.cpp)
target_link_libraries(kgate_inject PRIVATE kgate_flags kgate_support Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(kgate_inject PRIVATE ${CMAKE_SOURCE_DIR})
target_link_options(kgate_inject PRIVATE -Wl,-Bsymbolic -Wl,-z,nodelete
  -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/inject.map)
set_target_properties(kgate_inject PROPERTIES
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/inject.map)
