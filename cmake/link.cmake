# link.cmake - how programs that only tests run are linked
include(CheckCSourceCompiles)

# slm_test_link_options(OUT): gold is several times as fast as the linker beside it and
# part of binutils; a toolchain without it links as usual. Nobody looks for a test by the
# hash of its bytes. Sanitizers' reports need the lines that a Release build's tests do
# without, and their tables hold some 300000 addresses in each program, which are not
# relocated where it lies at a place of its own.
function(slm_test_link_options out)
  set(options -Wl,--build-id=none)
  set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=gold)
  check_c_source_compiles("int main(void) { return 0; }" SLM_HAVE_GOLD)
  if(SLM_HAVE_GOLD)
    list(APPEND options -fuse-ld=gold)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL Release)
    list(APPEND options -Wl,--strip-debug)
  endif()
  if(SLM_SANITIZE MATCHES address)
    list(APPEND options -no-pie)
  endif()
  set(${out} ${options} PARENT_SCOPE)
endfunction()
