# page_files.cmake - page.css and page.js as C, with their SHA-256
#
# cmake -DDIR=harness/show/page -DOUT=page_files.c -P page_files.cmake
set(text "/* made of page.css and page.js by page_files.cmake */\n")
string(APPEND text "#include \"harness/show/page/page_files.h\"\n")
foreach(name IN ITEMS css js)
  file(READ ${DIR}/page.${name} bytes HEX)
  file(SHA256 ${DIR}/page.${name} hash)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hash "${hash}")
  string(APPEND text "static const unsigned char ${name}_text[] = {${bytes}};\n"
         "const struct page_file page_${name} = {${name}_text, sizeof ${name}_text, "
         "{${hash}}};\n")
endforeach()
file(WRITE ${OUT} "${text}")
