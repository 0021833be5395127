# How weft's own libraries and tests are made.
include(GNUInstallDirs)

# Flags of everything that is ours; never part of what an installed weft asks of its users.
add_library(weft_flags INTERFACE)
target_compile_options(weft_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall> $<$<COMPILE_LANGUAGE:CXX>:-Wextra>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps in `"text" + std::string` that are not there (GCC bug 105651).
  target_compile_options(weft_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_UNITY_BUILD)
  # Private parts of a class that use the file's unnamed namespace: right, the file is just not the
  # one that is compiled.
  target_compile_options(weft_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(WEFT_NATIVE)
  target_compile_options(weft_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
endif()
if(WEFT_SANITIZE)
  target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE})
  if(WEFT_SANITIZE MATCHES undefined)
    # CAF 0.17 binds a reference to a null std::tuple<> in every spawn of a function; what is really
    # read or called through a null pointer, the address sanitizer sees.
    target_compile_options(weft_flags INTERFACE -fno-sanitize-recover=undefined -fno-sanitize=null)
  endif()
endif()

if(WEFT_FUZZ)
  # Coverage for libFuzzer in all code; only the fuzz targets have its main().
  target_compile_options(weft_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

# weft_library(NAME SOURCES …): a library weft_NAME with the alias weft::NAME, installed with its
# headers. A folder `include` beside it holds headers that users reach as <weft/…>.
function(weft_library name)
  add_library(weft_${name} ${ARGN})
  add_library(weft::${name} ALIAS weft_${name})
  set_target_properties(weft_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(weft_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/weft>)
  if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include)
    target_include_directories(weft_${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>)
  endif()
  target_compile_features(weft_${name} PUBLIC cxx_std_20)
  target_link_libraries(weft_${name} PRIVATE $<BUILD_INTERFACE:weft_flags>)
  set_property(GLOBAL APPEND PROPERTY WEFT_LIBRARIES weft_${name})
endfunction()

# weft_test(NAME SOURCES … [LIBS …] [TIMEOUT SECONDS] [SERIAL] [ONE_THREAD]): a Catch2 program and one
# ctest for it. SERIAL keeps other tests away from one that measures. What is under test with
# ONE_THREAD has no threads, so the thread sanitizer finds nothing there: it is left out of its build.
function(weft_test name)
  cmake_parse_arguments(ARG "SERIAL;ONE_THREAD;NO_CTEST" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(ARG_ONE_THREAD AND WEFT_SANITIZE STREQUAL "thread")
    message(STATUS "test ${name}: one thread, left out under TSan")
    return()
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
  if(NOT WEFT_SANITIZE)
    target_compile_options(${name}_test PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
  endif()
  target_link_libraries(${name}_test PRIVATE weft_flags weft_test_main ${ARG_LIBS})
  set_target_properties(${name}_test PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin/tests
    UNITY_BUILD OFF)
  if(ARG_NO_CTEST)  # the caller adds its own
    return()
  endif()
  add_test(NAME ${name} COMMAND ${name}_test)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_SERIAL})
endfunction()

# weft_test_files(NAME FILES A B … [LIBS …] [ONE_THREAD]): one program of A_test.cpp, B_test.cpp …,
# which share most of their headers, and a ctest NAME_A, NAME_B … for the cases of each file.
function(weft_test_files name)
  cmake_parse_arguments(ARG "ONE_THREAD" "" "FILES;LIBS" ${ARGN})
  set(sources "")
  set(one_thread "")
  if(ARG_ONE_THREAD)
    set(one_thread ONE_THREAD)
  endif()
  foreach(file IN LISTS ARG_FILES)
    list(APPEND sources ${file}_test.cpp)
  endforeach()
  weft_test(${name} SOURCES ${sources} LIBS ${ARG_LIBS} ${one_thread} NO_CTEST)
  if(NOT TARGET ${name}_test)
    return()
  endif()
  set_target_properties(${name}_test PROPERTIES
    UNITY_BUILD "${CMAKE_UNITY_BUILD}" UNITY_BUILD_BATCH_SIZE 8)
  set(no_tests_is_an_error "")
  if(Catch2_VERSION_MAJOR LESS 3)  # later ones need not be asked
    set(no_tests_is_an_error --warn NoTests)
  endif()
  foreach(file IN LISTS ARG_FILES)
    # Catch2 tags cases with the names of their files.
    add_test(NAME ${name}_${file}
      COMMAND ${name}_test --filenames-as-tags ${no_tests_is_an_error} "[#${file}_test]")
    set_tests_properties(${name}_${file} PROPERTIES TIMEOUT 600)
  endforeach()
endfunction()
