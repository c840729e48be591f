# The MLIR packages were configured with LLVM_LINK_LLVM_DYLIB=ON, so every
# imported MLIR target asks for the 130 MB dylib. Point them at the static
# component archives instead: a wheel then holds all it needs.
if(NOT MERCURY_STATIC_LLVM)
  return()
endif()

set(LLVM_LINK_LLVM_DYLIB OFF)
set(MLIR_LINK_MLIR_DYLIB OFF)
llvm_map_components_to_libnames(_llvm_static
  core support targetparser binaryformat bitreader bitwriter irreader linker
  analysis transformutils ipo passes codegen instcombine coroutines
  orcjit executionengine mcjit runtimedyld
  frontendopenmp frontendopenacc frontendoffloading
  native nvptxcodegen nvptxdesc nvptxinfo
  remarks tablegen option supportlsp)
add_library(MercuryLLVM INTERFACE)
target_link_libraries(MercuryLLVM INTERFACE ${_llvm_static})

# The packages were built by GCC 14; see the file for what older ones lack.
add_library(MercuryLibstdcxxCompat STATIC
  ${CMAKE_CURRENT_SOURCE_DIR}/lib/Compat/LibstdcxxCompat.cpp)
target_link_libraries(MercuryLLVM INTERFACE MercuryLibstdcxxCompat)

foreach(_target IN LISTS MLIR_EXPORTED_TARGETS)
  if(NOT TARGET ${_target})
    continue()
  endif()
  foreach(_property INTERFACE_LINK_LIBRARIES MLIR_AGGREGATE_DEP_LIBS_IMPORTED)
    get_target_property(_value ${_target} ${_property})
    if(NOT _value)
      continue()
    endif()
    set(_new)
    foreach(_library IN LISTS _value)
      if(_library STREQUAL "LLVM")
        list(APPEND _new MercuryLLVM)
      elseif(_library STREQUAL "MLIR") # a distribution's MLIRExecutionEngine
        list(APPEND _new MLIRBuiltinToLLVMIRTranslation
          MLIRExecutionEngineUtils MLIRLLVMDialect
          MLIRLLVMToLLVMIRTranslation MLIROpenMPToLLVMIRTranslation
          MLIRTargetLLVMIRExport)
      else()
        list(APPEND _new "${_library}")
      endif()
    endforeach()
    set_target_properties(${_target} PROPERTIES ${_property} "${_new}")
  endforeach()
endforeach()
