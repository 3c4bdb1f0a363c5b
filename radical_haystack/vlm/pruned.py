# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Pruning visual tokens inside an unmodified model: `with prune(model, pruner, layout) as trace: model(**inputs)`."""

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle
from transformers.cache_utils import DynamicLayer

from radical_haystack.pruning.pruners.base import (
    BEFORE_DECODER,
    AttentionRows,
    CandidateTokens,
    ImagePruner,
    InputPruner,
    LayerObservation,
    Pruner,
    Reduction,
    true_positions,
)
from radical_haystack.vlm.attention import row_attention
from radical_haystack.vlm.families import ModelFamily, family_of
from radical_haystack.vlm.prompt import PromptLayout
from radical_haystack.vlm.trace import PruningTrace, Stamp, stamp

_CACHE_NAMES = ("cache", "past_key_values")
"""The decoder's cache argument: its name since transformers 5.24, and the one before."""

Args = tuple[Any, ...]
Kwargs = dict[str, Any]

_pruned_models: "weakref.WeakSet[nn.Module]" = weakref.WeakSet()
_pruned_models_lock = threading.Lock()


@contextmanager
def prune(
    model: nn.Module,
    pruner: Pruner | None,
    layout: PromptLayout,
    *,
    query_embedding: Tensor | None = None,
    encoder_attention: Tensor | None = None,
) -> Iterator[PruningTrace]:
    """
    Prune candidate tokens in every forward pass over one prompt, and in `generate`, while the context is open.

    Selection uses the attention of a pruning layer; it takes effect at that layer's output, and that layer's cache is
    compacted too [choice]. A method that acts before the decoder shortens the decoder's input instead, with the visual
    features that are added later. Kept tokens keep their order and their position ids, and generation continues from
    the prompt's largest position. The model is left as it was when the context closes, whatever happened inside. With
    no pruner, or one that keeps everything by design, nothing is touched at all.

    Batch size 1 only, and one token per decoding step (no beam search, no assisted generation). A prompt may be passed
    more than once; the trace is of the last time. Decoding on a pruned cache must happen inside the context.

    :param model: A supported vision-language model, such as `Qwen3VLForConditionalGeneration`.
    :param pruner: The method, or `None` for none.
    :param layout: Where the prompt's parts lie.
    :param query_embedding: The query in the space of the visual tokens, shape `(d,)`. Default: the L2-normalised mean
        of the input embeddings of the query's content tokens [choice].
    :param encoder_attention: Attention that each candidate token received in the vision encoder, shape `(V,)`, for
        methods that look at it; see `ImageEncoding.attention`.
    :returns: The trace, filled during the pass.
    :raises ValueError: If the model's family is not supported, a pruning layer does not exist, the method resizes
        images or misses the encoder's attention, or (in the pass) the prompt does not fit the layout.
    :raises RuntimeError: If the model is already being pruned, by another thread or an outer context.
    """
    trace = PruningTrace(layout.candidate_index)
    if isinstance(pruner, ImagePruner):
        raise ValueError(f"{type(pruner).__name__} resizes images, which prune() does not see; use ListwiseVLM.rank.")
    if pruner is None or not (pruner.layers or isinstance(pruner, InputPruner)):
        yield trace
        return
    if isinstance(pruner, InputPruner) and pruner.needs_encoder_attention and encoder_attention is None:
        raise ValueError(f"{type(pruner).__name__} needs the attention of the vision encoder (encoder_attention).")
    family = family_of(model)
    count = len(family.layers(model))
    outside = [layer for layer in pruner.layers if not 0 <= layer < count]
    if outside:
        raise ValueError(f"Pruning layers {outside} do not exist: the model has layers 0 to {count - 1}.")
    with _exclusive(model):
        session = _Session(model, family, pruner, layout, query_embedding, encoder_attention, trace)
        try:
            session.attach()
            yield trace
        finally:
            session.detach()


@contextmanager
def _exclusive(model: nn.Module) -> Iterator[None]:
    """Two sets of hooks on one model would prune each other's prompts."""
    with _pruned_models_lock:
        if model in _pruned_models:
            raise RuntimeError("This model is already being pruned; use one context at a time.")
        _pruned_models.add(model)
    try:
        yield
    finally:
        with _pruned_models_lock:
            _pruned_models.discard(model)


