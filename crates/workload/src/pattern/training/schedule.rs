//! What a GPU does in a step: one forward, one backward, and communication where the parallelism asks for it.

use std::rc::Rc;

use netloom_units::{Bytes, Time};

use super::layout::Layout;
use super::model::{Half, Model};
use crate::gpus::transfers::{Method, Operation};
use crate::gpus::{Builder, Comm, tags};

/// Kinds of communication, each with groups of its own; flows carry the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tensor,
    Context,
    Data,
    Expert,
    ExpertData,
    Pipeline,
    Embedding,
}

impl Kind {
    pub(super) const ALL: [Kind; 7] = [
        Kind::Tensor,
        Kind::Context,
        Kind::Data,
        Kind::Expert,
        Kind::ExpertData,
        Kind::Pipeline,
        Kind::Embedding,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Tensor => "tensor",
            Kind::Context => "context",
            Kind::Data => "data",
            Kind::Expert => "expert",
            Kind::ExpertData => "expert-data",
            Kind::Pipeline => "pipeline",
            Kind::Embedding => "embedding",
        }
    }

    /// The group of a GPU; for pipelines its stages.
    pub(super) fn group(self, layout: &Layout, gpu: u32) -> Rc<[u32]> {
        match self {
            Kind::Tensor => layout.tensor_group(gpu),
            Kind::Context => layout.context_group(gpu),
            Kind::Data => layout.data_group(gpu),
            Kind::Expert => layout.expert_group(gpu),
            Kind::ExpertData => layout.expert_data_group(gpu),
            Kind::Pipeline => (0..layout.pipeline).map(|stage| layout.at_stage(gpu, stage)).collect(),
            Kind::Embedding => layout.embedding_group(gpu),
        }
    }
}

/// How a step is done.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) model: Model,
    pub(super) layout: Layout,
    pub(super) micro_batches: u32,
    pub(super) zero: u8,
    pub(super) overlap: bool,
    pub(super) recompute: bool,
    pub(super) method: Method,
    pub(super) channels: u32,
    pub(super) chunks: u32,
}

impl Plan {
    /// The layers of a stage.
    fn layers(&self, stage: u32) -> std::ops::Range<u32> {
        let per_stage = self.model.layers / self.layout.pipeline;
        stage * per_stage..(stage + 1) * per_stage
    }

    /// What the kind's operations are done by.
    pub(super) fn method(&self, operation: Operation) -> Method {
        if operation.methods().contains(&self.method) { self.method } else { Method::Auto }
    }

    /// The communication of a kind that a GPU takes part in.
    pub(super) fn comm(&self, kind: Kind, gpu: u32, operation: Operation) -> Comm {
        Comm {
            members: kind.group(&self.layout, gpu),
            tag: kind as u32 * tags(self.channels, self.chunks),
            kind: kind as u8,
            name: kind.name(),
            method: self.method(operation),
            channels: self.channels,
            chunks: self.chunks,
        }
    }

    /// Adds all that a GPU does in a step.
    pub(super) fn add(&self, builder: &mut Builder<'_>, gpu: u32) {
        let mut worker = Worker {
            plan: self,
            builder,
            gpu,
            stage: self.layout.stage(gpu),
            before: Vec::new(),
            last: Default::default(),
            number: [0; Kind::ALL.len()],
            gathered: Vec::new(),
        };
        worker.step();
    }
}

/// Where one GPU is in its step.
struct Worker<'a, 'b> {
    plan: &'a Plan,
    builder: &'a mut Builder<'b>,
    gpu: u32,
    stage: u32,
    /// What its next computation waits for.
    before: Vec<u32>,
    /// Per kind, what the next operation waits for: those of a group are done one after the other.
    last: [Vec<u32>; Kind::ALL.len()],
    /// Per kind, how many operations there were.
    number: [u32; Kind::ALL.len()],
    /// Ends of the computations of layers, for the parameters that are gathered ahead.
    gathered: Vec<Vec<u32>>,
}

/// Tags of messages between stages: forward and backward.
const FORWARD: u32 = 0;
const BACKWARD: u32 = 1;

