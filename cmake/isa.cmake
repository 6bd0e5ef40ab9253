# isa.cmake - from the rows of kernels/kernels.def to source files and their flags.
#
# A row without its file stops the configuration, so the list and the tree cannot
# drift apart.

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(SLM_ARCH x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(SLM_ARCH arm)
else()
  set(SLM_ARCH other)
endif()

# ISA level -> architecture and flags. Reference code is compiled without
# contraction, so that its rounding is the source's.
set(SLM_ISA_ARCH_scalar any)
set(SLM_ISA_ARCH_avx2 x86)
set(SLM_ISA_ARCH_avxvnni x86)
set(SLM_ISA_ARCH_avx512 x86)
set(SLM_ISA_ARCH_avx512vnni x86)
set(SLM_ISA_ARCH_avx512vbmi x86)
set(SLM_ISA_ARCH_neon arm)
set(SLM_ISA_ARCH_neon_i8mm arm)
set(SLM_ISA_FLAGS_scalar -ffp-contract=off)
set(SLM_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(SLM_ISA_FLAGS_avxvnni -mavx2 -mfma -mf16c -mavxvnni)
set(SLM_ISA_FLAGS_avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set(SLM_ISA_FLAGS_avx512vnni ${SLM_ISA_FLAGS_avx512} -mavx512vnni)
set(SLM_ISA_FLAGS_avx512vbmi ${SLM_ISA_FLAGS_avx512vnni} -mavx512vbmi)
set(SLM_ISA_FLAGS_neon -march=armv8.2-a+dotprod+fp16)
set(SLM_ISA_FLAGS_neon_i8mm -march=armv8.2-a+dotprod+fp16+i8mm)

# A file is quantised to the same bytes on every CPU. Vectors are passed between
# functions of one file only, so how others would pass them does not matter.
set(SLM_QUANTIZE_FLAGS -ffp-contract=off -Wno-psabi)

set(SLM_ISA_LEVELS scalar avx2 avxvnni avx512 avx512vnni avx512vbmi neon neon_i8mm)
# Levels of KERN_SIMD_ROWS, of KERN_FLOAT_ROWS and KERN_VEC_ROWS.
set(SLM_ISA_BYTE_LEVELS avx2 avxvnni avx512 avx512vnni neon neon_i8mm)
set(SLM_ISA_FLOAT_LEVELS avx2 avx512 neon)

# slm_kernel_sources(OUT): the objects of every kernel source that this architecture
# builds, one library slmkern_<level> each. <format>_simd.c is compiled for every
# level that has rows of the format and no file of its own, <format>_<level>.c.
set(SLM_LEVELS_OFF "" CACHE STRING
    "ISA levels whose products of quantised weights are not built (list); avx512_floats: those of floats")

function(slm_kernel_sources out)
  foreach(isa IN LISTS SLM_LEVELS_OFF)
    set_property(SOURCE kernels/registry.c APPEND PROPERTY COMPILE_DEFINITIONS
                 SLM_LEVEL_OFF_${isa}=1)
  endforeach()
  set(def ${CMAKE_SOURCE_DIR}/kernels/kernels.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${def})
  file(STRINGS ${def} rows REGEX "^KERN_((WEIGHT|ACT|VEC|KV|PROBE)_ROW|(SCALAR|FLOAT|SIMD|VEC)_ROWS|SIMD_LEVEL)\\(")
  set(objects)
  set(listed)
  foreach(row IN LISTS rows)
    if(row MATCHES "^KERN_SCALAR_ROWS\\(([A-Za-z0-9_]+)\\)")
      list(APPEND listed "KERN_WEIGHT_ROW(quantize, ${CMAKE_MATCH_1}, scalar)"
                         "KERN_WEIGHT_ROW(gemv, ${CMAKE_MATCH_1}, scalar)")
    elseif(row MATCHES "^KERN_FLOAT_ROWS\\(([A-Za-z0-9_]+)\\)")
      foreach(isa IN LISTS SLM_ISA_FLOAT_LEVELS)
        list(APPEND listed "KERN_FLOAT_ROW(gemv, ${CMAKE_MATCH_1}, ${isa})")
      endforeach()
    elseif(row MATCHES "^KERN_SIMD_LEVEL\\(([A-Za-z0-9_]+), ([a-z0-9_]+)\\)")
      list(APPEND listed "KERN_WEIGHT_ROW(gemv, ${CMAKE_MATCH_1}, ${CMAKE_MATCH_2})")
    elseif(row MATCHES "^KERN_SIMD_ROWS\\(([A-Za-z0-9_]+)\\)")
      foreach(isa IN LISTS SLM_ISA_BYTE_LEVELS)
        list(APPEND listed "KERN_WEIGHT_ROW(gemv, ${CMAKE_MATCH_1}, ${isa})")
      endforeach()
    elseif(row MATCHES "^KERN_VEC_ROWS\\(([a-z0-9_]+)\\)")
      foreach(isa scalar ${SLM_ISA_FLOAT_LEVELS})
        list(APPEND listed "KERN_VEC_ROW(${CMAKE_MATCH_1}, ${isa})")
      endforeach()
    else()
      list(APPEND listed "${row}")
    endif()
  endforeach()
  foreach(row IN LISTS listed)
    if(row MATCHES "^KERN_WEIGHT_ROW\\((quantize|dequantize), ([A-Za-z0-9_]+), ([a-z0-9_]+)\\)")
      set(file kernels/${CMAKE_MATCH_2}/${CMAKE_MATCH_2}_quantize.c)
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
                                  "${SLM_QUANTIZE_FLAGS}")
      set(isa ${CMAKE_MATCH_3})
    elseif(row MATCHES "^KERN_(WEIGHT|FLOAT)_ROW\\(([a-z0-9_]+), ([A-Za-z0-9_]+), ([a-z0-9_]+)\\)")
      set(file kernels/${CMAKE_MATCH_3}/${CMAKE_MATCH_3}_${CMAKE_MATCH_4}.c)
      if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${file})
        set(file kernels/${CMAKE_MATCH_3}/${CMAKE_MATCH_3}_simd.c)
      endif()
      set(isa ${CMAKE_MATCH_4})
    elseif(row MATCHES "^KERN_ACT_ROW\\(([a-z0-9_]+), ([A-Za-z0-9_]+), ([a-z0-9_]+)\\)")
      set(file kernels/activations/${CMAKE_MATCH_2}_${CMAKE_MATCH_3}.c)
      set(isa ${CMAKE_MATCH_3})
    elseif(row MATCHES "^KERN_VEC_ROW\\(([a-z0-9_]+), ([a-z0-9_]+)\\)")
      set(isa ${CMAKE_MATCH_2})
      if(NOT isa STREQUAL scalar AND
         (SLM_ISA_ARCH_${isa} STREQUAL any OR SLM_ISA_ARCH_${isa} STREQUAL SLM_ARCH))
        list(APPEND sources_${isa} kernels/vecops/vecops_simd.c)
      endif()
      set(file kernels/vecops/vecops_${isa}.c)
    elseif(row MATCHES "^KERN_KV_ROW\\(([a-z0-9_]+), ([A-Za-z0-9_]+), ([a-z0-9_]+)\\)")
      set(isa ${CMAKE_MATCH_3})
      set(file kernels/vecops/attention_${isa}.c)
      if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${file})
        set(file kernels/vecops/attention_simd.c)
      endif()
    elseif(row MATCHES "^KERN_PROBE_ROW\\(([a-z0-9_]+), ([a-z0-9_]+)\\)")
      set(file kernels/probe/probe_${CMAKE_MATCH_2}.c)
      set(isa ${CMAKE_MATCH_2})
    else()
      message(FATAL_ERROR "kernels.def: cannot read this row: ${row}")
    endif()
    if(NOT DEFINED SLM_ISA_ARCH_${isa})
      message(FATAL_ERROR "kernels.def: unknown ISA level ${isa} in: ${row}")
    endif()
    if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${file})
      message(FATAL_ERROR "kernels.def has a row without a file: ${row} needs ${file}")
    endif()
    if((row MATCHES "^KERN_WEIGHT_ROW" AND isa IN_LIST SLM_LEVELS_OFF) OR
       (row MATCHES "^KERN_FLOAT_ROW" AND ${isa}_floats IN_LIST SLM_LEVELS_OFF))
      continue()
    endif()
    if(SLM_ISA_ARCH_${isa} STREQUAL any OR SLM_ISA_ARCH_${isa} STREQUAL SLM_ARCH)
      list(APPEND sources_${isa} ${file})
    endif()
  endforeach()
  if(SLM_SANITIZE)
    set_property(SOURCE kernels/f32/f32_simd.c kernels/f16/f16_simd.c
                        kernels/bf16/bf16_simd.c kernels/vecops/attention_simd.c
                        kernels/codebook/search_points.c
                 APPEND PROPERTY COMPILE_OPTIONS -O2)
  endif()
  foreach(isa IN LISTS SLM_ISA_LEVELS)
    if(DEFINED sources_${isa})
      list(REMOVE_DUPLICATES sources_${isa})
      add_library(slmkern_${isa} OBJECT ${sources_${isa}})
      target_compile_options(slmkern_${isa} PRIVATE ${SLM_ISA_FLAGS_${isa}})
      # The frames are handed to each other as constant function pointers; without
      # optimisation they would not be inlined, which they must.
      target_compile_options(slmkern_${isa} PRIVATE
                             $<$<CONFIG:Debug>:-O1 -findirect-inlining>
                             $<$<CONFIG:Release>:-O3>)
      # Under sanitizers, what quantises takes much of the tests' time; the vector
      # frames would take more to optimise than that saves. Their sums and words lie in
      # structs, which watched stacks would keep out of registers.
      if(SLM_SANITIZE AND isa STREQUAL scalar)
        target_compile_options(slmkern_${isa} PRIVATE -O2)
      elseif(SLM_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(slmkern_${isa} PRIVATE --param=asan-stack=0)
      endif()
      # Frames of AVX-512-VNNI are long and all but free of branches: looking for jumps to
      # thread, for ranges of values, and for every earlier store that a load could
      # alias, is three quarters of GCC's time and finds nothing.
      if(isa MATCHES "^avx512v" AND CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(slmkern_${isa} PRIVATE -fno-thread-jumps -fno-tree-vrp
                               --param=sccvn-max-alias-queries-per-access=50)
      endif()
      # For Arm, GCC orders instructions before it has given out registers, which
      # brings the loads of an unrolled block to its front and spills them.
      if(SLM_ARCH STREQUAL arm AND CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(slmkern_${isa} PRIVATE -fno-schedule-insns)
      endif()
      target_compile_definitions(slmkern_${isa} PRIVATE KERN_LEVEL=${isa}
                                 KERN_LEVEL_${isa}=1)
      list(APPEND objects $<TARGET_OBJECTS:slmkern_${isa}>)
    endif()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
