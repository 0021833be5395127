# cmake -DPROGRAM=… -DEXPECTED=REGEX -P check_output.cmake
execute_process(COMMAND ${PROGRAM} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
message("${output}${errors}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM}: ${result}")
endif()
if(NOT output MATCHES "${EXPECTED}")
  message(FATAL_ERROR "${PROGRAM} did not print what matches\n  ${EXPECTED}")
endif()