impl Worker<'_, '_> {
    fn step(&mut self) {
        let (plan, layout) = (self.plan, self.plan.layout);
        let all = plan.micro_batches;
        // One forward, one backward (Narayanan et al., PipeDream, SOSP 2019; Megatron-LM's schedule without interleaving): a stage begins with as many
        // forward passes as there are stages behind it.
        let ahead = (layout.pipeline - 1 - self.stage).min(all);
        for batch in 0..all {
            self.forward();
            if let Some(batch) = batch.checked_sub(ahead) {
                self.backward(batch);
            }
        }
        for batch in all - ahead..all {
            self.backward(batch);
        }
        self.finish();
    }

    fn compute(&mut self, duration: Time) {
        if duration > Time::ZERO {
            self.before = vec![self.builder.compute(self.gpu, duration, &self.before)];
        }
    }

    /// An operation of a group, after what the GPU does before it and after the group's operation before. Returns what is over when it is.
    fn operation(&mut self, kind: Kind, operation: Operation, size: Bytes, after: &[u32]) -> Vec<u32> {
        let comm = self.plan.comm(kind, self.gpu, operation);
        if comm.members.len() < 2 || size.0 == 0 {
            return after.to_vec();
        }
        let mut after = after.to_vec();
        after.extend(
            self.last[kind as usize].iter().filter(|op| !after.contains(op)).copied().collect::<Vec<_>>(),
        );
        let number = &mut self.number[kind as usize];
        let end = self.builder.collective(&comm, self.gpu, (operation, size, *number), &after);
        *number += 1;
        self.last[kind as usize].clone_from(&end);
        end
    }

    /// An operation that the computation waits for.
    fn wait_for(&mut self, kind: Kind, operation: Operation, size: Bytes) {
        let before = std::mem::take(&mut self.before);
        self.before = self.operation(kind, operation, size, &before);
    }

    /// An activation, or its gradient, to another stage.
    fn pass_on(&mut self, stage: u32, direction: u32) {
        let layout = &self.plan.layout;
        let bytes = self.plan.model.activations(layout).0 / u64::from(layout.tokens_divided());
        let tag = Kind::Pipeline as u32 * tags(self.plan.channels, self.plan.chunks) + direction;
        let peer = layout.at_stage(self.gpu, stage);
        let send =
            self.builder.send((self.gpu, peer), Bytes(bytes), (tag, Kind::Pipeline as u8), &self.before);
        if !self.plan.overlap {
            self.before = vec![send];
        }
    }

    /// Waits for what another stage passes on.
    fn take(&mut self, stage: u32, direction: u32) {
        let tag = Kind::Pipeline as u32 * tags(self.plan.channels, self.plan.chunks) + direction;
        let peer = self.plan.layout.at_stage(self.gpu, stage);
        // Without overlap it is asked for when the GPU has nothing else to do; it makes no difference to when it comes.
        let recv = self.builder.recv((peer, self.gpu), tag, &self.before);
        self.before = vec![recv];
    }

    fn is_last_stage(&self) -> bool {
        self.stage + 1 == self.plan.layout.pipeline
    }

    fn forward(&mut self) {
        let plan = self.plan;
        if self.stage > 0 {
            self.take(self.stage - 1, FORWARD);
        }
        if self.stage == 0 {
            self.gather(plan.model.embedding(), 0);
        }
        for layer in plan.layers(self.stage) {
            self.gather_layer();
            self.forward_layer(layer);
            self.gathered.push(self.before.clone());
        }
        if self.is_last_stage() {
            if !plan.model.tied {
                self.gather(plan.model.embedding(), 0);
            }
            self.compute(plan.model.output(&plan.layout));
        } else {
            self.pass_on(self.stage + 1, FORWARD);
        }
    }

