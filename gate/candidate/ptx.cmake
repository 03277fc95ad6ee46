# The PTX reader on its own: the virtual GPU links it without the rest of candidate/.
kgate_library(ptx SOURCES ptx_types.cpp ptx_lexer.cpp ptx_operand.cpp ptx_function.cpp ptx_module.cpp ptx_variable.cpp ptx_identity.cpp
  DEPS kgate_support)
