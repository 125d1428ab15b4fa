# The version is written in _version.py and nowhere else. Later versions serve whatever earlier ones
# did: see include/taeda/abi.h.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../../../_version.py" taeda_line REGEX "^__version__")
string(REGEX MATCH "[0-9]+(\\.[0-9]+)*" PACKAGE_VERSION "${taeda_line}")
unset(taeda_line)
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
