# find_package(oxshmem) gives the targets oxshmem::oxshmem and, of the archive, oxshmem::oxshmem_static.
get_filename_component(_oxshmem_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET oxshmem::oxshmem)
  add_library(oxshmem::oxshmem SHARED IMPORTED)
  add_library(oxshmem::oxshmem_static STATIC IMPORTED)
  set_target_properties(oxshmem::oxshmem oxshmem::oxshmem_static PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_oxshmem_prefix}/include")
  set_target_properties(oxshmem::oxshmem PROPERTIES
    IMPORTED_LOCATION "${_oxshmem_prefix}/lib/liboxshmem.so"
    IMPORTED_SONAME "liboxshmem.so.0")
  set_target_properties(oxshmem::oxshmem_static PROPERTIES
    IMPORTED_LOCATION "${_oxshmem_prefix}/lib/liboxshmem.a"
    INTERFACE_LINK_LIBRARIES "@PRIVATE@")
endif()
set(OXSHMEM_LAUNCHER "${_oxshmem_prefix}/bin/oshrun")
unset(_oxshmem_prefix)
