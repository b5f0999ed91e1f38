# NORM_SANITIZE: instruments the project's own code, not MLIR's.
#
# The runtime is a shared library, so that a plugin or a Python module can be
# loaded by a program that is not instrumented when the runtime is preloaded.
# `vptr` and `function` need instrumented type information of MLIR's classes.
if(NORM_SANITIZE)
  set(flags -fsanitize=${NORM_SANITIZE} -fno-sanitize=vptr,function
    -shared-libsan)
  add_compile_options(${flags} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1)
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
    OUTPUT_VARIABLE NORM_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
  get_filename_component(runtime_dir ${NORM_SANITIZER_RUNTIME} DIRECTORY)
  add_link_options(${flags} -Wl,-rpath,${runtime_dir})
endif()
