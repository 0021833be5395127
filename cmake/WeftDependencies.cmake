# Every third-party package weft is built on, found once. What is found here is also what the
# installed package config asks for, so that a static weft links in another project.
if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW)  # Boost's own package, not CMake's retired FindBoost
endif()

set(WEFT_FIND_DEPENDENCIES "")
macro(weft_depends_on)
  find_package(${ARGV} REQUIRED)
  string(REPLACE ";" " " weft_arguments "${ARGV}")
  string(APPEND WEFT_FIND_DEPENDENCIES "find_dependency(${weft_arguments})\n")
endmacro()

weft_depends_on(Threads)
weft_depends_on(CAF)
weft_depends_on(Hwloc)
weft_depends_on(OpenBLAS)
weft_depends_on(ZLIB)
weft_depends_on(pugixml)
weft_depends_on(nlohmann_json 3.11)
weft_depends_on(spdlog)
weft_depends_on(Boost 1.74)

if(WEFT_APPS)
  find_package(CLI11 REQUIRED)
  find_package(TBB REQUIRED)  # a peer of the benchmarks
  find_package(yaml-cpp REQUIRED)
  if(NOT TARGET yaml-cpp::yaml-cpp)
    add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)  # before 0.8
  endif()
endif()
if(WEFT_TESTS)
  find_package(Catch2 REQUIRED)
endif()
