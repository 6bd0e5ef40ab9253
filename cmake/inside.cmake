# inside.cmake - a C file that holds the files which come with the program
#
# usage: cmake -DOUT=FILE -DSOURCE_DIR=DIR "-DFILES=models=configs/models/nano.yaml;..." -P inside.cmake
# Each of FILES is kind=path, the path below SOURCE_DIR. What it defines is declared in
# harness/base/program.h.
set(arrays)
set(table)
set(n 0)
foreach(entry IN LISTS FILES)
  string(REGEX MATCH "^([^=]+)=(.+)$" entry "${entry}")
  set(kind ${CMAKE_MATCH_1})
  set(path ${CMAKE_MATCH_2})
  get_filename_component(name ${path} NAME)
  file(READ ${SOURCE_DIR}/${path} bytes HEX)
  string(LENGTH "${bytes}" len)
  math(EXPR len "${len} / 2")
  string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file_${n}[] = {\n${bytes}0};\n")
  string(APPEND table "    {\"${kind}/${name}\", file_${n}, ${len}},\n")
  math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "/* Written by cmake/inside.cmake. */
#include \"harness/base/program.h\"

${arrays}
const struct data_inside data_inside_files[] = {
${table}    {NULL, NULL, 0}};
")
