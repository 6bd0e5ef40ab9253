# package.cmake - the .deb that `cpack -G DEB` makes: ci/package/build
set(CPACK_PACKAGE_NAME slmbench)
set(CPACK_PACKAGE_CONTACT "The slmbench authors <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "benchmarks of small language models on CPUs")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Measures language models of 1 to 9 billion parameters on CPUs within a memory
limit: which quantisation, how many threads and what context to deploy, how many
tokens per second to expect, and how close that is to what the hardware gives.
It has an inference engine of its own and reads GGUF files and Hugging Face
folders.")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "gnuplot-nox | gnuplot")
include(CPack)