    fn backward(&mut self, batch: u32) {
        let plan = self.plan;
        let is_last_batch = batch + 1 == plan.micro_batches;
        let reduces = is_last_batch || plan.zero >= 2;
        if self.is_last_stage() {
            self.gather(plan.model.embedding(), 0);
            self.compute(Time(2 * plan.model.output(&plan.layout).0));
            if reduces && plan.overlap && !self.has_embedding_at_the_beginning_only() {
                self.reduce(plan.model.embedding(), Kind::Data);
            }
        } else {
            self.take(self.stage + 1, BACKWARD);
        }
        for layer in plan.layers(self.stage).rev() {
            self.gather_layer();
            if plan.recompute {
                self.forward_layer(layer);
            }
            self.backward_layer(layer);
            self.gathered.push(self.before.clone());
            if reduces && plan.overlap {
                self.reduce_layer();
            }
        }
        if self.stage > 0 {
            self.pass_on(self.stage - 1, BACKWARD);
        }
        if reduces {
            if !plan.overlap {
                if self.is_last_stage() && !self.has_embedding_at_the_beginning_only() {
                    self.reduce(plan.model.embedding(), Kind::Data);
                }
                plan.layers(self.stage).for_each(|_| self.reduce_layer());
            }
            if self.stage == 0 {
                self.reduce(plan.model.embedding(), Kind::Data);
            }
        }
    }

    /// Whether the output layer is the embedding, and at the same GPU: it is added up once, when the embedding's gradient is there.
    fn has_embedding_at_the_beginning_only(&self) -> bool {
        self.plan.model.tied && self.plan.layout.pipeline == 1
    }

    fn forward_layer(&mut self, layer: u32) {
        let (model, layout) = (&self.plan.model, self.plan.layout);
        let context = Bytes(if layout.context > 1 { model.keys_and_values(&layout).0 } else { 0 });
        self.enter(1);
        self.beside(context, &[Operation::AllGather], model.forward(layer, Half::Attention, &layout));
        self.leave(1);
        self.feed_forward(model.forward(layer, Half::FeedForward, &layout));
    }

    fn backward_layer(&mut self, layer: u32) {
        let (model, layout) = (&self.plan.model, self.plan.layout);
        let context = Bytes(if layout.context > 1 { model.keys_and_values(&layout).0 } else { 0 });
        self.feed_forward(model.backward(layer, Half::FeedForward, &layout));
        self.enter(1);
        // Keys and values once more, and their gradients.
        let operations = [Operation::AllGather, Operation::ReduceScatter];
        self.beside(context, &operations, model.backward(layer, Half::Attention, &layout));
        self.leave(1);
    }

    /// The feed-forward part, or that of the experts: tokens go to them, and back.
    fn feed_forward(&mut self, duration: Time) {
        let model = &self.plan.model;
        let dispatched = model.dispatched(&self.plan.layout);
        let copies = if model.experts > 0 { model.top_k } else { 1 };
        if model.experts > 0 {
            self.wait_for(Kind::Expert, Operation::AllToAll, dispatched);
        }
        self.enter(copies);
        self.compute(duration);
        self.leave(copies);
        if model.experts > 0 {
            self.wait_for(Kind::Expert, Operation::AllToAll, dispatched);
        }
    }

    /// Before a tensor-parallel part: its input is there already, or with sequence parallelism a part of it.
    fn enter(&mut self, copies: u64) {
        if self.plan.layout.sequence_parallel {
            let size = Bytes(self.plan.model.activations(&self.plan.layout).0 * copies);
            self.wait_for(Kind::Tensor, Operation::AllGather, size);
        }
    }

    /// After a tensor-parallel part: what its ranks computed is added up. Forward that is its output, backward the gradient of its input.
    fn leave(&mut self, copies: u64) {
        let size = Bytes(self.plan.model.activations(&self.plan.layout).0 * copies);
        let operation = match self.plan.layout.sequence_parallel {
            true => Operation::ReduceScatter,
            false => Operation::AllReduce,
        };
        self.wait_for(Kind::Tensor, operation, size);
    }

    /// Computes, with some exchanges of context parallelism beside it or before it.
    fn beside(&mut self, size: Bytes, operations: &[Operation], duration: Time) {
        let before = self.before.clone();
        let mut exchanged = before.clone();
        for &operation in operations {
            exchanged = self.operation(Kind::Context, operation, size, &exchanged);
        }
        if !self.plan.overlap {
            self.before = exchanged;
            return self.compute(duration);
        }
        self.compute(duration);
        if exchanged != before {
            self.before.extend(exchanged);
        }
    }

