# NVSHMEM's interface over oxshmem, as CMake finds it: find_package(NVSHMEM), then link with nvshmem::nvshmem, or with
# nvshmem::nvshmem_host and
# nvshmem::nvshmem_device.
# CMake finds it below NVSHMEM_ROOT, NVSHMEM_DIR or CMAKE_PREFIX_PATH.
get_filename_component(NVSHMEM_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(NVSHMEM_HOME "${NVSHMEM_PREFIX}")
set(NVSHMEM_INCLUDE_DIR "${NVSHMEM_PREFIX}/include")
set(NVSHMEM_INCLUDE_DIRS "${NVSHMEM_INCLUDE_DIR}")
set(NVSHMEM_LIBRARY_DIR "${NVSHMEM_PREFIX}/lib")
set(NVSHMEM_LIBRARIES nvshmem::nvshmem_host nvshmem::nvshmem_device)
set(NVSHMEM_VERSION "@NVSHMEM_VERSION@")

if(NOT TARGET nvshmem::nvshmem_host)
  # The name by which programs find it at run time is libnvshmem_host.so.3.
  add_library(nvshmem::nvshmem_host SHARED IMPORTED)
  set_target_properties(nvshmem::nvshmem_host PROPERTIES
    IMPORTED_LOCATION "${NVSHMEM_LIBRARY_DIR}/libnvshmem_host.so.3"
    IMPORTED_SONAME "libnvshmem_host.so.3"
    INTERFACE_INCLUDE_DIRECTORIES "${NVSHMEM_INCLUDE_DIR}")

  # All device code is in the headers: the archive has the version alone.
  add_library(nvshmem::nvshmem_device STATIC IMPORTED)
  set_target_properties(nvshmem::nvshmem_device PROPERTIES
    IMPORTED_LOCATION "${NVSHMEM_LIBRARY_DIR}/libnvshmem_device.a"
    INTERFACE_INCLUDE_DIRECTORIES "${NVSHMEM_INCLUDE_DIR}")

  # Both, for projects that know one target.
  add_library(nvshmem::nvshmem INTERFACE IMPORTED)
  set_target_properties(nvshmem::nvshmem PROPERTIES
    INTERFACE_LINK_LIBRARIES "nvshmem::nvshmem_host;nvshmem::nvshmem_device")
endif()
set(NVSHMEM_FOUND TRUE)
