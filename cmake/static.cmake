# static.cmake - one program that needs nothing of the machine but its kernel
#
# With SLM_STATIC, PkgConfig::<NAME> stands for the archives (.a) of a library and of
# what that asks for in turn, where they are known to be needed, and the program is
# linked as -static-pie. What is missing stops the configuration, all of it at once.
#
# Not inside: libudev, of which there is no archive, and which hwloc asks for the
# serial numbers of disks; and dlopen(), which a program without shared libraries could
# only use with the very glibc that it was built with: harness/cmd/static.c answers in
# their place. Nor GnuTLS, which libmicrohttpd has for servers that speak TLS, and `bench
# serve` is none (the same file); nor libcurl, as Debian has no archives of what
# that asks for: `bench load` says that it is not there. Kernel micro-benchmarks
# (bench_kernels) are a program of their own, for which Debian has no archive of
# google-benchmark: `bench kernels` says that it is not there.
#
# The same sources, libraries and compiler give the same bytes in any folder: no path of the
# source or build tree is in the program, which so has no build tree either
# (ci/package/build --twice compares). The linker strips it: its build ID is a hash of what
# it writes, which would otherwise include debugging information that nobody gets.

include(CheckCSourceCompiles)

set(SLM_STATIC_MISSING)

# slm_static_library(NAME PACKAGE library...): PkgConfig::NAME from archives, which
# Debian's PACKAGE (more than one: separated by commas) holds.
macro(slm_static_library name package)
  set(archives)
  foreach(library ${ARGN})
    find_library(SLM_STATIC_${library} NAMES lib${library}.a
                 HINTS ${${name}_STATIC_LIBRARY_DIRS})
    if(SLM_STATIC_${library})
      list(APPEND archives ${SLM_STATIC_${library}})
    else()
      list(APPEND SLM_STATIC_MISSING "lib${library}.a (${package})")
    endif()
  endforeach()
  set_target_properties(PkgConfig::${name} PROPERTIES
                        INTERFACE_LINK_LIBRARIES "${archives}" INTERFACE_LINK_OPTIONS "")
endmacro()

# slm_static_link(): archives in place of shared libraries; stops where one is missing.
macro(slm_static_link)
  slm_static_library(HWLOC libhwloc-dev hwloc)
  slm_static_library(JANSSON libjansson-dev jansson)
  slm_static_library(CYAML libcyaml-dev,libyaml-dev cyaml yaml)
  slm_static_library(URING liburing-dev uring)
  slm_static_library(SECCOMP libseccomp-dev seccomp)
  slm_static_library(SQLITE libsqlite3-dev sqlite3)
  slm_static_library(XXHASH libxxhash-dev xxhash)
  slm_static_library(EDIT libedit-dev,libbsd-dev,libmd-dev,libncurses-dev edit bsd md tinfo)
  slm_static_library(MICROHTTPD libmicrohttpd-dev microhttpd)
  slm_static_library(PCRE2 libpcre2-dev pcre2-8)
  if(CPUID_FOUND)
    slm_static_library(CPUID libcpuid-dev cpuid)
  endif()
  if(SLM_STATIC_MISSING)
    list(JOIN SLM_STATIC_MISSING "\n  " missing)
    message(FATAL_ERROR "SLM_STATIC needs the archives of all libraries; missing, each with "
                        "Debian's package:\n  ${missing}\n"
                        "`ci/setup packaging` installs them on Debian and Ubuntu.")
  endif()
  check_c_source_compiles("#ifndef __PIE__\n#error no\n#endif\nint main(void) { return 0; }"
                          SLM_PIE_BY_DEFAULT)
  if(NOT SLM_PIE_BY_DEFAULT)
    add_compile_options(-fPIE)
  endif()
  add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
  add_link_options(-static-pie -s -Wl,--wrap=dlopen)
endmacro()
