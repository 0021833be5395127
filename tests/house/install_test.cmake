# Installs weft from the build tree, then builds and runs a project outside of it with
# find_package(weft).
set(prefix ${WORK_DIR}/prefix)
set(consumer ${WORK_DIR}/consumer)
file(REMOVE_RECURSE ${WORK_DIR})

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("== ${what}\n${output}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed: ${result}")
  endif()
endfunction()

file(COPY ${WEFT_SOURCE_DIR}/tests/house/consumer/ DESTINATION ${consumer})
file(COPY ${WEFT_SOURCE_DIR}/apps/examples/ DESTINATION ${consumer}/examples)

run("install" ${CMAKE_COMMAND} --install ${WEFT_BINARY_DIR} --config ${CONFIG} --prefix ${prefix})
set(ENV{CMAKE_PREFIX_PATH} "${prefix}:${PREFIX_PATH}")
run("configure" ${CMAKE_COMMAND} -S ${consumer} -B ${consumer}/build -G ${GENERATOR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=${CONFIG})
run("build" ${CMAKE_COMMAND} --build ${consumer}/build --config ${CONFIG})
run("test" ${CMAKE_CTEST_COMMAND} --test-dir ${consumer}/build -C ${CONFIG} --output-on-failure)