@dataclass
class _Pass:
    """What is known of the prompt while its layers run."""

    candidates: CandidateTokens
    prior: Tensor | None
    columns: Tensor
    """Original positions of all candidate tokens, `(V,)`."""
    text: Tensor
    """Original positions of the text rows, which always stay."""
    deepstack: tuple[Tensor, ...]
    last_position: Tensor
    """Largest position id of the prompt, a scalar."""
    given: Tensor
    """Original positions of the tokens that entered the decoder, ascending."""
    sequence: Tensor
    """Original positions of the tokens still in the sequence, ascending, `(S',)`."""
    active: Tensor
    """Indices of the candidate tokens still in the sequence, ascending, `(T,)`."""
    started: Stamp
    rotary: tuple[Tensor, Tensor] | None = None
    """Cosines and sines the present layer uses, each `(S', head_dim)`."""
    hidden: Tensor | None = None
    """What the present layer was given, `(1, S', d)`, if it is a pruning layer."""
    queries: Tensor | None = None
    """Queries of the present layer's text rows before rotation, `(rows, heads, head_dim)`."""
    kept: Tensor | None = None
    """Positions in the present sequence that stay after the present layer; `None`: all."""
    shared: dict[str, Any] | None = None
    """Layer arguments cut to the present sequence, made once per pruning."""
    decoded: int = 0
    """New tokens since the prompt."""

    def now(self, positions: Tensor) -> Tensor:
        """Where tokens that are still in the sequence are in it now, from their original positions."""
        return torch.searchsorted(self.sequence, positions)


