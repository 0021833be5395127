# weft_library(NAME SOURCES …): a library weft_NAME with the alias weft::NAME.
include(CheckIPOSupported)
include(GNUInstallDirs)

add_library(weft_flags INTERFACE)
target_compile_options(weft_flags INTERFACE -Wall -Wextra)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in `"text" + std::string` that are not there (GCC bug 105651).
  target_compile_options(weft_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(WEFT_NATIVE)
  target_compile_options(weft_flags INTERFACE -march=native)
endif()
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -g1)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
  if(WEFT_SANITIZE MATCHES undefined)
    target_compile_options(weft_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()

if(WEFT_FUZZ)
  # Coverage for libFuzzer in all code; only the fuzz targets have its main().
  target_compile_options(weft_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

function(weft_library name)
  add_library(weft_${name} ${ARGN})
  add_library(weft::${name} ALIAS weft_${name})
  set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(weft_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>)
  target_compile_features(weft_${name} PUBLIC cxx_std_20)
  target_link_libraries(weft_${name} PRIVATE $<BUILD_INTERFACE:weft_flags>)
endfunction()

# weft_test(NAME SOURCES … [LIBS …]): a Catch2 program and one ctest for it.
function(weft_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name}_test PRIVATE weft_flags weft_test_main ${ARG_LIBS})
  add_test(NAME ${name} COMMAND ${name}_test)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
endfunction()