    /// The parameters of a layer.
    fn gather_layer(&mut self) {
        let (model, layout) = (&self.plan.model, self.plan.layout);
        self.gather(model.shared(), model.experts / u64::from(layout.expert) * model.expert());
    }

    /// Parameters, and those of experts, where no rank keeps all of them (ZeRO stage 3): when what comes before is computed, or with overlap one
    /// layer earlier.
    fn gather(&mut self, shared: u64, own: u64) {
        if self.plan.zero < 3 {
            return;
        }
        let (model, layout) = (&self.plan.model, self.plan.layout);
        let early = match (self.plan.overlap, self.gathered.len()) {
            (false, _) => self.before.clone(),
            (true, 0 | 1) => Vec::new(),
            (true, done) => self.gathered[done - 2].clone(),
        };
        let bytes = |parameters: u64| Bytes(parameters / u64::from(layout.tensor) * model.dtype.bytes());
        let shared = self.operation(Kind::Data, Operation::AllGather, bytes(shared), &early);
        let experts = self.operation(Kind::ExpertData, Operation::AllGather, bytes(own), &early);
        for op in shared.into_iter().chain(experts) {
            if !self.before.contains(&op) {
                self.before.push(op);
            }
        }
    }

    /// Adds up the gradients of a layer.
    fn reduce_layer(&mut self) {
        let (model, layout) = (&self.plan.model, self.plan.layout);
        let own = model.experts / u64::from(layout.expert) * model.expert();
        self.reduce(model.shared(), Kind::Data);
        self.reduce(own, Kind::ExpertData);
    }

    /// Adds up gradients, which goes on beside the computation. With ZeRO each rank keeps a part of the sum (Rajbhandari et al., ZeRO, SC 2020): a
    /// reduce-scatter instead of an all-reduce.
    fn reduce(&mut self, parameters: u64, kind: Kind) {
        let (model, layout) = (&self.plan.model, self.plan.layout);
        let bytes = Bytes(parameters / u64::from(layout.tensor) * model.gradient_dtype.bytes());
        let operation = if self.plan.zero == 0 { Operation::AllReduce } else { Operation::ReduceScatter };
        let before = self.before.clone();
        self.operation(kind, operation, bytes, &before);
    }

    /// What comes after the last backward pass: the embedding that two stages have, and the parameters that each rank has updated a part of.
    fn finish(&mut self) {
        let (plan, layout) = (self.plan, self.plan.layout);
        let model = &plan.model;
        let mut before = self.before.clone();
        for kind in [Kind::Data, Kind::ExpertData] {
            before.extend(self.last[kind as usize].iter().copied());
        }
        before.sort_unstable();
        before.dedup();
        self.before = before;
        let is_end = self.stage == 0 || self.is_last_stage();
        if model.tied && layout.pipeline > 1 && is_end {
            let bytes = model.embedding() / u64::from(layout.tensor) * model.gradient_dtype.bytes();
            self.wait_for(Kind::Embedding, Operation::AllReduce, Bytes(bytes));
        }
        if plan.zero == 1 || plan.zero == 2 {
            let bytes = |parameters: u64| Bytes(parameters / u64::from(layout.tensor) * model.dtype.bytes());
            let own = model.experts / u64::from(layout.expert) * model.expert();
            let before = self.before.clone();
            if self.stage == 0 {
                self.operation(Kind::Data, Operation::AllGather, bytes(model.embedding()), &before);
            }
            for _ in plan.layers(self.stage) {
                self.operation(Kind::Data, Operation::AllGather, bytes(model.shared()), &before);
                self.operation(Kind::ExpertData, Operation::AllGather, bytes(own), &before);
            }
            if self.is_last_stage() && !self.has_embedding_at_the_beginning_only() {
                self.operation(Kind::Data, Operation::AllGather, bytes(model.embedding()), &before);
            }
        }
    }
}
