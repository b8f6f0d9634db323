//! Models with the layouts that they are trained in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::TrainingStep;
use super::model::Dtype;

/// A model with a layout. The sizes are published; how many GPUs share what is not, so the layouts are only like those in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TrainingPreset {
    /// GPT-3 13B (Brown et al., Language Models are Few-Shot Learners, arXiv:2005.14165, table 2.1: 40 layers, 40 heads of 128, a million tokens per step,
    /// 2,048 per sequence), for 128 GPUs: 8 tensor-parallel ranks, 16 data-parallel ones of 8 micro-batches of 4 sequences.
    #[serde(rename = "gpt-13b-like")]
    Gpt13b,
    /// A dense model of the sizes of Llama 2 70B (Touvron et al., arXiv:2307.09288: 80 layers, hidden 8192, 64 heads, 8 of them with keys and values, 4 million
    /// tokens per step, 4,096 per sequence), for 1,024 GPUs: 8 tensor-parallel ranks with sequence parallelism, 4 stages, 32 data-parallel ranks of
    /// 32 micro-batches of one sequence.
    #[serde(rename = "dense-70b-like")]
    Dense70b,
    /// A mixture of experts of the sizes of Mixtral 8x7B (Jiang et al., arXiv:2401.04088: 32 layers, hidden 4096, 8 experts, 2 per token), for 64 GPUs: 8
    /// expert-parallel ranks, 4 stages, 16 data-parallel ranks of 16 micro-batches of one sequence of 4,096 tokens.
    #[serde(rename = "mixtral-8x7b-like")]
    Mixtral8x7b,
}

impl TrainingPreset {
    /// The fields that it sets.
    pub(super) fn fields(self) -> TrainingStep {
        let dtype = Some(Dtype::Bf16);
        match self {
            TrainingPreset::Gpt13b => TrainingStep {
                layers: Some(40),
                hidden: Some(5120),
                heads: Some(40),
                vocabulary: Some(51_200),
                sequence: Some(2048),
                micro_batch: Some(4),
                micro_batches: Some(8),
                tensor: Some(8),
                dtype,
                ..TrainingStep::default()
            },
            TrainingPreset::Dense70b => TrainingStep {
                layers: Some(80),
                hidden: Some(8192),
                heads: Some(64),
                kv_heads: Some(8),
                ffn_hidden: Some(28_672),
                gated: Some(true),
                vocabulary: Some(32_000),
                tied_embeddings: Some(false),
                sequence: Some(4096),
                micro_batch: Some(1),
                micro_batches: Some(32),
                tensor: Some(8),
                pipeline: Some(4),
                sequence_parallel: Some(true),
                dtype,
                ..TrainingStep::default()
            },
            TrainingPreset::Mixtral8x7b => TrainingStep {
                layers: Some(32),
                hidden: Some(4096),
                heads: Some(32),
                kv_heads: Some(8),
                ffn_hidden: Some(14_336),
                gated: Some(true),
                experts: Some(8),
                top_k: Some(2),
                vocabulary: Some(32_000),
                tied_embeddings: Some(false),
                sequence: Some(4096),
                micro_batch: Some(1),
                micro_batches: Some(16),
                pipeline: Some(4),
                expert: Some(8),
                dtype,
                ..TrainingStep::default()
            },
        }
    }
}
