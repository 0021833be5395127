# weft_headers_alone: each header of the tree compiles as the only include of a file, twice over.
# Not part of `all`; ctest `headers_alone` builds it.
set(weft_header_dirs topology framework actors)
if(WEFT_APPS)
  list(APPEND weft_header_dirs apps)
endif()
list(APPEND weft_header_dirs tests)

set(weft_header_globs "")
foreach(dir IN LISTS weft_header_dirs)
  list(APPEND weft_header_globs ${PROJECT_SOURCE_DIR}/${dir}/*.hpp ${PROJECT_SOURCE_DIR}/${dir}/*.cuh)
endforeach()
file(GLOB_RECURSE weft_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${weft_header_globs})

set(weft_header_sources "")
foreach(header IN LISTS weft_headers)
  if(NOT WEFT_HAVE_CUDA AND header MATCHES "^actors/cuda/|\\.cuh$")
    continue()
  endif()
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} uses_nccl REGEX "#include <nccl.h>")
  if(uses_nccl AND NOT WEFT_HAVE_NCCL)
    continue()
  endif()
  set(suffix cpp)
  if(header MATCHES "\\.cuh$")
    set(suffix cu)
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers_alone/${header}.${suffix})
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"\n")
  list(APPEND weft_header_sources ${source})
endforeach()

add_library(weft_headers_alone OBJECT EXCLUDE_FROM_ALL ${weft_header_sources})
set_target_properties(weft_headers_alone PROPERTIES UNITY_BUILD OFF)
target_include_directories(weft_headers_alone PRIVATE
  ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/actors/include ${PROJECT_SOURCE_DIR}/tests)
target_compile_options(weft_headers_alone PRIVATE -O0 -g0)
target_compile_definitions(weft_headers_alone PRIVATE WEFT_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
  WEFT_CATCH2_MAJOR=${Catch2_VERSION_MAJOR})
target_link_libraries(weft_headers_alone PRIVATE weft_flags)
foreach(package CAF::core hwloc::hwloc OpenBLAS::OpenBLAS ZLIB::ZLIB TBB::tbb pugixml::pugixml
    nlohmann_json::nlohmann_json spdlog::spdlog Boost::headers CLI11::CLI11 Catch2::Catch2
    CUDA::cudart CUDA::cublasLt NCCL::nccl)
  if(TARGET ${package})
    target_link_libraries(weft_headers_alone PRIVATE ${package})
  endif()
endforeach()
