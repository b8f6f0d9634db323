//! Which GPU has which part of the model and of the data.

use std::rc::Rc;

/// The degrees of parallelism. GPUs are numbered as Megatron-LM does by default (Megatron Core, `parallel_state`, order `tp-cp-ep-dp-pp`): those of
/// a tensor-parallel group are neighbours, then come the context-parallel ranks, the data-parallel ones, and the pipeline's stages last.
/// Experts are spread over the ranks of context and data parallelism together, next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) tensor: u32,
    pub(super) context: u32,
    pub(super) data: u32,
    pub(super) pipeline: u32,
    pub(super) expert: u32,
    /// Whether activations are divided among tensor-parallel ranks between their collectives.
    pub(super) sequence_parallel: bool,
}

impl Layout {
    /// How many GPUs take part.
    pub(super) fn gpus(&self) -> u32 {
        self.tensor * self.replicas() * self.pipeline
    }

    /// Ranks that share the parameters that are not those of experts: of data and context parallelism.
    pub(super) fn replicas(&self) -> u32 {
        self.context * self.data
    }

    /// Among how many ranks the activations of a token are divided outside of tensor-parallel parts.
    pub(super) fn tokens_divided(&self) -> u32 {
        if self.sequence_parallel { self.tensor } else { 1 }
    }

    /// The stage of a GPU.
    pub(super) fn stage(&self, gpu: u32) -> u32 {
        gpu / (self.tensor * self.replicas())
    }

    /// The GPU of the same place in another stage.
    pub(super) fn at_stage(&self, gpu: u32, stage: u32) -> u32 {
        let per_stage = self.tensor * self.replicas();
        gpu % per_stage + stage * per_stage
    }

    pub(super) fn tensor_group(&self, gpu: u32) -> Rc<[u32]> {
        group(gpu, 1, self.tensor)
    }

    pub(super) fn context_group(&self, gpu: u32) -> Rc<[u32]> {
        group(gpu, self.tensor, self.context)
    }

    /// Those with the same parameters.
    pub(super) fn data_group(&self, gpu: u32) -> Rc<[u32]> {
        group(gpu, self.tensor, self.replicas())
    }

    pub(super) fn expert_group(&self, gpu: u32) -> Rc<[u32]> {
        group(gpu, self.tensor, self.expert)
    }

    /// Those with the same experts.
    pub(super) fn expert_data_group(&self, gpu: u32) -> Rc<[u32]> {
        group(gpu, self.tensor * self.expert, self.replicas() / self.expert)
    }

    /// The first and the last stage, which both have the embedding.
    pub(super) fn embedding_group(&self, gpu: u32) -> Rc<[u32]> {
        [self.at_stage(gpu, 0), self.at_stage(gpu, self.pipeline - 1)].into()
    }
}

/// The ranks of a group of `size` whose members are `stride` apart.
fn group(gpu: u32, stride: u32, size: u32) -> Rc<[u32]> {
    let first = gpu / (stride * size) * (stride * size) + gpu % stride;
    (0..size).map(|member| first + member * stride).collect()
}
