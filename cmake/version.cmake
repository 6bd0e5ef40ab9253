# version.cmake - write version.h, touching it only when something changed.
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=10 HEAD
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
else()
  execute_process(COMMAND git -C ${SOURCE_DIR} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE dirty ERROR_QUIET)
  if(dirty)
    string(APPEND commit "-dirty")
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT
"#define SLM_VERSION \"${VERSION}\"
#define SLM_COMMIT  \"${commit}\"
")
