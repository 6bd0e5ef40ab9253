/* SPDX-License-Identifier: MIT
 *
 * reply_messages.c - answers in the words of Anthropic's Messages API
 *
 * Tokens from kept prompts are no part of input_tokens. Their number is known when the
 * answer ends, so a stream begins with all of the prompt's.
 */
#include "harness/serve/api/reply_form.h"

#define HEAD "'id':'$id','type':'message','role':'assistant','model':$model,"

#define ENDING                                                        \
    "'usage':{'input_tokens':$fresh,'cache_creation_input_tokens':0," \
    "'cache_read_input_tokens':$cached,'output_tokens':$output}$timings"

const struct reply_form reply_messages = {
    .prefix = "msg",
    .whole = "{" HEAD "'content':[$blocks],'stop_reason':'$reason',"
             "'stop_sequence':$stop," ENDING "}\n",
    .members = "",
    .begin = "message_start 'message':{" HEAD "'content':[],'stop_reason':null,"
             "'stop_sequence':null,'usage':{'input_tokens':$prompt,"
             "'cache_creation_input_tokens':0,'cache_read_input_tokens':0,"
             "'output_tokens':0}}",
    .end =
        "message_delta 'delta':{'stop_reason':'$reason','stop_sequence':$stop}," ENDING
        "\nmessage_stop",
    .fail = "error 'error':{'type':'$type','message':$message}",
    .block =
        {
            [REPLY_THOUGHT] =
                {
                    .whole = "{'type':'thinking','thinking':$text,'signature':''}",
                    .open = "content_block_start 'index':$n,'content_block':$block",
                    .delta = "content_block_delta 'index':$n,'delta':"
                             "{'type':'thinking_delta','thinking':$text}",
                    .close = "content_block_stop 'index':$n",
                },
            [REPLY_TEXT] =
                {
                    .whole = "{'type':'text','text':$text}",
                    .open = "content_block_start 'index':$n,'content_block':$block",
                    .delta = "content_block_delta 'index':$n,'delta':"
                             "{'type':'text_delta','text':$text}",
                    .close = "content_block_stop 'index':$n",
                },
            [REPLY_CALL] =
                {
                    .whole = "{'type':'tool_use','id':'$call','name':$name,"
                             "'input':$object}",
                    .open = "content_block_start 'index':$n,'content_block':$block",
                    .delta = "content_block_delta 'index':$n,'delta':"
                             "{'type':'input_json_delta','partial_json':$text}",
                    .close = "content_block_stop 'index':$n",
                },
        },
    .reason = {[REPLY_TURN] = "end_turn",
               [REPLY_CALLS] = "tool_use",
               [REPLY_STOP] = "stop_sequence",
               [REPLY_LENGTH] = "max_tokens"},
};
