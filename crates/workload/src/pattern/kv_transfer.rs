//! Key-value caches on their way from GPUs that prefill to GPUs that decode.

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Dtype;
use super::incast::{MOST_LISTED, exponential};
use crate::WorkloadError;
use crate::plan::{HostWork, Message, Plan, Setting};
use crate::random::{RngExt, Work};

/// Inference with prefill and decoding on different hosts (Zhong et al., DistServe, OSDI 2024; Patel et al., Splitwise, ISCA 2024): requests arrive as a Poisson process
/// at each instance that prefills, are computed one after the other, and then their keys and values go to a random instance that decodes. An open loop.
///
/// A token has 2 · layers · kv_heads · head_size numbers, 320 KiB with the defaults, those of Llama 2 70B (Touvron et al., arXiv:2307.09288). Each rank of
/// an instance sends its share to the rank of the same place in the other instance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KvTransfer {
    /// Instances that prefill, on the first ranks. The other ranks decode, `tensor` of them in an instance.
    pub prefill: u32,
    /// Ranks of an instance, by tensor parallelism.
    pub tensor: u32,
    /// Requests per second at each instance that prefills.
    pub rate: f64,
    /// Requests of each instance that prefills.
    pub requests: u32,
    /// Tokens of a prompt.
    pub tokens: u32,
    /// Whether all prompts have as many tokens (`fixed`), or `tokens` is the mean of exponential ones (`exponential`).
    pub prompts: Prompts,
    /// Computation for each token, before the transfer; an instance does one request at a time. The default of 40 us is 140 · 10⁹ operations at 3.5 · 10¹⁵ per second.
    pub time_per_token: Time,
    /// Layers of the model.
    pub layers: u32,
    /// Heads with keys and values of their own.
    pub kv_heads: u32,
    /// Numbers of a head.
    pub head_size: u32,
    /// Format of keys and values.
    pub dtype: Dtype,
}

/// How long prompts are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Prompts {
    /// All equal.
    #[default]
    Fixed,
    /// Exponential, at least one token and at most ten times the mean.
    Exponential,
}

impl Default for KvTransfer {
    fn default() -> Self {
        KvTransfer {
            prefill: 1,
            tensor: 1,
            rate: 10.0,
            requests: 10,
            tokens: 1024,
            prompts: Prompts::Fixed,
            time_per_token: Time::from_us(40),
            layers: 80,
            kv_heads: 8,
            head_size: 128,
            dtype: Dtype::Bf16,
        }
    }
}

impl KvTransfer {
    /// Bytes of a token, of all ranks of an instance together.
    fn bytes_per_token(&self) -> u64 {
        2 * u64::from(self.layers) * u64::from(self.kv_heads) * u64::from(self.head_size) * self.dtype.bytes()
    }

    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        for (field, value, most) in [
            ("tensor", self.tensor, 1 << 10),
            ("tokens", self.tokens, 1 << 22),
            ("layers", self.layers, 1 << 12),
            ("kv_heads", self.kv_heads, 1 << 10),
            ("head_size", self.head_size, 1 << 12),
        ] {
            if !(1..=most).contains(&value) {
                return Err(WorkloadError::parameter(field, format!("1 to {most}"), value));
            }
        }
        let instances = setting.ranks() / self.tensor;
        if self.prefill == 0 || self.prefill >= instances {
            let expected = format!("1 to {}, one less than there are instances", instances.saturating_sub(1));
            return Err(WorkloadError::parameter("prefill", expected, self.prefill));
        }
        if !(self.rate > 0.0 && self.rate <= 1e12) {
            return Err(WorkloadError::parameter("rate", "a number above 0, at most 1e12", self.rate));
        }
        let messages = u64::from(self.prefill) * u64::from(self.requests) * u64::from(self.tensor);
        if self.requests == 0 || messages > MOST_LISTED {
            let most = (MOST_LISTED / (u64::from(self.prefill) * u64::from(self.tensor))).max(1);
            return Err(WorkloadError::parameter("requests", format!("1 to {most}"), self.requests));
        }
        let longest = match self.prompts {
            Prompts::Fixed => u64::from(self.tokens),
            Prompts::Exponential => u64::from(self.tokens) * MOST_TIMES,
        };
        let largest = Bytes(self.share(longest));
        if let Err(expected) = setting.context.check_message(largest) {
            return Err(WorkloadError::parameter("tokens", format!("messages of {expected}"), largest));
        }
        let mut lists: Vec<Vec<Message>> = vec![Vec::new(); setting.placed.len()];
        for instance in 0..self.prefill {
            let first = instance * self.tensor;
            let mut random = Work::Host.stream(setting.context.seed, setting.placed[first as usize]);
            let mean = Time(seconds(1.0 / self.rate));
            let (mut arrived, mut free) = (setting.first_start(setting.placed[first as usize]).0, 0);
            for _ in 0..self.requests {
                arrived = arrived.saturating_add(exponential(mean, random.random::<f64>()));
                let tokens = match self.prompts {
                    Prompts::Fixed => u64::from(self.tokens),
                    Prompts::Exponential => {
                        exponential(Time(self.tokens.into()), random.random::<f64>()).clamp(1, longest)
                    }
                };
                let computed = tokens.saturating_mul(self.time_per_token.0);
                free = arrived.max(free).saturating_add(computed);
                let decoder = random.random_range(self.prefill..instances) * self.tensor;
                for place in 0..self.tensor {
                    let dst = setting.placed[(decoder + place) as usize];
                    let message = Message::new(dst, Bytes(self.share(tokens)), Time(free));
                    lists[(first + place) as usize].push(message);
                }
            }
        }
        Ok(setting.plan(Some(messages), |rank, _| HostWork::list(std::mem::take(&mut lists[rank as usize]))))
    }

    /// What a rank sends of this many tokens.
    fn share(&self, tokens: u64) -> u64 {
        (tokens * self.bytes_per_token()).div_ceil(self.tensor.into())
    }
}

