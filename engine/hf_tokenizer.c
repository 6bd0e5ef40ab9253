#include "engine/hf_impl.h"
enum status hf_tokenizer_put(struct gguf_kvs *k, const char *dir, int64_t n_vocab,
                             struct err *err)
{
    (void)k;
    (void)dir;
    (void)n_vocab;
    (void)err;
    return ST_OK;
}
