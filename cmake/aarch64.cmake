# aarch64.cmake - toolchain file: 64-bit Arm from another machine
#
# Debian's cross compiler, the libraries of ci/aarch64-sysroot, and qemu-user to run
# the tests. The CPU that qemu plays has every extension it knows, I8MM among them;
# the environment variable QEMU_CPU names another (neoverse-n1: dot product without
# I8MM; cortex-a72: neither).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)

set(SLM_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-sysroot
    CACHE PATH "Where ci/aarch64-sysroot unpacked the libraries")
get_filename_component(sysroot ${SLM_SYSROOT} ABSOLUTE)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SLM_SYSROOT)

# pkg-config's files name /usr; they and nothing of this machine's are looked at.
set(ENV{PKG_CONFIG_LIBDIR} ${sysroot}/usr/lib/aarch64-linux-gnu/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${sysroot})
set(CMAKE_FIND_ROOT_PATH ${sysroot} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_C_FLAGS_INIT "-isystem ${sysroot}/usr/include/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${sysroot}/usr/lib/aarch64-linux-gnu")

set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-aarch64;-L;/usr/aarch64-linux-gnu;-E;LD_LIBRARY_PATH=${sysroot}/usr/lib/aarch64-linux-gnu)