/// How many times the mean the longest prompts are.
const MOST_TIMES: u64 = 10;

/// Seconds as picoseconds; what does not fit is the last one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and saturating")]
fn seconds(seconds: f64) -> u64 {
    (seconds * 1e12) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Pattern, Workload};

    fn build(transfer: KvTransfer) -> Result<Plan, WorkloadError> {
        plan(Workload::new(Pattern::KvTransfer(transfer)), &network(16, 4), 1)
    }

    #[test]
    fn caches_go_to_the_same_place_of_a_decoder() {
        let mut plan =
            build(KvTransfer { prefill: 3, tensor: 2, requests: 50, ..Default::default() }).unwrap();
        assert_eq!(plan.total_messages, Some(300));
        let sent = timed(&mut plan);
        assert_eq!(sent.len(), 300);
        let mut decoders = std::collections::BTreeSet::new();
        for (src, message) in &sent {
            assert!(*src < 6 && message.dst >= 6 && message.dst % 2 == src % 2);
            // Llama 2 70B: 2 · 80 · 8 · 128 numbers of 2 bytes for each of 1,024 tokens, in two halves.
            assert_eq!(message.bytes, Bytes(1024 * 320 * 1024 / 2));
            decoders.insert(message.dst / 2);
        }
        assert_eq!(decoders.len(), 5);
        let of = |rank| sent.iter().filter(move |it| it.0 == rank).map(|it| it.1.start);
        assert!(of(0).eq(of(1)) && !of(0).eq(of(2)));
    }

    #[test]
    fn requests_are_computed_one_after_the_other() {
        // 41 ms of computation for a request every 100 ms, and for one every 10 ms.
        let starts = |rate| -> Vec<u64> {
            let transfer = KvTransfer { rate, requests: 400, ..Default::default() };
            timed(&mut build(transfer).unwrap()).into_iter().map(|it| it.1.start.0).collect()
        };
        let computed = 1024 * 40_000_000;
        for (rate, mean) in [(10.0, 0.1e12), (100.0, computed as f64)] {
            let starts = starts(rate);
            assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= computed));
            let found = *starts.last().unwrap() as f64 / 400.0;
            assert!((found / mean - 1.0).abs() < 0.2, "{rate}: {found}");
        }
    }

    #[test]
    fn prompts_may_vary() {
        let transfer =
            KvTransfer { prompts: Prompts::Exponential, requests: 2000, rate: 1e6, ..Default::default() };
        let sizes: Vec<f64> =
            timed(&mut build(transfer).unwrap()).into_iter().map(|it| it.1.bytes.0 as f64).collect();
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64 / (1024.0 * 327_680.0);
        assert!((mean - 1.0).abs() < 0.12, "{mean}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let base = KvTransfer::default;
        for (wrong, expected) in [
            (KvTransfer { prefill: 0, ..base() }, "prefill: expected 1 to 15"),
            (KvTransfer { prefill: 4, tensor: 4, ..base() }, "prefill: expected 1 to 3"),
            (KvTransfer { tensor: 0, ..base() }, "tensor: expected 1 to"),
            (KvTransfer { tokens: 0, ..base() }, "tokens: expected 1 to"),
            (KvTransfer { rate: 0.0, ..base() }, "rate: expected a number above 0"),
            (KvTransfer { requests: 0, ..base() }, "requests: expected 1 to"),
            (KvTransfer { requests: u32::MAX, ..base() }, "requests: expected 1 to"),
        ] {
            let error = build(wrong).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
