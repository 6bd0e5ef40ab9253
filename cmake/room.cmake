# room.cmake - folders that are libraries.
#
# slm_room(NAME FOLDER [USES room...] [LIBS library...]): all C sources of FOLDER as the
# static library NAME. USES names the rooms whose headers it may include, those that
# they use come along; LIBS are libraries from outside. What a room uses and does not
# say fails twice: tests/house.py reads every #include, and check_links links each room
# whole against nothing but what it named.
set_property(GLOBAL PROPERTY SLM_ROOMS "")

function(slm_room name folder)
  cmake_parse_arguments(room "" "" "USES;LIBS;EXCEPT" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.c)
  foreach(file IN LISTS room_EXCEPT)
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/${folder}/${file})
  endforeach()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC ${room_USES} ${room_LIBS})
  set_property(GLOBAL APPEND PROPERTY SLM_ROOMS ${name})
  string(JOIN " " uses ${room_USES})
  set_property(GLOBAL APPEND_STRING PROPERTY SLM_ROOM_TABLE "${name} ${folder} ${uses}\n")
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/link.cmake)

# The table for tests/house.py, "name folder used..." a line, and the target check_links.
function(slm_rooms_check)
  get_property(rooms GLOBAL PROPERTY SLM_ROOMS)
  get_property(table GLOBAL PROPERTY SLM_ROOM_TABLE)
  file(WRITE ${CMAKE_BINARY_DIR}/generated/rooms.txt.new "${table}")
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different
                  ${CMAKE_BINARY_DIR}/generated/rooms.txt.new
                  ${CMAKE_BINARY_DIR}/generated/rooms.txt)
  file(WRITE ${CMAKE_BINARY_DIR}/generated/empty.c.new "int main(void) { return 0; }\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different
                  ${CMAKE_BINARY_DIR}/generated/empty.c.new
                  ${CMAKE_BINARY_DIR}/generated/empty.c)
  slm_test_link_options(options)
  add_library(link_empty OBJECT ${CMAKE_BINARY_DIR}/generated/empty.c)
  add_custom_target(check_links ALL)
  foreach(room IN LISTS rooms)
    add_executable(link_${room} $<TARGET_OBJECTS:link_empty>)
    set_target_properties(link_${room} PROPERTIES LINKER_LANGUAGE C
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/links)
    target_link_libraries(link_${room} PRIVATE -Wl,--whole-archive ${room}
                          -Wl,--no-whole-archive)
    target_link_options(link_${room} PRIVATE ${options})
    add_dependencies(check_links link_${room})
  endforeach()
endfunction()
