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

# slm_isa_level(NAME ARCH FLAGS...): an ISA level, its architecture and its flags, from
# the lowest up. SLM_HAS_<level>: whether this build's architecture has it, 0 or 1.
macro(slm_isa_level name arch)
  list(APPEND SLM_ISA_LEVELS ${name})
  set(SLM_ISA_FLAGS_${name} ${ARGN})
  set(SLM_HAS_${name} 0)
  if("${arch}" MATCHES "^(any|${SLM_ARCH})$")
    set(SLM_HAS_${name} 1)
  endif()
endmacro()

# Reference code is compiled without contraction, so that its rounding is the source's.
slm_isa_level(scalar any -ffp-contract=off)
slm_isa_level(avx2 x86 -mavx2 -mfma -mf16c)
slm_isa_level(avxvnni x86 ${SLM_ISA_FLAGS_avx2} -mavxvnni)
slm_isa_level(avx512 x86 ${SLM_ISA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
slm_isa_level(avx512bf16 x86 ${SLM_ISA_FLAGS_avx512} -mavx512bf16)
slm_isa_level(avx512vnni x86 ${SLM_ISA_FLAGS_avx512} -mavx512vnni)
slm_isa_level(avx512vbmi x86 ${SLM_ISA_FLAGS_avx512vnni} -mavx512vbmi)
slm_isa_level(amx_int8 x86 ${SLM_ISA_FLAGS_avx512vbmi} -mamx-tile -mamx-int8)
slm_isa_level(amx_bf16 x86 ${SLM_ISA_FLAGS_avx512bf16} -mamx-tile -mamx-bf16)
slm_isa_level(neon arm -march=armv8.2-a+dotprod+fp16)
slm_isa_level(neon_i8mm arm -march=armv8.2-a+dotprod+fp16+i8mm)

# A file is quantised to the same bytes on every CPU. Vectors are passed between
# functions of one file only, so how others would pass them does not matter.
set(SLM_QUANTIZE_FLAGS -ffp-contract=off -Wno-psabi)

set(SLM_LEVELS_OFF "" CACHE STRING
    "ISA levels whose products of quantised weights are not built (list); avx512_floats: those of floats")
set(SLM_ROWS_OFF "" CACHE STRING
    "Products of quantised weights that are not built either: a regular expression for <level>/<format>")

# slm_kernel_rows(OUT): the rows of kernels.def, each "row(KIND,op,of,isa)".
function(slm_kernel_rows out)
  set(def ${CMAKE_SOURCE_DIR}/kernels/kernels.def)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${def})
  execute_process(
    COMMAND ${CMAKE_C_COMPILER} -E -P -x c
            "-DKERN_WEIGHT_ROW(op,of,isa)=row(WEIGHT,op,of,isa)"
            "-DKERN_FLOAT_ROW(op,of,isa)=row(FLOAT,op,of,isa)"
            "-DKERN_ACT_ROW(op,of,isa)=row(ACT,op,of,isa)"
            "-DKERN_KV_ROW(op,of,isa)=row(KV,op,of,isa)"
            "-DKERN_VEC_ROW(op,isa)=row(VEC,op,,isa)"
            "-DKERN_PROBE_ROW(op,isa)=row(PROBE,op,,isa)" ${def}
    OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE " " "" text "${text}")
  string(REGEX MATCHALL "row\\([^()]*\\)" rows "${text}")
  set(${out} ${rows} PARENT_SCOPE)
endfunction()

# slm_kernel_sources(OUT): the objects of every kernel source that this architecture
# builds, one library slmkern_<level> each. <name>_simd.c is compiled for every level
# that has rows of it and no file of its own, <name>_<level>.c.
function(slm_kernel_sources out)
  set(built "/* What this build has of kernels.def: for registry.c and probe.c. */\n")
  foreach(isa IN LISTS SLM_ISA_LEVELS)
    foreach(what "" _products _floats)
      set(has ${SLM_HAS_${isa}})
      string(REPLACE _products "" off ${isa}${what})
      if(NOT what STREQUAL "" AND off IN_LIST SLM_LEVELS_OFF)
        set(has 0)
      endif()
      set(has_${isa}${what} ${has})
      if(NOT what STREQUAL _products)
        string(APPEND built "#define SLM_HAS_${isa}${what} ${has}\n")
      endif()
    endforeach()
  endforeach()
  slm_kernel_rows(rows)
  foreach(row IN LISTS rows)
    if(NOT row MATCHES "^row\\(([A-Z]+),([a-z0-9_]+),([A-Za-z0-9_]*),([a-z0-9_]+)\\)$")
      message(FATAL_ERROR "kernels.def: cannot read this row: ${row}")
    endif()
    set(kind ${CMAKE_MATCH_1})
    set(op ${CMAKE_MATCH_2})
    set(of ${CMAKE_MATCH_3})
    set(isa ${CMAKE_MATCH_4})
    if(NOT isa IN_LIST SLM_ISA_LEVELS)
      message(FATAL_ERROR "kernels.def: unknown ISA level ${isa} in: ${row}")
    endif()
    set(has ${has_${isa}})
    set(suffixes ${isa} simd)
    if(kind MATCHES "WEIGHT|FLOAT")
      set(stem kernels/${of}/${of})
      if(op MATCHES "quantize")
        set(suffixes quantize ${isa} simd)
        set_source_files_properties(${stem}_quantize.c PROPERTIES COMPILE_OPTIONS
                                    "${SLM_QUANTIZE_FLAGS}")
      endif()
      if(kind STREQUAL WEIGHT)
        set(has ${has_${isa}_products})
        if(SLM_ROWS_OFF AND "${isa}/${of}" MATCHES "^(${SLM_ROWS_OFF})$")
          set(has 0)
        endif()
        if(NOT DEFINED has_${isa}_${of})
          set(has_${isa}_${of} ${has})
          string(APPEND built "#define SLM_HAS_${isa}_${of} ${has}\n")
        endif()
      else()
        set(has ${has_${isa}_floats})
      endif()
    elseif(kind STREQUAL ACT)
      set(stem kernels/activations/${of})
    elseif(kind STREQUAL KV)
      set(stem kernels/vecops/attention)
      set(suffixes ${of}_${isa} ${isa} simd)
      if(op STREQUAL to_kv)
        set(stem kernels/vecops/to_kv)
      elseif(op STREQUAL attn_mix_keys)
        set(stem kernels/vecops/mix_keys)
      elseif(NOT of MATCHES "^b?f16$")
        set(stem kernels/vecops/attention_quants)
      endif()
    elseif(kind STREQUAL VEC)
      set(stem kernels/vecops/vecops)
      if(op MATCHES "conv")
        set(stem kernels/vecops/conv)
      elseif(op STREQUAL delta_rule)
        set(stem kernels/vecops/delta)
      elseif(op STREQUAL ssm_scan)
        set(stem kernels/vecops/ssm)
      endif()
      if(has AND NOT isa STREQUAL scalar)
        list(APPEND sources_${isa} ${stem}_simd.c)
      endif()
    else()
      set(stem kernels/probe/probe)
    endif()
    set(file)
    foreach(suffix IN LISTS suffixes)
      if(NOT file AND EXISTS ${CMAKE_SOURCE_DIR}/${stem}_${suffix}.c)
        set(file ${stem}_${suffix}.c)
      endif()
    endforeach()
    if(NOT file)
      list(GET suffixes 0 suffix)
      message(FATAL_ERROR "kernels.def has a row without a file: ${row} needs ${stem}_${suffix}.c")
    endif()
    if(has)
      list(APPEND sources_${isa} ${file})
    endif()
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/kernels_built.h CONTENT "${built}" @ONLY)
  if(SLM_SANITIZE)
    set_property(SOURCE kernels/f32/f32_simd.c kernels/f16/f16_simd.c
                        kernels/bf16/bf16_simd.c kernels/vecops/attention_simd.c
                        kernels/vecops/attention_quants_simd.c
                        kernels/codebook/search_points.c
                 APPEND PROPERTY COMPILE_OPTIONS -O2)
    # With checks between them, GCC takes most of a minute at -O1 to give out registers
    # to the tiles of these.
    set_property(SOURCE kernels/vecops/attention_avx512bf16.c
                        kernels/vecops/attention_quants_avx512vnni.c
                 APPEND PROPERTY COMPILE_OPTIONS -O2)
  endif()
  # Reading immintrin.h takes GCC more time than compiling many of these files. ccache does
  # not store what a precompiled header went into.
  get_filename_component(compiler ${CMAKE_C_COMPILER} REALPATH)
  set(precompile 0)
  if(SLM_ARCH STREQUAL x86 AND CMAKE_C_COMPILER_ID STREQUAL GNU AND
     NOT "${compiler} ${CMAKE_C_COMPILER_LAUNCHER}" MATCHES ccache)
    set(precompile 1)
  endif()
  foreach(isa IN LISTS SLM_ISA_LEVELS)
    if(DEFINED sources_${isa})
      list(REMOVE_DUPLICATES sources_${isa})
      add_library(slmkern_${isa} OBJECT ${sources_${isa}})
      if(precompile AND NOT isa STREQUAL scalar)
        target_precompile_headers(slmkern_${isa} PRIVATE <immintrin.h>)
      endif()
      target_compile_options(slmkern_${isa} PRIVATE ${SLM_ISA_FLAGS_${isa}})
      # The frames are handed to each other as constant function pointers; without
      # optimisation they would not be inlined, which they must.
      target_compile_options(slmkern_${isa} PRIVATE
                             $<$<CONFIG:Debug>:-O1 -findirect-inlining>
                             $<$<CONFIG:Release>:-O3>)
      # Under sanitizers, what quantises takes much of the tests' time; the vector
      # frames would take more to optimise than that saves. Their sums and words lie in
      # structs, which watched stacks would keep out of registers; and with a check at
      # each access, giving out registers loop by loop takes a third of GCC's time. What
      # loops set that are not unrolled then, GCC takes for never set.
      if(SLM_SANITIZE AND isa STREQUAL scalar)
        target_compile_options(slmkern_${isa} PRIVATE -O2)
      elseif(SLM_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(slmkern_${isa} PRIVATE --param=asan-stack=0 -fira-region=one
                               -Wno-maybe-uninitialized)
      endif()
      # Frames of AVX-512-VNNI are long and all but free of branches: looking for jumps to
      # thread, for ranges of values, and for every earlier store that a load could
      # alias, is three quarters of GCC's time and finds nothing.
      if(isa MATCHES "^(avx512v|amx)" AND CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(slmkern_${isa} PRIVATE -fno-thread-jumps -fno-tree-vrp
                               --param=sccvn-max-alias-queries-per-access=50)
        # Carrying operands forward finds something in the frames of vnni, nothing in these.
        if(isa STREQUAL avx512vbmi)
          target_compile_options(slmkern_${isa} PRIVATE -fno-tree-forwprop)
        endif()
      endif()
      # clang gives up unrolling a loop beyond 16,384 of its units, whatever the pragma is;
      # a super-block's steps with what they prefetch are more.
      if(CMAKE_C_COMPILER_ID STREQUAL Clang)
        target_compile_options(slmkern_${isa}
                               PRIVATE "SHELL:-mllvm -pragma-unroll-threshold=200000")
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
