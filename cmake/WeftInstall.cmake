# `cmake --install`: libraries, headers, the command and a package config, so that
# find_package(weft) and weft::actors work in another project.
include(CMakePackageConfigHelpers)

set(weft_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
get_property(weft_libraries GLOBAL PROPERTY WEFT_LIBRARIES)

# A user without the CUDA language has no CUDA runtime on his link line unless we name it.
foreach(library IN LISTS weft_libraries)
  get_target_property(sources ${library} SOURCES)
  if(sources MATCHES "\\.cu(;|$)")
    target_link_libraries(${library} PRIVATE CUDA::cudart_static)
  endif()
endforeach()

install(TARGETS ${weft_libraries} EXPORT weftTargets)

# include/weft/{topology,framework,actors}/…, and actors/include/weft/weft.hpp as include/weft/weft.hpp
install(DIRECTORY topology framework actors DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft
  FILES_MATCHING PATTERN "*.hpp" PATTERN include EXCLUDE)
if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/actors/include)
  install(DIRECTORY actors/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()

install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${weft_package_dir})
configure_package_config_file(cmake/weftConfig.cmake.in weftConfig.cmake
  INSTALL_DESTINATION ${weft_package_dir})
write_basic_package_version_file(weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/weftConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/weftConfigVersion.cmake
  cmake/FindCAF.cmake cmake/FindHwloc.cmake cmake/FindNCCL.cmake cmake/FindOpenBLAS.cmake
  DESTINATION ${weft_package_dir})
