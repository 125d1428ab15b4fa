# find_package(taeda): the target taeda::taeda, for extensions in C++. It is headers alone: an
# extension links to nothing of taeda's. `python -m taeda.utils.cpp_extension --cmake-dir` says
# where this file is.
if(NOT TARGET taeda::taeda)
  get_filename_component(taeda_package "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(taeda::taeda INTERFACE IMPORTED)
  set_target_properties(taeda::taeda PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${taeda_package}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
  unset(taeda_package)
endif()
