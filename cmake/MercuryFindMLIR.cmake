# MLIR_DIR and LLVM_DIR win. Otherwise ask the Python that builds, by import
# (sysconfig would name the wrong site-packages under pip's build isolation),
# for the pinned build-time wheels. Otherwise CMake's own search.
if(NOT MLIR_DIR)
  find_package(Python3 COMPONENTS Interpreter QUIET)
  foreach(_package mlir llvm)
    string(TOUPPER ${_package} _PACKAGE)
    execute_process(
      COMMAND "${Python3_EXECUTABLE}" -c
"import importlib.util as u, os
s = u.find_spec('${_package}')
for d in (s.submodule_search_locations or []) if s else []:
    c = os.path.join(d, 'lib', 'cmake', '${_package}')
    if os.path.isfile(os.path.join(c, '${_PACKAGE}Config.cmake')):
        print(c, end=''); break"
      OUTPUT_VARIABLE _directory)
    if(_directory)
      set(${_PACKAGE}_DIR "${_directory}")
    endif()
  endforeach()
endif()

# "22" alone is refused: LLVM's version files want the same major.minor.
find_package(LLVM 22.1 REQUIRED CONFIG)
find_package(MLIR 22.1 REQUIRED CONFIG)
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION} in ${LLVM_DIR}; MLIR in ${MLIR_DIR}")
message(STATUS "  assertions=${LLVM_ENABLE_ASSERTIONS} rtti=${LLVM_ENABLE_RTTI} targets=${LLVM_TARGETS_TO_BUILD}")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
