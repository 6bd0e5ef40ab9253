/* SPDX-License-Identifier: MIT
 *
 * reply_responses.c - answers in the words of OpenAI's Responses API
 *
 * The end of each item of a stream, and of the stream, repeats its text.
 */
#include "harness/serve/api/reply_form.h"

#define HEAD                                                                    \
    "{'id':'$id','object':'response','created_at':$created,'status':'$status'," \
    "'model':$model$echo,"

#define WHOLE                                                                       \
    HEAD "'output':[$blocks],'incomplete_details':$reason,'usage':{"                \
         "'input_tokens':$prompt,'input_tokens_details':{'cached_tokens':$cached}," \
         "'output_tokens':$output,'output_tokens_details':{"                        \
         "'reasoning_tokens':$thought},'total_tokens':$total}$timings}"

#define BEGUN HEAD "'output':[],'incomplete_details':null,'usage':null}"

/* Where in the output. */
#define ITEM  "'item_id':'$item','output_index':$n,"
#define PLACE ITEM "'content_index':0,"

const struct reply_form reply_responses = {
    .prefix = "resp",
    .whole = WHOLE "\n",
    .members = ",'sequence_number':$event",
    .begin =
        "response.created 'response':" BEGUN "\nresponse.in_progress 'response':" BEGUN,
    .end = "response.$status 'response':" WHOLE,
    .fail = "error 'code':'$code','param':null,'message':$message",
    .fails_begun = true,
    .repeats = true,
    .block =
        {
            [REPLY_THOUGHT] =
                {
                    .item = "rs_$id_$n",
                    .part = "{'type':'reasoning_text','text':$text}",
                    .whole = "{'id':'$item','status':'$status','type':'reasoning',"
                             "'summary':[],'content':[$part]}",
                    .open = "response.output_item.added 'output_index':$n,'item':{"
                            "'id':'$item','status':'$status','type':'reasoning',"
                            "'summary':[],'content':[]}\n"
                            "response.content_part.added " PLACE "'part':$part",
                    .delta = "response.reasoning_text.delta " PLACE "'delta':$text",
                    .close = "response.reasoning_text.done " PLACE "'text':$text\n"
                             "response.content_part.done " PLACE "'part':$part\n"
                             "response.output_item.done 'output_index':$n,"
                             "'item':$block",
                },
            [REPLY_TEXT] =
                {
                    .item = "msg_$id_$n",
                    .part = "{'type':'output_text','annotations':[],'logprobs':[],"
                            "'text':$text}",
                    .whole = "{'id':'$item','status':'$status','type':'message',"
                             "'role':'assistant','content':[$part]}",
                    .open = "response.output_item.added 'output_index':$n,'item':{"
                            "'id':'$item','status':'$status','type':'message',"
                            "'role':'assistant','content':[]}\n"
                            "response.content_part.added " PLACE "'part':$part",
                    .delta = "response.output_text.delta " PLACE
                             "'logprobs':[],'delta':$text",
                    .close = "response.output_text.done " PLACE
                             "'logprobs':[],'text':$text\n"
                             "response.content_part.done " PLACE "'part':$part\n"
                             "response.output_item.done 'output_index':$n,"
                             "'item':$block",
                },
            [REPLY_CALL] =
                {
                    .item = "fc_$id_$n",
                    .whole = "{'id':'$item','status':'$status','type':'function_call',"
                             "'call_id':'$call','name':$name,'arguments':$text}",
                    .open = "response.output_item.added 'output_index':$n,"
                            "'item':$block",
                    .delta =
                        "response.function_call_arguments.delta " ITEM "'delta':$text",
                    .close = "response.function_call_arguments.done " ITEM
                             "'arguments':$text\n"
                             "response.output_item.done 'output_index':$n,"
                             "'item':$block",
                },
        },
    .reason = {[REPLY_TURN] = "null",
               [REPLY_CALLS] = "null",
               [REPLY_STOP] = "null",
               [REPLY_LENGTH] = "{'reason':'max_output_tokens'}"},
};
