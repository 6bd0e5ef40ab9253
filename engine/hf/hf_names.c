/* SPDX-License-Identifier: MIT
 *
 * hf_names.c - GGUF names of the tensors of a folder
 */
#include "engine/hf/hf_impl.h"

#define L "model.layers.#."
#define B "blk.#."
#define X "mlp.experts."

/* Most models; lists with exceptions are searched before this one. */
const struct hf_name hf_names_common[] = {
    {"model.embed_tokens.weight", "token_embd.weight", HF_AS_IS},
    {"model.norm.weight", "output_norm.weight", HF_AS_IS},
    {"model.norm.bias", "output_norm.bias", HF_AS_IS},
    {"lm_head.weight", "output.weight", HF_AS_IS},
    {"lm_head.bias", "output.bias", HF_AS_IS},
    {L "input_layernorm.weight", B "attn_norm.weight", HF_AS_IS},
    {L "input_layernorm.bias", B "attn_norm.bias", HF_AS_IS},
    {L "self_attn.q_proj.weight", B "attn_q.weight", HF_AS_IS},
    {L "self_attn.q_proj.bias", B "attn_q.bias", HF_AS_IS},
    {L "self_attn.k_proj.weight", B "attn_k.weight", HF_AS_IS},
    {L "self_attn.k_proj.bias", B "attn_k.bias", HF_AS_IS},
    {L "self_attn.v_proj.weight", B "attn_v.weight", HF_AS_IS},
    {L "self_attn.v_proj.bias", B "attn_v.bias", HF_AS_IS},
    {L "self_attn.o_proj.weight", B "attn_output.weight", HF_AS_IS},
    {L "self_attn.o_proj.bias", B "attn_output.bias", HF_AS_IS},
    {L "self_attn.q_norm.weight", B "attn_q_norm.weight", HF_AS_IS},
    {L "self_attn.k_norm.weight", B "attn_k_norm.weight", HF_AS_IS},
    {L "post_attention_layernorm.weight", B "ffn_norm.weight", HF_AS_IS},
    {L "post_attention_layernorm.bias", B "ffn_norm.bias", HF_AS_IS},
    {L "mlp.gate_proj.weight", B "ffn_gate.weight", HF_AS_IS},
    {L "mlp.up_proj.weight", B "ffn_up.weight", HF_AS_IS},
    {L "mlp.down_proj.weight", B "ffn_down.weight", HF_AS_IS},
    /* Every reader computes it from rope_theta. */
    {L "self_attn.rotary_emb.inv_freq", NULL, HF_SKIP},
    {"model.rotary_emb.inv_freq", NULL, HF_SKIP},
    /* The vision part of multimodal models. */
    {"vision_tower.*", NULL, HF_SKIP},
    {"model.vision_tower.*", NULL, HF_SKIP},
    {"multi_modal_projector.*", NULL, HF_SKIP},
    {"model.multi_modal_projector.*", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

/* Llama's GGUF files rotate neighbouring pairs, its folders rotate halves. */
const struct hf_name hf_names_llama[] = {
    {L "self_attn.q_proj.weight", B "attn_q.weight", HF_ROPE_Q},
    {L "self_attn.q_proj.bias", B "attn_q.bias", HF_ROPE_Q},
    {L "self_attn.k_proj.weight", B "attn_k.weight", HF_ROPE_K},
    {L "self_attn.k_proj.bias", B "attn_k.bias", HF_ROPE_K},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_mixtral[] = {
    {L "block_sparse_moe.gate.weight", B "ffn_gate_inp.weight", HF_AS_IS},
    {L "block_sparse_moe.experts.@.w1.weight", B "ffn_gate_exps.weight", HF_STACK},
    {L "block_sparse_moe.experts.@.w2.weight", B "ffn_down_exps.weight", HF_STACK},
    {L "block_sparse_moe.experts.@.w3.weight", B "ffn_up_exps.weight", HF_STACK},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_moe[] = {
    {L "mlp.gate.weight", B "ffn_gate_inp.weight", HF_AS_IS},
    {L "mlp.experts.@.gate_proj.weight", B "ffn_gate_exps.weight", HF_STACK},
    {L "mlp.experts.@.up_proj.weight", B "ffn_up_exps.weight", HF_STACK},
    {L "mlp.experts.@.down_proj.weight", B "ffn_down_exps.weight", HF_STACK},
    {L "mlp.shared_expert_gate.weight", B "ffn_gate_inp_shexp.weight", HF_FLAT},
    {L "mlp.shared_expert.gate_proj.weight", B "ffn_gate_shexp.weight", HF_AS_IS},
    {L "mlp.shared_expert.up_proj.weight", B "ffn_up_shexp.weight", HF_AS_IS},
    {L "mlp.shared_expert.down_proj.weight", B "ffn_down_shexp.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* Attention layers have qwen3's names. */
const struct hf_name hf_names_qwen35[] = {
    {"model.norm.weight", "output_norm.weight", HF_PLUS_1},
    {L "input_layernorm.weight", B "attn_norm.weight", HF_PLUS_1},
    {L "post_attention_layernorm.weight", B "post_attention_norm.weight", HF_PLUS_1},
    {L "self_attn.q_norm.weight", B "attn_q_norm.weight", HF_PLUS_1},
    {L "self_attn.k_norm.weight", B "attn_k_norm.weight", HF_PLUS_1},
    {L "linear_attn.in_proj_qkv.weight", B "attn_qkv.weight", HF_VALUES},
    {L "linear_attn.in_proj_z.weight", B "attn_gate.weight", HF_VALUES},
    {L "linear_attn.in_proj_b.weight", B "ssm_beta.weight", HF_VALUES},
    {L "linear_attn.in_proj_a.weight", B "ssm_alpha.weight", HF_VALUES},
    {L "linear_attn.conv1d.weight", B "ssm_conv1d.weight", HF_VALUES},
    {L "linear_attn.dt_bias", B "ssm_dt.bias", HF_VALUES},
    {L "linear_attn.A_log", B "ssm_a", HF_DECAY},
    {L "linear_attn.norm.weight", B "ssm_norm.weight", HF_AS_IS},
    {L "linear_attn.out_proj.weight", B "ssm_out.weight", HF_VALUE_COLUMNS},
    {"model.visual.*", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

/* The experts of a layer in two tensors: down, and gate with up. */
const struct hf_name hf_names_qwen35moe[] = {
    {L "mlp.experts.gate_up_proj", B "ffn_gate_exps.weight", HF_FIRST_HALF},
    {L "mlp.experts.gate_up_proj", B "ffn_up_exps.weight", HF_SECOND_HALF},
    {L "mlp.experts.down_proj", B "ffn_down_exps.weight", HF_SLICES},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_gemma[] = {
    {"model.norm.weight", "output_norm.weight", HF_PLUS_1},
    {L "input_layernorm.weight", B "attn_norm.weight", HF_PLUS_1},
    {L "post_attention_layernorm.weight", B "post_attention_norm.weight", HF_PLUS_1},
    {L "pre_feedforward_layernorm.weight", B "ffn_norm.weight", HF_PLUS_1},
    {L "post_feedforward_layernorm.weight", B "post_ffw_norm.weight", HF_PLUS_1},
    {L "self_attn.q_norm.weight", B "attn_q_norm.weight", HF_PLUS_1},
    {L "self_attn.k_norm.weight", B "attn_k_norm.weight", HF_PLUS_1},
    {NULL, NULL, HF_SKIP},
};

/* Gemma 3n and 4. */
const struct hf_name hf_names_per_layer[] = {
    {"model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight", HF_AS_IS},
    {"model.per_layer_model_projection.weight", "per_layer_model_proj.weight",
     HF_AS_IS},
    {"model.per_layer_projection_norm.weight", "per_layer_proj_norm.weight", HF_AS_IS},
    {"model.altup_projections.@.weight", "altup_proj.weight", HF_STACK},
    {"model.altup_unembed_projections.@.weight", "altup_unembd_proj.weight", HF_STACK},
    {L "post_attention_layernorm.weight", B "post_attention_norm.weight", HF_AS_IS},
    {L "pre_feedforward_layernorm.weight", B "ffn_norm.weight", HF_AS_IS},
    {L "post_feedforward_layernorm.weight", B "post_ffw_norm.weight", HF_AS_IS},
    {L "post_feedforward_layernorm_1.weight", B "post_ffw_norm_1.weight", HF_AS_IS},
    {L "pre_feedforward_layernorm_2.weight", B "pre_ffw_norm_2.weight", HF_AS_IS},
    {L "post_feedforward_layernorm_2.weight", B "post_ffw_norm_2.weight", HF_AS_IS},
    {L "per_layer_input_gate.weight", B "inp_gate.weight", HF_AS_IS},
    {L "per_layer_projection.weight", B "proj.weight", HF_AS_IS},
    {L "post_per_layer_input_norm.weight", B "post_norm.weight", HF_AS_IS},
    {L "layer_scalar", B "layer_output_scale.weight", HF_AS_IS},
    {L "router.proj.weight", B "ffn_gate_inp.weight", HF_AS_IS},
    {L "router.scale", B "ffn_gate_inp.scale", HF_AS_IS},
    {L "router.per_expert_scale", B "ffn_down_exps.scale", HF_AS_IS},
    {L "experts.gate_up_proj", B "ffn_gate_up_exps.weight", HF_SLICES},
    {L "experts.down_proj", B "ffn_down_exps.weight", HF_SLICES},
    {L "altup.correct_output_scale", B "altup_correct_scale.weight", HF_AS_IS},
    {L "altup.correction_coefs.weight", B "altup_correct_coef.weight", HF_AS_IS},
    {L "altup.prediction_coefs.weight", B "altup_predict_coef.weight", HF_AS_IS},
    {L "altup.modality_router.weight", B "altup_router.weight", HF_AS_IS},
    {L "altup.router_norm.weight", B "altup_router_norm.weight", HF_AS_IS},
    {L "laurel.linear_left.weight", B "laurel_l.weight", HF_AS_IS},
    {L "laurel.linear_right.weight", B "laurel_r.weight", HF_AS_IS},
    {L "laurel.post_laurel_norm.weight", B "laurel_post_norm.weight", HF_AS_IS},
    /* The parts for sound, and what brings images and sound into the stream. */
    {"model.audio_tower.*", NULL, HF_SKIP},
    {"model.embed_audio.*", NULL, HF_SKIP},
    {"model.embed_vision.*", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_phi2[] = {
    {"model.final_layernorm.weight", "output_norm.weight", HF_AS_IS},
    {"model.final_layernorm.bias", "output_norm.bias", HF_AS_IS},
    {L "self_attn.dense.weight", B "attn_output.weight", HF_AS_IS},
    {L "self_attn.dense.bias", B "attn_output.bias", HF_AS_IS},
    {L "mlp.fc1.weight", B "ffn_up.weight", HF_AS_IS},
    {L "mlp.fc1.bias", B "ffn_up.bias", HF_AS_IS},
    {L "mlp.fc2.weight", B "ffn_down.weight", HF_AS_IS},
    {L "mlp.fc2.bias", B "ffn_down.bias", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* Phi-3 and GLM-4: fused matrices of the folder stay fused. */
const struct hf_name hf_names_fused[] = {
    {L "self_attn.qkv_proj.weight", B "attn_qkv.weight", HF_AS_IS},
    {L "mlp.gate_up_proj.weight", B "ffn_up.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_stablelm[] = {
    {L "self_attn.q_layernorm.norms.@.weight", B "attn_q_norm.weight", HF_STACK},
    {L "self_attn.k_layernorm.norms.@.weight", B "attn_k_norm.weight", HF_STACK},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_glm4[] = {
    {L "post_self_attn_layernorm.weight", B "post_attention_norm.weight", HF_AS_IS},
    {L "post_mlp_layernorm.weight", B "post_ffw_norm.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_lfm2[] = {
    {"model.embedding_norm.weight", "token_embd_norm.weight", HF_AS_IS},
    {L "operator_norm.weight", B "attn_norm.weight", HF_AS_IS},
    {L "ffn_norm.weight", B "ffn_norm.weight", HF_AS_IS},
    {L "self_attn.out_proj.weight", B "attn_output.weight", HF_AS_IS},
    {L "self_attn.q_layernorm.weight", B "attn_q_norm.weight", HF_AS_IS},
    {L "self_attn.k_layernorm.weight", B "attn_k_norm.weight", HF_AS_IS},
    {L "conv.in_proj.weight", B "shortconv.in_proj.weight", HF_AS_IS},
    {L "conv.conv.weight", B "shortconv.conv.weight", HF_CHANNELS},
    {L "conv.out_proj.weight", B "shortconv.out_proj.weight", HF_AS_IS},
    {L "feed_forward.w1.weight", B "ffn_gate.weight", HF_AS_IS},
    {L "feed_forward.w2.weight", B "ffn_down.weight", HF_AS_IS},
    {L "feed_forward.w3.weight", B "ffn_up.weight", HF_AS_IS},
    {L "feed_forward.gate.weight", B "ffn_gate_inp.weight", HF_AS_IS},
    {L "feed_forward.expert_bias", B "exp_probs_b.bias", HF_AS_IS},
    {L "feed_forward.experts.@.w1.weight", B "ffn_gate_exps.weight", HF_STACK},
    {L "feed_forward.experts.@.w2.weight", B "ffn_down_exps.weight", HF_STACK},
    {L "feed_forward.experts.@.w3.weight", B "ffn_up_exps.weight", HF_STACK},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_mamba[] = {
    {L "mamba.in_proj.weight", B "ssm_in.weight", HF_AS_IS},
    {L "mamba.conv1d.weight", B "ssm_conv1d.weight", HF_CHANNELS},
    {L "mamba.conv1d.bias", B "ssm_conv1d.bias", HF_AS_IS},
    {L "mamba.dt_bias", B "ssm_dt.bias", HF_AS_IS},
    {L "mamba.A_log", B "ssm_a", HF_COLUMN_DECAY},
    {L "mamba.D", B "ssm_d", HF_COLUMN},
    {L "mamba.norm.weight", B "ssm_norm.weight", HF_AS_IS},
    {L "mamba.out_proj.weight", B "ssm_out.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* The part that all tokens take is a dense model's whole feed-forward part. */
const struct hf_name hf_names_granite_dense[] = {
    {L "shared_mlp.input_linear.weight", B "ffn_gate.weight", HF_FIRST_HALF},
    {L "shared_mlp.input_linear.weight", B "ffn_up.weight", HF_SECOND_HALF},
    {L "shared_mlp.output_linear.weight", B "ffn_down.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* Experts in two tensors, gate with up. */
const struct hf_name hf_names_granitemoe[] = {
    {L "block_sparse_moe.router.layer.weight", B "ffn_gate_inp.weight", HF_AS_IS},
    {L "block_sparse_moe.input_linear.weight", B "ffn_gate_exps.weight", HF_FIRST_HALF},
    {L "block_sparse_moe.input_linear.weight", B "ffn_up_exps.weight", HF_SECOND_HALF},
    {L "block_sparse_moe.output_linear.weight", B "ffn_down_exps.weight", HF_SLICES},
    {L "shared_mlp.input_linear.weight", B "ffn_gate_shexp.weight", HF_FIRST_HALF},
    {L "shared_mlp.input_linear.weight", B "ffn_up_shexp.weight", HF_SECOND_HALF},
    {L "shared_mlp.output_linear.weight", B "ffn_down_shexp.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* Several shared experts as one matrix. */
const struct hf_name hf_names_shared[] = {
    {L "mlp.shared_experts.gate_proj.weight", B "ffn_gate_shexp.weight", HF_AS_IS},
    {L "mlp.shared_experts.up_proj.weight", B "ffn_up_shexp.weight", HF_AS_IS},
    {L "mlp.shared_experts.down_proj.weight", B "ffn_down_shexp.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_ernie[] = {
    {L "mlp.moe_statics.e_score_correction_bias", B "exp_probs_b.bias", HF_FLAT},
    /* layers that predict further tokens, for which GGUF's architecture has no place */
    {"model.mtp_*", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_seed[] = {
    {L "post_attention_layernorm.weight", B "post_attention_norm.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_hunyuan[] = {
    {L "self_attn.query_layernorm.weight", B "attn_q_norm.weight", HF_AS_IS},
    {L "self_attn.key_layernorm.weight", B "attn_k_norm.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* Norms of what is added to the stream: OLMo 2, EXAONE 4. */
const struct hf_name hf_names_post[] = {
    {L "post_attention_layernorm.weight", B "post_attention_norm.weight", HF_AS_IS},
    {L "post_feedforward_layernorm.weight", B "post_ffw_norm.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_gemma1[] = {
    {"model.norm.weight", "output_norm.weight", HF_PLUS_1},
    {L "input_layernorm.weight", B "attn_norm.weight", HF_PLUS_1},
    {L "post_attention_layernorm.weight", B "ffn_norm.weight", HF_PLUS_1},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_vl[] = {
    {"visual.*", NULL, HF_SKIP},
    {"model.visual.*", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_starcoder[] = {
    {L "mlp.c_fc.weight", B "ffn_up.weight", HF_AS_IS},
    {L "mlp.c_fc.bias", B "ffn_up.bias", HF_AS_IS},
    {L "mlp.c_proj.weight", B "ffn_down.weight", HF_AS_IS},
    {L "mlp.c_proj.bias", B "ffn_down.bias", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_nemotron[] = {
    {"model.norm.weight", "output_norm.weight", HF_PLUS_1},
    {L "input_layernorm.weight", B "attn_norm.weight", HF_PLUS_1},
    {L "post_attention_layernorm.weight", B "ffn_norm.weight", HF_PLUS_1},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_bailing[] = {
    {"model.word_embeddings.weight", "token_embd.weight", HF_AS_IS},
    {L "attention.query_key_value.weight", B "attn_qkv.weight", HF_AS_IS},
    {L "attention.query_layernorm.weight", B "attn_q_norm.weight", HF_AS_IS},
    {L "attention.key_layernorm.weight", B "attn_k_norm.weight", HF_AS_IS},
    {L "attention.dense.weight", B "attn_output.weight", HF_AS_IS},
    {L "mlp.gate.expert_bias", B "exp_probs_b.bias", HF_AS_IS},
    /* the last norm of a layer that predicts further tokens */
    {L "final_layernorm.weight", B "layer_output_norm.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_smallthinker[] = {
    {L "block_sparse_moe.primary_router.weight", B "ffn_gate_inp.weight", HF_AS_IS},
    {L "block_sparse_moe.experts.@.gate.weight", B "ffn_gate_exps.weight", HF_STACK},
    {L "block_sparse_moe.experts.@.up.weight", B "ffn_up_exps.weight", HF_STACK},
    {L "block_sparse_moe.experts.@.down.weight", B "ffn_down_exps.weight", HF_STACK},
    {NULL, NULL, HF_SKIP},
};

/* Gate and up row by row, in MXFP4 or with a row for each input. */
const struct hf_name hf_names_gpt_oss[] = {
    {L "self_attn.sinks", B "attn_sinks.weight", HF_AS_IS},
    {L "post_attention_layernorm.weight", B "post_attention_norm.weight", HF_AS_IS},
    {L "mlp.router.weight", B "ffn_gate_inp.weight", HF_AS_IS},
    {L "mlp.router.bias", B "ffn_gate_inp.bias", HF_AS_IS},
    {L X "gate_up_proj_blocks", B "ffn_gate_exps.weight", HF_MX_EVEN},
    {L X "gate_up_proj_blocks", B "ffn_up_exps.weight", HF_MX_ODD},
    {L X "gate_up_proj_scales", B "ffn_gate_exps.weight", HF_MX_EVEN},
    {L X "gate_up_proj_scales", B "ffn_up_exps.weight", HF_MX_ODD},
    {L X "gate_up_proj_bias", B "ffn_gate_exps.bias", HF_EVEN},
    {L X "gate_up_proj_bias", B "ffn_up_exps.bias", HF_ODD},
    {L X "gate_up_proj", B "ffn_gate_exps.weight", HF_TRANSPOSE_EVEN},
    {L X "gate_up_proj", B "ffn_up_exps.weight", HF_TRANSPOSE_ODD},
    {L X "down_proj_blocks", B "ffn_down_exps.weight", HF_MX},
    {L X "down_proj_scales", B "ffn_down_exps.weight", HF_MX},
    {L X "down_proj_bias", B "ffn_down_exps.bias", HF_AS_IS},
    {L X "down_proj", B "ffn_down_exps.weight", HF_TRANSPOSE},
    {NULL, NULL, HF_SKIP},
};

/* act_fn's numbers become metadata (hf_put_xielu()). */
const struct hf_name hf_names_apertus[] = {
    {L "attention_layernorm.weight", B "attn_norm.weight", HF_AS_IS},
    {L "feedforward_layernorm.weight", B "ffn_norm.weight", HF_AS_IS},
    {L "mlp.act_fn.*", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_glm4_moe[] = {
    {L "post_attention_layernorm.weight", B "post_attention_norm.weight", HF_AS_IS},
    {L "mlp.gate.e_score_correction_bias", B "exp_probs_b.bias", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* Tensors of layers that predict further tokens, named as hf_nextn_name() does. */
const struct hf_name hf_names_nextn[] = {
    {L "eh_proj.weight", B "nextn.eh_proj.weight", HF_AS_IS},
    {L "enorm.weight", B "nextn.enorm.weight", HF_AS_IS},
    {L "hnorm.weight", B "nextn.hnorm.weight", HF_AS_IS},
    {L "embed_tokens.weight", B "nextn.embed_tokens.weight", HF_AS_IS},
    {L "shared_head.norm.weight", B "nextn.shared_head_norm.weight", HF_AS_IS},
    {L "shared_head.head.weight", B "nextn.shared_head_head.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* Qwen's norms add 1. */
const struct hf_name hf_names_nextn_plus_1[] = {
    {L "eh_proj.weight", B "nextn.eh_proj.weight", HF_AS_IS},
    {L "enorm.weight", B "nextn.enorm.weight", HF_PLUS_1},
    {L "hnorm.weight", B "nextn.hnorm.weight", HF_PLUS_1},
    {L "shared_head.norm.weight", B "nextn.shared_head_norm.weight", HF_PLUS_1},
    {NULL, NULL, HF_SKIP},
};

#define G "h.#."

/* Prefixed by "transformer." or not (without_prefix()). */
const struct hf_name hf_names_gpt2[] = {
    {"wte.weight", "token_embd.weight", HF_AS_IS},
    {"wpe.weight", "position_embd.weight", HF_AS_IS},
    {"ln_f.weight", "output_norm.weight", HF_AS_IS},
    {"ln_f.bias", "output_norm.bias", HF_AS_IS},
    {"lm_head.weight", "output.weight", HF_AS_IS},
    {G "ln_1.weight", B "attn_norm.weight", HF_AS_IS},
    {G "ln_1.bias", B "attn_norm.bias", HF_AS_IS},
    {G "attn.c_attn.weight", B "attn_qkv.weight", HF_TRANSPOSE},
    {G "attn.c_attn.bias", B "attn_qkv.bias", HF_AS_IS},
    {G "attn.c_proj.weight", B "attn_output.weight", HF_TRANSPOSE},
    {G "attn.c_proj.bias", B "attn_output.bias", HF_AS_IS},
    {G "ln_2.weight", B "ffn_norm.weight", HF_AS_IS},
    {G "ln_2.bias", B "ffn_norm.bias", HF_AS_IS},
    {G "mlp.c_fc.weight", B "ffn_up.weight", HF_TRANSPOSE},
    {G "mlp.c_fc.bias", B "ffn_up.bias", HF_AS_IS},
    {G "mlp.c_proj.weight", B "ffn_down.weight", HF_TRANSPOSE},
    {G "mlp.c_proj.bias", B "ffn_down.bias", HF_AS_IS},
    {G "attn.bias", NULL, HF_SKIP}, /* masks */
    {G "attn.masked_bias", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

#define N "gpt_neox.layers.#."

const struct hf_name hf_names_gpt_neox[] = {
    {"gpt_neox.embed_in.weight", "token_embd.weight", HF_AS_IS},
    {"gpt_neox.final_layer_norm.weight", "output_norm.weight", HF_AS_IS},
    {"gpt_neox.final_layer_norm.bias", "output_norm.bias", HF_AS_IS},
    {"embed_out.weight", "output.weight", HF_AS_IS},
    {N "input_layernorm.weight", B "attn_norm.weight", HF_AS_IS},
    {N "input_layernorm.bias", B "attn_norm.bias", HF_AS_IS},
    {N "post_attention_layernorm.weight", B "ffn_norm.weight", HF_AS_IS},
    {N "post_attention_layernorm.bias", B "ffn_norm.bias", HF_AS_IS},
    {N "attention.query_key_value.weight", B "attn_qkv.weight", HF_QKV},
    {N "attention.query_key_value.bias", B "attn_qkv.bias", HF_QKV},
    {N "attention.dense.weight", B "attn_output.weight", HF_AS_IS},
    {N "attention.dense.bias", B "attn_output.bias", HF_AS_IS},
    {N "mlp.dense_h_to_4h.weight", B "ffn_up.weight", HF_AS_IS},
    {N "mlp.dense_h_to_4h.bias", B "ffn_up.bias", HF_AS_IS},
    {N "mlp.dense_4h_to_h.weight", B "ffn_down.weight", HF_AS_IS},
    {N "mlp.dense_4h_to_h.bias", B "ffn_down.bias", HF_AS_IS},
    {N "attention.bias", NULL, HF_SKIP}, /* masks, frequencies */
    {N "attention.masked_bias", NULL, HF_SKIP},
    {N "attention.rotary_emb.inv_freq", NULL, HF_SKIP},
    {NULL, NULL, HF_SKIP},
};

/* Prefixed by "transformer.". The 40B has a norm for each block. */
const struct hf_name hf_names_falcon[] = {
    {"word_embeddings.weight", "token_embd.weight", HF_AS_IS},
    {"ln_f.weight", "output_norm.weight", HF_AS_IS},
    {"ln_f.bias", "output_norm.bias", HF_AS_IS},
    {"lm_head.weight", "output.weight", HF_AS_IS},
    {G "input_layernorm.weight", B "attn_norm.weight", HF_AS_IS},
    {G "input_layernorm.bias", B "attn_norm.bias", HF_AS_IS},
    {G "ln_mlp.weight", B "attn_norm.weight", HF_AS_IS},
    {G "ln_mlp.bias", B "attn_norm.bias", HF_AS_IS},
    {G "ln_attn.weight", B "attn_norm_2.weight", HF_AS_IS},
    {G "ln_attn.bias", B "attn_norm_2.bias", HF_AS_IS},
    {G "self_attention.query_key_value.weight", B "attn_qkv.weight", HF_QKV},
    {G "self_attention.dense.weight", B "attn_output.weight", HF_AS_IS},
    {G "mlp.dense_h_to_4h.weight", B "ffn_up.weight", HF_AS_IS},
    {G "mlp.dense_4h_to_h.weight", B "ffn_down.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_internlm2[] = {
    {"model.tok_embeddings.weight", "token_embd.weight", HF_AS_IS},
    {"output.weight", "output.weight", HF_AS_IS},
    {L "attention_norm.weight", B "attn_norm.weight", HF_AS_IS},
    {L "ffn_norm.weight", B "ffn_norm.weight", HF_AS_IS},
    {L "attention.wqkv.weight", B "attn_q.weight", HF_GROUP_Q},
    {L "attention.wqkv.weight", B "attn_k.weight", HF_GROUP_K},
    {L "attention.wqkv.weight", B "attn_v.weight", HF_GROUP_V},
    {L "attention.wo.weight", B "attn_output.weight", HF_AS_IS},
    {L "feed_forward.w1.weight", B "ffn_gate.weight", HF_AS_IS},
    {L "feed_forward.w2.weight", B "ffn_down.weight", HF_AS_IS},
    {L "feed_forward.w3.weight", B "ffn_up.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

#define K  "backbone.layers.#."
#define KM K "mixer."

/* Mamba-2's layers, by the names of models that have little else. */
const struct hf_name hf_names_mamba2[] = {
    {"backbone.embeddings.weight", "token_embd.weight", HF_AS_IS},
    {"backbone.norm_f.weight", "output_norm.weight", HF_AS_IS},
    {"lm_head.weight", "output.weight", HF_AS_IS},
    {K "norm.weight", B "attn_norm.weight", HF_AS_IS},
    {KM "in_proj.weight", B "ssm_in.weight", HF_AS_IS},
    {KM "conv1d.weight", B "ssm_conv1d.weight", HF_CHANNELS},
    {KM "conv1d.bias", B "ssm_conv1d.bias", HF_AS_IS},
    {KM "dt_bias", B "ssm_dt.bias", HF_AS_IS},
    {KM "A_log", B "ssm_a", HF_COLUMN_DECAY},
    {KM "D", B "ssm_d", HF_COLUMN},
    {KM "norm.weight", B "ssm_norm.weight", HF_BY_GROUP},
    {KM "out_proj.weight", B "ssm_out.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_nemotron_h[] = {
    {"mtp.*", NULL, HF_SKIP}, /* as of ERNIE */
    {KM "q_proj.weight", B "attn_q.weight", HF_AS_IS},
    {KM "k_proj.weight", B "attn_k.weight", HF_AS_IS},
    {KM "v_proj.weight", B "attn_v.weight", HF_AS_IS},
    {KM "o_proj.weight", B "attn_output.weight", HF_AS_IS},
    {KM "up_proj.weight", B "ffn_up.weight", HF_AS_IS},
    {KM "down_proj.weight", B "ffn_down.weight", HF_AS_IS},
    {KM "gate.weight", B "ffn_gate_inp.weight", HF_AS_IS},
    {KM "gate.e_score_correction_bias", B "exp_probs_b.bias", HF_AS_IS},
    {KM "experts.@.up_proj.weight", B "ffn_up_exps.weight", HF_STACK},
    {KM "experts.@.down_proj.weight", B "ffn_down_exps.weight", HF_STACK},
    {KM "shared_experts.up_proj.weight", B "ffn_up_shexp.weight", HF_AS_IS},
    {KM "shared_experts.down_proj.weight", B "ffn_down_shexp.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_falcon_h1[] = {
    {"model.final_layernorm.weight", "output_norm.weight", HF_AS_IS},
    {L "pre_ff_layernorm.weight", B "ffn_norm.weight", HF_AS_IS},
    {L "feed_forward.gate_proj.weight", B "ffn_gate.weight", HF_AS_IS},
    {L "feed_forward.up_proj.weight", B "ffn_up.weight", HF_AS_IS},
    {L "feed_forward.down_proj.weight", B "ffn_down.weight", HF_AS_IS},
    {L "mamba.norm.weight", B "ssm_norm.weight", HF_BY_GROUP},
    {NULL, NULL, HF_SKIP},
};

/* Inputs of linear attention in groups; the rest is Qwen 3.5's. */
const struct hf_name hf_names_qwen3_next[] = {
    {L "linear_attn.in_proj_qkvz.weight", B "attn_qkv.weight", HF_DELTA_QKV},
    {L "linear_attn.in_proj_qkvz.weight", B "attn_gate.weight", HF_DELTA_Z},
    {L "linear_attn.in_proj_ba.weight", B "ssm_ba.weight", HF_AS_IS},
    {L "linear_attn.conv1d.weight", B "ssm_conv1d.weight", HF_CHANNELS},
    {L "linear_attn.dt_bias", B "ssm_dt.bias", HF_AS_IS},
    {L "linear_attn.A_log", B "ssm_a", HF_LOG_DECAY},
    {L "linear_attn.out_proj.weight", B "ssm_out.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

#define C "transformer.encoder.layers.#."

const struct hf_name hf_names_chatglm[] = {
    {"transformer.embedding.word_embeddings.weight", "token_embd.weight", HF_AS_IS},
    {"transformer.encoder.final_layernorm.weight", "output_norm.weight", HF_AS_IS},
    {"transformer.output_layer.weight", "output.weight", HF_AS_IS},
    {"transformer.rotary_pos_emb.inv_freq", NULL, HF_SKIP},
    {C "input_layernorm.weight", B "attn_norm.weight", HF_AS_IS},
    {C "self_attention.query_key_value.weight", B "attn_qkv.weight", HF_AS_IS},
    {C "self_attention.query_key_value.bias", B "attn_qkv.bias", HF_AS_IS},
    {C "self_attention.dense.weight", B "attn_output.weight", HF_AS_IS},
    {C "post_attention_layernorm.weight", B "ffn_norm.weight", HF_AS_IS},
    {C "mlp.dense_h_to_4h.weight", B "ffn_up.weight", HF_AS_IS},
    {C "mlp.dense_4h_to_h.weight", B "ffn_down.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};
