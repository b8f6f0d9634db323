//! The model that is trained: its sizes, and how long its parts take to compute.

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::layout::Layout;

/// A number format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dtype {
    /// 4 bytes.
    Fp32,
    /// 2 bytes.
    #[default]
    Bf16,
    /// 2 bytes.
    Fp16,
    /// 1 byte.
    Fp8,
}

impl Dtype {
    /// Bytes of a number.
    pub(in crate::pattern) fn bytes(self) -> u64 {
        match self {
            Dtype::Fp32 => 4,
            Dtype::Bf16 | Dtype::Fp16 => 2,
            Dtype::Fp8 => 1,
        }
    }
}

/// How long a GPU computes for one layer and micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayerTime {
    /// Forward.
    pub forward: Time,
    /// Backward, without what is computed again.
    pub backward: Time,
}

/// Where the time of computation comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Speed {
    /// Operations per second that a GPU does.
    Flops(f64),
    /// One for all layers, or one for each.
    Table(Vec<LayerTime>),
}

/// A decoder-only transformer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model {
    pub(super) layers: u32,
    pub(super) hidden: u64,
    pub(super) heads: u64,
    pub(super) kv_heads: u64,
    pub(super) ffn_hidden: u64,
    pub(super) gated: bool,
    pub(super) vocabulary: u64,
    pub(super) tied: bool,
    /// 0 where all tokens go through one feed-forward part.
    pub(super) experts: u64,
    pub(super) top_k: u64,
    pub(super) sequence: u64,
    pub(super) micro_batch: u64,
    pub(super) dtype: Dtype,
    pub(super) gradient_dtype: Dtype,
    pub(super) speed: Speed,
}

/// The halves of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    Attention,
    FeedForward,
}

impl Model {
    /// Matrices of a feed-forward part: up and down, and the gate's.
    fn matrices(&self) -> u64 {
        if self.gated { 3 } else { 2 }
    }

    /// Parameters of a layer that all tokens share: h² (2 + 2 k/a) of the attention (a heads, k of them with keys and values of their own), and those of
    /// the feed-forward part, or of the router to the experts. With a = k and a feed-forward part of 4 h that is the 12 h² of a GPT layer
    /// (Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021, eq. 2); biases and
    /// norms, some 13 h, are left out.
    pub(super) fn shared(&self) -> u64 {
        let attention =
            2 * self.hidden * self.hidden + 2 * self.hidden * self.hidden * self.kv_heads / self.heads;
        attention + if self.experts > 0 { self.hidden * self.experts } else { self.expert() }
    }

    /// Parameters of one expert of a layer, or of its feed-forward part.
    pub(super) fn expert(&self) -> u64 {
        self.matrices() * self.hidden * self.ffn_hidden
    }

    /// Parameters of the embedding, and of the output layer.
    pub(super) fn embedding(&self) -> u64 {
        self.vocabulary * self.hidden
    }

    /// All parameters.
    pub(super) fn parameters(&self) -> u64 {
        let copies = if self.tied { 1 } else { 2 };
        u64::from(self.layers) * (self.shared() + self.experts * self.expert()) + copies * self.embedding()
    }

    /// Tokens of a micro-batch at one GPU: b s, divided among context-parallel ranks.
    fn tokens(&self, layout: &Layout) -> u64 {
        self.micro_batch * self.sequence / u64::from(layout.context)
    }

    /// The activations between layers at one GPU, before they are divided for sequence parallelism: b s h numbers, which is what a tensor-parallel
    /// all-reduce adds up (Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3) and a pipeline stage sends to the next
    /// (Narayanan et al., SC 2021, section 3.2).
    pub(super) fn activations(&self, layout: &Layout) -> Bytes {
        Bytes(self.tokens(layout) * self.hidden * self.dtype.bytes())
    }

    /// Keys and values of the sequence for one layer at one tensor-parallel rank, which context parallelism passes around
    /// (Liu, Zaharia, Abbeel, Ring Attention with Blockwise Transformers, arXiv:2310.01889).
    pub(super) fn keys_and_values(&self, layout: &Layout) -> Bytes {
        let all = 2 * self.micro_batch * self.sequence * self.hidden * self.kv_heads / self.heads;
        Bytes(all / u64::from(layout.tensor) * self.dtype.bytes())
    }

    /// What a GPU has for all experts together: each of its tokens goes to `top_k` of them (Lepikhin et al., GShard, arXiv:2006.16668;
    /// balanced experts are supposed).
    pub(super) fn dispatched(&self, layout: &Layout) -> Bytes {
        Bytes(self.activations(layout).0 / u64::from(layout.tokens_divided()) * self.top_k)
    }

    /// Floating-point operations of a GPU for the half of a layer and one micro-batch, forward. In all b s (24 h² + 4 s h) for a GPT layer
    /// (Narayanan et al., SC 2021, appendix: 24 b s h² (1 + s / 6h)).
    fn flops(&self, half: Half, layout: &Layout) -> f64 {
        let of = |number: u64| number as f64;
        let (h, tokens) = (of(self.hidden), of(self.tokens(layout)));
        let per_token = match half {
            Half::Attention => {
                4.0 * h * h * (1.0 + of(self.kv_heads) / of(self.heads)) + 4.0 * of(self.sequence) * h
            }
            Half::FeedForward => 2.0 * of(self.expert()) * of(self.top_k.max(1)),
        };
        tokens * per_token / f64::from(layout.tensor)
    }

    /// How long the half of a layer takes forward. A table's time is halved.
    pub(super) fn forward(&self, layer: u32, half: Half, layout: &Layout) -> Time {
        match &self.speed {
            Speed::Flops(speed) => seconds(self.flops(half, layout) / speed),
            Speed::Table(times) => Time(time(times, layer).forward.0 / 2),
        }
    }

    /// How long it takes backward: twice as long, as the gradients of inputs and of weights are computed.
    pub(super) fn backward(&self, layer: u32, half: Half, layout: &Layout) -> Time {
        match &self.speed {
            Speed::Flops(_) => Time(2 * self.forward(layer, half, layout).0),
            Speed::Table(times) => Time(time(times, layer).backward.0 / 2),
        }
    }

    /// How long the output layer takes forward: 2 b s h V operations; nothing where a table gives the times of the layers.
    pub(super) fn output(&self, layout: &Layout) -> Time {
        match &self.speed {
            Speed::Flops(speed) => {
                let flops =
                    2.0 * self.tokens(layout) as f64 * self.embedding() as f64 / f64::from(layout.tensor);
                seconds(flops / speed)
            }
            Speed::Table(_) => Time::ZERO,
        }
    }
}

fn time(times: &[LayerTime], layer: u32) -> LayerTime {
    times[if times.len() == 1 { 0 } else { layer as usize }]
}

/// Seconds as a time; what does not fit is the last one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and saturating")]
fn seconds(seconds: f64) -> Time {
    Time((seconds * 1e12).round() as u64)
}