class _Session:
    """The hooks of one `prune` context; `attach` and `detach` are the only places where hooks come and go."""

    def __init__(
        self,
        model: nn.Module,
        family: ModelFamily,
        pruner: Pruner,
        layout: PromptLayout,
        query_embedding: Tensor | None,
        encoder_attention: Tensor | None,
        trace: PruningTrace,
    ) -> None:
        self._decoder = family.decoder(model)
        self._layers = family.layers(model)
        self._family = family
        self._pruner = pruner
        self._layout = layout
        self._query_embedding = query_embedding
        self._encoder_attention = encoder_attention
        self._trace = trace
        self._handles: list[RemovableHandle] = []
        self._pass: _Pass | None = None

    def attach(self) -> None:
        """Register all hooks."""
        add = self._handles.append
        pruning = set(self._pruner.layers)
        add(self._decoder.register_forward_pre_hook(self._enter_decoder, with_kwargs=True))
        add(self._decoder.register_forward_hook(self._leave_decoder))
        for index, layer in enumerate(self._layers):
            add(layer.register_forward_pre_hook(self._enter_layer, with_kwargs=True))
            add(layer.register_forward_hook(partial(self._leave_layer, index), with_kwargs=True))
            if index in pruning:
                add(layer.register_forward_pre_hook(self._see_hidden, with_kwargs=True))
                attention = self._family.attention(layer)
                add(self._family.query_source(attention).register_forward_hook(self._see_queries))
                add(self._family.key_source(attention).register_forward_hook(partial(self._select, index, attention)))

    def detach(self) -> None:
        """Remove all hooks and forget the prompt."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._pass = None

    def _enter_decoder(self, module: nn.Module, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        embeds = kwargs["inputs_embeds"]
        if embeds.shape[0] != 1:
            raise ValueError(f"Pruning works with batch size 1 (no beam search), got {embeds.shape[0]}.")
        cache = _cache_of(kwargs)
        if cache is not None and cache.get_seq_length() > 0:
            return args, self._continue(embeds, kwargs)
        self._check(embeds, kwargs.get("attention_mask"))
        kwargs = dict(kwargs)
        state = self._pass = self._start(embeds.detach(), kwargs)
        if isinstance(self._pruner, InputPruner):
            kwargs = self._shorten(state, self._reduce(state, self._pruner), kwargs)
        self._trace.add_span("prior", state.started, stamp(embeds.device))
        return args, kwargs

    @torch.no_grad()
    def _start(self, embeds: Tensor, kwargs: Kwargs) -> _Pass:
        """A new prompt begins; the visual features of later layers are taken out of `kwargs`."""
        self._trace.clear()
        started = stamp(embeds.device)
        device, length = embeds.device, embeds.shape[1]
        columns = self._layout.candidate_positions.to(device)
        query_tokens = embeds[0, self._layout.query_positions.to(device)]
        attention = self._encoder_attention
        candidates = CandidateTokens(
            tokens=embeds[0, columns],
            candidate_index=self._layout.candidate_index.to(device),
            query_embedding=self._query(query_tokens),
            query_tokens=query_tokens,
            sizes=self._layout.tokens_per_candidate,
            encoder_attention=None if attention is None else attention.to(device),
        )
        return _Pass(
            candidates=candidates,
            prior=self._pruner.prior(candidates),
            columns=columns,
            text=self._layout.text_positions.to(device),
            deepstack=self._family.take_deepstack(kwargs),
            last_position=_largest_position(kwargs.get("position_ids"), length).to(device),
            given=torch.arange(length, device=device),
            sequence=torch.arange(length, device=device),
            active=torch.arange(columns.numel(), device=device),
            started=started,
        )

    @torch.no_grad()
    def _reduce(self, state: _Pass, pruner: InputPruner) -> Reduction:
        """What enters the decoder."""
        reduction = pruner.reduce(state.candidates)
        self._trace.add_stage(BEFORE_DECODER, state.active.numel(), reduction.kept, {})
        return reduction

    def _shorten(self, state: _Pass, reduction: Reduction, kwargs: Kwargs) -> Kwargs:
        """Let the decoder begin with the kept tokens only."""
        left = reduction.kept.numel()
        dropped = state.active.numel() - left
        if not dropped:
            return kwargs
        stays = torch.ones_like(state.sequence, dtype=torch.bool)
        stays[state.columns] = False
        stays[state.columns[reduction.kept]] = True
        state.given = state.sequence = true_positions(stays, stays.numel() - dropped)
        state.active = reduction.kept
        rows = self._visual_rows(state.columns)
        state.deepstack = tuple(_with_reduced(features, rows, reduction) for features in state.deepstack)
        embeds = _with_reduced(kwargs["inputs_embeds"][0], state.columns, reduction)
        mask = kwargs.get("attention_mask")
        return {
            **kwargs,
            "inputs_embeds": _cut(embeds, 0, state.given)[None],
            "position_ids": _cut(_rotary_positions(kwargs.get("position_ids"), embeds), -1, state.given),
            "attention_mask": None if mask is None else _cut_mask(mask, state.given),
        }

    def _visual_rows(self, positions: Tensor) -> Tensor:
        """Where visual tokens are among all visual tokens of the prompt, candidates' and reference's."""
        reference = self._layout.reference_positions.to(positions.device)
        visual = torch.cat([self._layout.candidate_positions.to(positions.device), reference]).sort().values
        return torch.searchsorted(visual, positions)

    def _check(self, embeds: Tensor, mask: Tensor | None) -> None:
        if embeds.shape[1] != self._layout.length:
            raise ValueError(
                f"The prompt has {embeds.shape[1]} tokens, but the layout given to prune() is of "
                f"{self._layout.length} tokens."
            )
        if mask is not None and mask.ndim == 2 and not bool(mask.all()):
            raise ValueError("Pruning works on a prompt without padding.")

    def _query(self, tokens: Tensor) -> Tensor:
        return query_direction(tokens) if self._query_embedding is None else self._query_embedding.to(tokens)

    def _continue(self, embeds: Tensor, kwargs: Kwargs) -> Kwargs:
        """One more token behind the pruned prompt, at the position after the prompt's largest."""
        state = self._pass
        if state is None:
            raise ValueError("Pruning needs a prompt that starts with an empty cache.")
        if embeds.shape[1] != 1:
            raise ValueError(f"Pruning takes one new token per decoding step, got {embeds.shape[1]}.")
        state.decoded += 1
        text = torch.full_like(state.last_position, self._layout.length - 1)
        positions = torch.stack([text, *[state.last_position] * 3]) + state.decoded
        return {**kwargs, "position_ids": positions[:, None, None]}

    def _enter_layer(self, module: nn.Module, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Give a layer the arguments that fit the sequence as it is now."""
        state = self._running()
        if state.decoded:
            # One row that sees its whole cache, whose length differs from layer to layer.
            return args, {**kwargs, "attention_mask": None}
        if state.shared is None:
            state.shared = self._shared_arguments(state, kwargs)
        cos, sin = state.shared["position_embeddings"]
        state.rotary = cos[0], sin[0]
        return args, {**kwargs, **state.shared}

    def _shared_arguments(self, state: _Pass, kwargs: Kwargs) -> Kwargs:
        names = ("position_embeddings", "position_ids", "attention_mask")
        shared = {name: kwargs[name] for name in names if kwargs.get(name) is not None}
        if state.sequence.numel() < state.given.numel():
            left = torch.searchsorted(state.given, state.sequence)
            cos, sin = shared["position_embeddings"]
            shared["position_embeddings"] = (_cut(cos, 1, left), _cut(sin, 1, left))
            if "position_ids" in shared:
                shared["position_ids"] = _cut(shared["position_ids"], -1, left)
            if "attention_mask" in shared:
                shared["attention_mask"] = _cut_mask(shared["attention_mask"], left)
        return shared

    def _see_hidden(self, module: nn.Module, args: Args, kwargs: Kwargs) -> None:
        """Remember what a pruning layer is given, until it has selected."""
        state = self._running()
        if not state.decoded:
            state.hidden = args[0] if args else kwargs["hidden_states"]

    def _see_queries(self, module: nn.Module, args: Args, output: Tensor) -> None:
        """Keep the text rows' queries until the keys are there; not all rows, which would keep a large tensor alive."""
        state = self._running()
        if not state.decoded:
            state.queries = output[0, state.now(state.text).to(output.device)].detach()

    @torch.no_grad()
    def _select(self, index: int, attention: nn.Module, module: nn.Module, args: Args, output: Tensor) -> None:
        """Choose as soon as a pruning layer has made its keys; the choice takes effect at the layer's output."""
        state = self._running()
        if state.decoded:
            return
        start = stamp(output.device)
        view = _AttentionView(
            family=self._family,
            attention=attention,
            state=state,
            keys=output[0],
            rows=state.now(state.text),
            columns=state.now(state.columns[state.active]),
        )
        observation = LayerObservation(
            layer=index,
            active=state.active,
            candidates=state.candidates,
            prior=state.prior,
            attention=view.weights,
            keys=view.active_keys,
            hidden=view.active_hidden,
        )
        chosen = self._pruner.select(observation)
        before = state.active.numel()
        if chosen.numel() < before:
            stays = torch.ones_like(state.sequence, dtype=torch.bool)
            stays[view.columns] = False
            stays[view.columns[chosen]] = True
            state.kept = true_positions(stays, stays.numel() - before + chosen.numel())
            state.active = state.active[chosen]
        self._trace.add_stage(index, before, state.active, observation.record)
        self._trace.add_span("select", start, stamp(output.device))
        state.queries = state.hidden = None

    def _leave_layer(self, index: int, module: nn.Module, args: Args, kwargs: Kwargs, output: Any) -> Any:
        """Drop what was not chosen, then add the layer's DeepStack features to what is left."""
        state = self._running()
        if state.decoded:
            return None
        hidden = output[0] if isinstance(output, tuple) else output
        if state.kept is not None:
            hidden = _cut(hidden, 1, state.kept)
            _compact(_cache_of(kwargs), index, state.kept)
            state.sequence = state.sequence[state.kept]
            state.kept = state.shared = None
        if index < len(state.deepstack):
            hidden = self._add_features(hidden, state, state.deepstack[index])
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    def _add_features(self, hidden: Tensor, state: _Pass, features: Tensor) -> Tensor:
        """DeepStack, as the decoder does it, on the visual tokens that are left."""
        reference = self._layout.reference_positions.to(state.columns.device)
        left = torch.cat([state.columns[state.active], reference])
        here, rows = state.now(left).to(hidden.device), self._visual_rows(left).to(features.device)
        hidden = hidden.clone()
        hidden[:, here] = hidden[:, here] + features[rows].to(hidden)
        return hidden

    def _leave_decoder(self, module: nn.Module, args: Args, output: Any) -> None:
        state = self._running()
        if not state.decoded:
            self._trace.add_span("decoder", state.started, stamp(state.sequence.device))

    def _running(self) -> _Pass:
        if self._pass is None:
            raise RuntimeError("A decoder layer was called outside its decoder; pruning needs the whole forward pass.")
        return self._pass


class _AttentionView:
    """
    What a pruner may ask of one layer, computed when asked.

    Answers are given on the device of the prompt's embeddings, where the candidates' tokens are, even if the layer
    lives on another one.
    """

    def __init__(
        self, *, family: ModelFamily, attention: nn.Module, state: _Pass, keys: Tensor, rows: Tensor, columns: Tensor
    ) -> None:
        assert state.queries is not None
        assert state.hidden is not None
        assert state.rotary is not None
        self._family = family
        self._scaling = family.scaling(attention)
        self._rotary = (state.rotary[0].to(keys.device), state.rotary[1].to(keys.device))
        self._queries = state.queries
        self._hidden = state.hidden[0]
        self._keys = keys
        self._rotated_keys: Tensor | None = None
        self._rows = rows.to(keys.device)
        self.columns = columns

    def weights(self, rows: AttentionRows) -> Tensor:
        """See `LayerObservation.attention`; the prompt's last row is its last text row."""
        chosen = slice(None) if rows == "text" else slice(-1, None)
        where = self._rows[chosen]
        queries = self._family.rotate(self._queries[chosen], (self._rotary[0][where], self._rotary[1][where]))
        keys = self._all_keys()
        columns = self.columns.to(keys.device)
        return row_attention(queries, keys, where, columns, self._scaling).to(self.columns.device)

    def active_keys(self) -> Tensor:
        """See `LayerObservation.keys`."""
        keys = self._all_keys()
        return keys[:, self.columns.to(keys.device)].to(self.columns.device)

    def active_hidden(self) -> Tensor:
        """See `LayerObservation.hidden`."""
        return self._hidden[self.columns.to(self._hidden.device)].to(self.columns.device)

    def _all_keys(self) -> Tensor:
        if self._rotated_keys is None:
            self._rotated_keys = self._family.rotate(self._keys, self._rotary)
        return self._rotated_keys


def query_direction(tokens: Tensor) -> Tensor:
    """
    The query in the space of the visual tokens: the L2-normalised mean of its tokens' input embeddings [choice].

    :param tokens: Input embeddings of the query's content tokens, shape `(Q, d)`.
    :returns: Shape `(d,)`, float32.
    """
    return nn.functional.normalize(tokens.float().sum(0), dim=0)


def _largest_position(position_ids: Tensor | None, length: int) -> Tensor:
    return torch.tensor(length - 1) if position_ids is None else _rotary_rows(position_ids).max()


def _rotary_rows(position_ids: Tensor) -> Tensor:
    """Four rows are the plain text positions and then those of M-RoPE; only the latter rotate queries and keys."""
    return position_ids[1:] if position_ids.ndim == 3 and len(position_ids) == 4 else position_ids


def _rotary_positions(position_ids: Tensor | None, rows: Tensor) -> Tensor:
    """
    The positions of M-RoPE alone, `(3, 1, S)`, whatever the decoder was given.

    Plain positions with gaps would read as several sequences packed into one.
    """
    if position_ids is None:
        position_ids = torch.arange(len(rows), device=rows.device)[None]
    rotary = _rotary_rows(position_ids)
    return rotary if rotary.ndim == 3 else rotary.expand(3, *rotary.shape)


def _with_reduced(rows: Tensor, where: Tensor, reduction: Reduction) -> Tensor:
    """A copy of `rows`; those of kept candidate tokens are what a reduction makes of all candidate tokens' rows."""
    where = where.to(rows.device)
    return rows.index_copy(0, where[reduction.kept.to(rows.device)], reduction.apply(rows[where]))


def _cut(tensor: Tensor, dim: int, positions: Tensor) -> Tensor:
    return tensor.index_select(dim, positions.to(tensor.device))


def _cut_mask(mask: object, positions: Tensor) -> Tensor | None:
    """Cut a `(1, S)` padding mask (flash attention) or a `(1, 1, S, S)` mask (eager, SDPA) that the model made."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor):
        raise ValueError(f"Pruning cannot cut an attention mask of type {type(mask).__name__}; use SDPA attention.")
    return _cut(mask, 1, positions) if mask.ndim == 2 else _cut(_cut(mask, -1, positions), -2, positions)


def _cache_of(kwargs: Kwargs) -> Any:
    """The key-value cache among a module's arguments, under either of its names."""
    return next((kwargs[name] for name in _CACHE_NAMES if kwargs.get(name) is not None), None)


def _compact(cache: Any, index: int, kept: Tensor) -> None:
    """Keep only some positions of one layer's cache; the one place that touches a cache's insides."""
    if cache is None:
        return
    layer = cache.layers[index]
    if type(layer) is not DynamicLayer:
        raise ValueError(f"Pruning shortens the cache, which {type(layer).__name__} does not allow; use DynamicCache.")
    if layer.keys is not None and layer.values is not None:
        layer.keys, layer.values = _cut(layer.keys, -2, kept), _cut(layer.values, -2, kept)
