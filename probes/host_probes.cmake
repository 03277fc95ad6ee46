# kgate_bpf_object(VARIABLE name.bpf.c): compiles an eBPF program of this folder; VARIABLE becomes the path of the object.
# The object is the same for every kernel (CO-RE) and is embedded, so that nothing is compiled where kgate runs.
set(KGATE_PROBES_DIR ${CMAKE_CURRENT_LIST_DIR})

find_program(KGATE_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
if(NOT KGATE_CLANG)
  message(FATAL_ERROR "clang is needed to compile the eBPF programs in probes/ (Debian, Ubuntu: apt install clang), "
                      "or set KGATE_CLANG to its path")
endif()

function(kgate_bpf_object variable source)
  string(REPLACE ".bpf.c" ".bpf.o" name ${source})
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name})
  set(arch_include)
  if(CMAKE_C_LIBRARY_ARCHITECTURE)
    set(arch_include -idirafter /usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE})  # asm/types.h
  endif()
  add_custom_command(OUTPUT ${object}
    COMMAND ${KGATE_CLANG} -target bpf -mcpu=v3 -O2 -g -Wall -Werror ${arch_include} -I${KGATE_bpf_INCLUDE}
            -c ${KGATE_PROBES_DIR}/${source} -o ${object}
    DEPENDS ${KGATE_PROBES_DIR}/${source} ${KGATE_PROBES_DIR}/host_event.h ${KGATE_PROBES_DIR}/kernel_types.h
    COMMENT "Compiling eBPF ${source}" VERBATIM)
  set(${variable} ${object} PARENT_SCOPE)
endfunction()
