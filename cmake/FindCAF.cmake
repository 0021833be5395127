# CAF 0.17 (Debian, Ubuntu) ships no CMake package: find it by hand. CAF 1.x ships one: use that.
find_package(CAF 1.0 CONFIG QUIET)
if(NOT TARGET CAF::core)
  find_path(CAF_INCLUDE_DIR caf/actor_system.hpp)
  find_library(CAF_CORE_LIBRARY caf_core)
  include(FindPackageHandleStandardArgs)
  find_package_handle_standard_args(CAF REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR)
  if(CAF_FOUND)
    add_library(CAF::core UNKNOWN IMPORTED)
    set_target_properties(CAF::core PROPERTIES
      IMPORTED_LOCATION ${CAF_CORE_LIBRARY}
      INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR}
      INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR})
  endif()
endif()
