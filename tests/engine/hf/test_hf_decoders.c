/* SPDX-License-Identifier: MIT
 *
 * test_hf_decoders.c - decoders of a tokenizer.json: what a token becomes, and what is
 * refused
 */
#include "tests/engine/hf/hf_folder.h"

/* A vocabulary of one token, as JSON with ' for ". */
static struct tokenizer *open_decoder(const char *decoder, const char *token,
                                      struct err *err)
{
    json_t *root = json_quoted("{'model':{'type':'WordLevel','unk_token':'u','vocab':{"
                               "'u':0}}}");

    json_object_set_new(json_object_get(json_object_get(root, "model"), "vocab"), token,
                        json_integer(1));
    json_object_set_new(root, "decoder", json_quoted(decoder));
    return open_json(root, err);
}

static void tokens_become_pieces(void **state)
{
    static const char *const cases[][3] = {
        {"{'type':'Replace','pattern':{'String':'_'},'content':' '}", "a_b_", "a b "},
        {"{'type':'Replace','pattern':{'String':'ab'},'content':''}", "xabab", "x"},
        {"{'type':'BPEDecoder'}", "ab</w>", "ab "},
        {"{'type':'BPEDecoder','suffix':'@'}", "a@", "a "},
        {"{'type':'WordPiece'}", "##ab", "ab"},
        {"{'type':'WordPiece'}", "ab", " ab"},
        {"{'type':'WordPiece'}", ".", "."},
        {"{'type':'WordPiece'}", "n't", "n't"},
        {"{'type':'WordPiece'}", "do not", " don't"},
        {"{'type':'WordPiece','cleanup':false}", ".", " ."},
        {"{'type':'WordPiece','prefix':'','cleanup':false}", "##a", " ##a"},
        {"{'type':'Strip','content':'x','start':1,'stop':2}", "xxaxxx", "xax"},
        {"{'type':'Strip','content':'x','start':1,'stop':2}", "xx", ""},
        {"{'type':'Strip','content':'x','start':3,'stop':0}", "xx", ""},
        {"{'type':'Strip','content':'x','start':1,'stop':1}", "ab", "ab"},
        {"{'type':'Strip','content':'ab','start':1,'stop':1}", "aba", "a"},
        {"{'type':'Strip','content':'x'}", "xax", "xax"},
        {"{'type':'ByteFallback'}", "<0x41>", "A"},
        {"{'type':'ByteFallback'}", "<0xe9>", "\xe9"},
        {"{'type':'ByteFallback'}", "<0xG1>", "<0xG1>"},
        {"{'type':'ByteFallback'}", "<0x411", "<0x411"},
        {"{'type':'ByteFallback'}", "<1x41>", "<1x41>"},
        {"{'type':'ByteFallback'}", "<0x4>", "<0x4>"},
        {"{'type':'ByteLevel'}", "\u0120a\u00c3\u00a9", " a\xc3\xa9"},
        {"{'type':'ByteLevel'}", "\u65e5a", "\u65e5a"},
        {"{'type':'Metaspace','replacement':'_'}", "_a", " a"},
        {"{'type':'Metaspace','replacement':'_','prepend_scheme':'never'}", "_a", " a"},
        {"{'type':'Metaspace','replacement':'_','add_prefix_space':false}", "_a", " a"},
        {"{'type':'Sequence','decoders':[{'type':'ByteFallback'},{'type':'Fuse'},"
         "{'type':'Strip','content':' ','start':1,'stop':0}]}",
         " a", " a"},
        {"{'type':'Sequence','decoders':[{'type':'Fuse'},{'type':'Strip','content':"
         "'x','start':1,'stop':1}]}",
         "xax", "xax"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;
        struct tokenizer *t = open_decoder(cases[i][0], cases[i][1], &err);
        char piece[40];

        if (!t)
            fail_msg("%s: %s", cases[i][0], err.msg);
        const size_t n = tokenizer_piece(t, 1, piece, sizeof piece);

        if (n != strlen(cases[i][2]) || memcmp(piece, cases[i][2], n) != 0)
            fail_msg("%s: '%s' is '%.*s', not '%s'", cases[i][0], cases[i][1], (int)n,
                     piece, cases[i][2]);
        assert_int_equal(tokenizer_piece(t, 1, piece, 0), n);
        tokenizer_close(t);
    }
}

#define FUSE4                                                                  \
    "{'type':'ByteLevel'},{'type':'ByteLevel'},{'type':'ByteLevel'},{'type':'" \
    "ByteLevel'}"

static void refusals(void **state)
{
    static const struct {
        const char *decoder;
        enum status st;
        const char *message;
    } cases[] = {
        {"{}", ST_UNSUPPORTED, "the decoder '(none)'"},
        {"{'type':'CTC'}", ST_UNSUPPORTED, "the decoder 'CTC'"},
        {"{'type':'Sequence','decoders':[{'type':'Fuse'},1]}", ST_UNSUPPORTED,
         "the decoder '(none)'"},
        {"{'type':'Strip'}", ST_UNSUPPORTED, "the decoder 'Strip'"},
        {"{'type':'Strip','content':'x','start':-1}", ST_UNSUPPORTED, "'Strip'"},
        {"{'type':'Strip','content':'x','stop':-1}", ST_UNSUPPORTED, "'Strip'"},
        {"{'type':'Metaspace'}", ST_UNSUPPORTED, "the decoder 'Metaspace'"},
        {"{'type':'Replace'}", ST_UNSUPPORTED, "the decoder 'Replace'"},
        {"{'type':'Replace','pattern':{'Regex':'a'}}", ST_UNSUPPORTED, "'Replace'"},
        {"{'type':'Sequence','decoders':[" FUSE4 "," FUSE4 ",{'type':'ByteFallback'}]}",
         ST_UNSUPPORTED, "the decoder 'ByteFallback'"},
        {"{'type':'Sequence','decoders':[" FUSE4 "," FUSE4
         ",{'type':'Replace','pattern':{'String':'a'}}]}",
         ST_UNSUPPORTED, "the decoder 'Replace'"},
        {"{'type':'Sequence','decoders':[" FUSE4 "," FUSE4
         ",{'type':'Metaspace','replacement':'a'}]}",
         ST_UNSUPPORTED, "the decoder 'Metaspace'"},
        {"{'type':'Replace','pattern':{'String':'a'},'content':"
         "'1234567890123456789012345678901234567890123456789012345678901234567890'}",
         ST_INPUT, "makes a token many times as long"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;

        if (open_decoder(cases[i].decoder, "aaaa", &err))
            fail_msg("%s", cases[i].decoder);
        assert_refused(err.code, &err, cases[i].st, cases[i].message, cases[i].decoder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tokens_become_pieces),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
