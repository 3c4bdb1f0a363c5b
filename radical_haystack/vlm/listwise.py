# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""A vision-language model as a listwise reranker: `ListwiseVLM.load(name).rank(query, images)`."""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import torch
from PIL import Image
from transformers import AutoConfig, AutoModelForImageTextToText, AutoProcessor

from radical_haystack.pruning import Pruner, PruningSchedule, build_pruner
from radical_haystack.pruning.pruners import CandidateImages, CandidateTokens, ImagePruner, InputPruner, pruner_type
from radical_haystack.pruning.schedule import check_keep_ratio
from radical_haystack.vlm.calibration import CALIBRATION_SETS, EntropyProbe, EntropyProfile, ProfileStore
from radical_haystack.vlm.families import FAMILIES, ImageEncoding, family_of
from radical_haystack.vlm.images import fit_for_encoder, smaller_grids
from radical_haystack.vlm.notebook import ranking_html
from radical_haystack.vlm.prompt import IDENTIFIERS, Prompt, PromptBuilder, PromptTemplate, parse_permutation
from radical_haystack.vlm.pruned import prune, query_direction
from radical_haystack.vlm.trace import PruningTrace
from radical_haystack.vlm.vision_cache import VisionCache, image_key

Scoring = Literal["logits", "generate"]
ScoreKind = Literal["log_probability", "reciprocal_rank"]
CalibrationSet = tuple[str, Sequence[Image.Image]] | tuple[str, Sequence[Image.Image], Image.Image | None]
"""A query, its candidates and, for a composed query, its reference image."""

DEFAULT_KEEP_RATIO = 0.2
MAX_NEW_TOKENS = 512
_PIXELS_PER_BATCH = 2**22
"""Pixels the vision encoder takes at once; more are encoded in several batches, so that memory stays bounded."""
_HUB_ARGUMENTS = ("revision", "cache_dir", "local_files_only", "force_download", "subfolder")


@dataclass(frozen=True)
class Ranking:
    """
    The order of one query's candidates. Every tuple but `order` and `traces` has one entry per candidate, as given.

    :param order: Candidate indices, best first.
    :param scores: Higher is better, in agreement with `order`. `log_probability`: of the candidate's identifier at the
        first answer position, normalised over the candidates. `reciprocal_rank`: 1, 1/2, 1/3, ..., where there are no
        comparable probabilities (generated permutations, and lists ranked in several windows).
    :param score_kind: Which of the two.
    :param kept_tokens: Visual tokens of each candidate that reached the end of the last pass it was in.
    :param total_tokens: Visual tokens of each candidate before pruning, and before a method that resizes images.
    :param traces: One trace per pass.
    :param timings: Seconds: `encode` (vision encoder), `rank` (prompts and decoder), `total`.
    :param fallback: Whether the model left out candidates, which then stand at the end in first-stage order.
    :param metadata: `scoring`, `windows` (number of passes), `pruner` (a name), `calibrating` (whether an unpruned pass
        was used to measure the model) and, for `generate`, `texts` (what the model wrote) and `missing` (how many
        candidates it left out).
    :param images: The candidates' images, for pictures of the ranking.
    """

    order: tuple[int, ...]
    scores: tuple[float, ...]
    score_kind: ScoreKind
    kept_tokens: tuple[int, ...]
    total_tokens: tuple[int, ...]
    traces: tuple[PruningTrace, ...] = field(repr=False)
    timings: dict[str, float]
    fallback: bool
    metadata: dict[str, Any]
    images: tuple[Image.Image, ...] = field(default=(), repr=False, compare=False)

    def _repr_html_(self) -> str:
        """What notebooks show: a table, best candidate first."""
        return ranking_html(self)


@dataclass(frozen=True)
class _PassResult:
    """One pass over one window; indices are the window's."""

    order: tuple[int, ...]
    log_probabilities: tuple[float, ...] | None
    trace: PruningTrace
    missing: int = 0
    text: str | None = None


class ListwiseVLM:
    """
    Ranks images by a query with a vision-language model that sees all of them in one prompt.

    One instance may be used from several threads; passes through the model take turns.

    :param model: A loaded model of a supported family.
    :param processor: Its processor.
    :param template: The words around the images.
    :param schedule: Where to prune and how far to trust attention; default: the model's stored or published one, and if
        there is neither, the model measures itself on its first queries, which are then not pruned.
    :param num_pruning_layers: `K`, for a schedule made from a measured profile.
    :param layer_gap: Least distance of two pruning layers, for the same.
    :param max_pixels: The most pixels an image is given; default: the processor's own.
    :param vision_cache_bytes: Budget for encodings of images seen before; 0 keeps none.
    :raises ValueError: If the model's family is not supported or a parameter is out of range.
    """

    def __init__(
        self,
        model: Any,
        processor: Any,
        *,
        template: PromptTemplate | None = None,
        schedule: PruningSchedule | None = None,
        num_pruning_layers: int = 4,
        layer_gap: int = 2,
        max_pixels: int | None = None,
        vision_cache_bytes: int = 512 * 2**20,
    ) -> None:
        self.model = model.eval()
        self.processor = processor
        self._family = family_of(model)
        self._prompts = PromptBuilder(processor, template)
        self._given_schedule = schedule
        self._num_pruning_layers = num_pruning_layers
        self._layer_gap = layer_gap
        self._size = _pixel_range(processor.image_processor, max_pixels)
        self._smaller_size = {**self._size, "shortest_edge": 1}
        self._cache = VisionCache(vision_cache_bytes)
        self._name = str(model.config.name_or_path or type(model).__name__)
        self._layers = len(self._family.layers(model))
        # A model made in memory has no name by which it could be told from another one.
        self._store = ProfileStore(self._name, model.config) if model.config.name_or_path else None
        self._profile: EntropyProfile | None = None
        self._profile_loaded = False
        self._lock = threading.RLock()

    @classmethod
    def load(
        cls,
        name_or_path: str,
        *,
        device: str | torch.device | None = None,
        dtype: str | torch.dtype | None = None,
        token: str | None = None,
        model_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> "ListwiseVLM":
        """
        Load a model and its processor.

        :param name_or_path: Hub name or folder.
        :param device: Where to run; default: an accelerator if there is one.
        :param dtype: Number format; default: float32 on a CPU, where half precision can be many times slower, and the
            checkpoint's own elsewhere.
        :param token: Access token for the hub.
        :param model_kwargs: More arguments for `from_pretrained`, such as `attn_implementation`, `revision` or
            `device_map` (which replaces `device`).
        :param kwargs: Parameters of this class.
        :raises ValueError: If the model's family is not supported.
        """
        model_kwargs = dict(model_kwargs or {})
        hub = {name: model_kwargs[name] for name in _HUB_ARGUMENTS if name in model_kwargs}
        model_type = AutoConfig.from_pretrained(name_or_path, token=token, **hub).model_type
        if model_type not in FAMILIES:
            supported = ", ".join(sorted(FAMILIES))
            raise ValueError(f"{name_or_path} is a model of type {model_type!r}; supported types: {supported}.")
        target = torch.device(device) if device is not None else _best_device()
        model_kwargs.setdefault("dtype", dtype or (torch.float32 if target.type == "cpu" else "auto"))
        model: Any = AutoModelForImageTextToText.from_pretrained(name_or_path, token=token, **model_kwargs)
        if "device_map" not in model_kwargs:
            model = model.to(target)
        return cls(model, AutoProcessor.from_pretrained(name_or_path, token=token, **hub), **kwargs)

    @property
    def device(self) -> torch.device:
        """Where the model's first layers are."""
        device: torch.device = self.model.device
        return device

    def rank(
        self,
        query: str,
        images: Sequence[Image.Image],
        reference_image: Image.Image | None = None,
        *,
        pruner: str | Pruner | None = "radical",
        keep_ratio: float | None = None,
        scoring: Scoring = "logits",
        window_size: int = 20,
        window_step: int = 10,
    ) -> Ranking:
        """
        Rank candidates, given in first-stage order.

        More candidates than a window holds are ranked in overlapping windows from the back of the list to its front, as
        RankGPT does (https://arxiv.org/abs/2304.09542); only the top of that order is certain.

        :param query: The query; for a composed query the modification text.
        :param images: The candidates.
        :param reference_image: A composed query's reference image; it is never pruned.
        :param pruner: A method's name (one of `PRUNERS`), a pruner, or `None` for no pruning.
        :param keep_ratio: Share of visual tokens that reaches the end, in (0, 1], for a method given by name; default:
            the given schedule's own, or 0.2.
        :param scoring: `"logits"`: one forward pass per window, scored by the identifiers' probabilities at the first
            answer position. `"generate"`: a written permutation.
        :param window_size: Candidates per pass, at most 52.
        :param window_step: How far the window moves; at most its size.
        :returns: The order; empty for no candidates.
        :raises ValueError: If the query is blank or a parameter is out of range.
        """
        if scoring not in get_args(Scoring):
            raise ValueError(f"Unknown scoring {scoring!r}: choose one of {', '.join(get_args(Scoring))}.")
        if not query.strip():
            raise ValueError("The query is blank.")
        if keep_ratio is not None:
            check_keep_ratio(keep_ratio)
        spans = windows(len(images), window_size, window_step)
        started = time.perf_counter()
        with self._lock, torch.inference_mode():
            method, measuring = self._method(pruner, keep_ratio)
            resizes = isinstance(method, ImagePruner)
            encodings = [] if resizes else self.encode(images, attention=_needs_attention(method))
            total = self._token_counts(images) if resizes else tuple(len(encoding.tokens) for encoding in encodings)
            reference = None if reference_image is None else self.encode([reference_image])[0]
            encoding = time.perf_counter() - started
            order = list(range(len(images)))
            kept = list(total)
            results, calibrating = [], False
            for start, end in spans:
                members = order[start:end]
                method, measuring = self._method(pruner, keep_ratio)
                calibrating |= measuring
                if isinstance(method, ImagePruner):
                    resizing = time.perf_counter()
                    window = self._encode_smaller(query, [images[member] for member in members], method)
                    encoding += time.perf_counter() - resizing
                else:
                    window = [encodings[member] for member in members]
                result = self._pass(query, window, reference, method, scoring)
                if measuring:
                    self._learn(result.trace)
                result.trace.members = tuple(members)
                for member, count in zip(members, result.trace.kept_per_candidate, strict=True):
                    kept[member] = count
                order[start:end] = [members[position] for position in result.order]
                results.append(result)
        seconds = time.perf_counter() - started
        scores, kind = _scores(order, results)
        metadata: dict[str, Any] = {
            "scoring": scoring,
            "windows": len(spans),
            "pruner": pruner if isinstance(pruner, str | None) else type(pruner).__name__,
            "calibrating": calibrating,
        }
        missing = sum(result.missing for result in results)
        if scoring == "generate":
            metadata |= {"texts": [result.text for result in results], "missing": missing}
        return Ranking(
            order=tuple(order),
            scores=scores,
            score_kind=kind,
            kept_tokens=tuple(kept),
            total_tokens=total,
            traces=tuple(result.trace for result in results),
            timings={"encode": encoding, "rank": seconds - encoding, "total": seconds},
            fallback=missing > 0,
            metadata=metadata,
            images=tuple(images),
        )

    def encode(
        self, images: Sequence[Image.Image], *, tokens: Sequence[float] | None = None, attention: bool = False
    ) -> list[ImageEncoding]:
        """
        Encode images, reusing what is known of images seen before.

        :param images: Any size and mode.
        :param tokens: How many visual tokens each image shall have, as closely as grids allow; see `smaller_grids`.
            Default: as many as the model gives it.
        :param attention: Whether the encodings shall hold the attention that tokens received in the encoder.
        """
        prepared = [self._prepare(image) for image in images]
        sizes = [self._size] * len(prepared)
        if tokens is not None:
            own = [self._grid(image) for image in prepared]
            for place, grid in enumerate(smaller_grids(own, tokens)):
                if grid != own[place]:
                    prepared[place] = self._resize(prepared[place], grid)
                    sizes[place] = self._smaller_size
        keys = [image_key(image, f"{self._name}\0{size}") for image, size in zip(prepared, sizes, strict=True)]
        found = {key: hit for key in keys if (hit := self._cached(key, attention)) is not None}
        with self._lock, torch.inference_mode():
            for size in (self._size, self._smaller_size):
                jobs = zip(keys, prepared, sizes, strict=True)
                missing = {key: image for key, image, own in jobs if own == size and key not in found}
                found |= self._encode_missing(missing, size, attention)
        return [found[key] for key in keys]

    def _encode_missing(
        self, missing: Mapping[str, Image.Image], size: dict[str, int], attention: bool
    ) -> dict[str, ImageEncoding]:
        """Run the vision encoder on prepared images, by key, and remember what comes out."""
        processor, found = self.processor.image_processor, {}
        for batch in _batches(list(missing.items()), size["longest_edge"]):
            inputs = processor(images=[image for _, image in batch], size=size, return_tensors="pt")
            pixels, grids = inputs["pixel_values"].to(self.device), inputs["image_grid_thw"].to(self.device)
            encoded = self._family.encode(self.model, pixels, grids, attention=attention)
            for (key, _), encoding in zip(batch, encoded, strict=True):
                found[key] = encoding
                self._cache.put(key, encoding)
        return found

    def _cached(self, key: str, attention: bool) -> ImageEncoding | None:
        hit = self._cache.get(key)
        return None if hit is not None and attention and hit.attention is None else hit

    @property
    def _factor(self) -> int:
        """Pixels per visual token along one side."""
        processor = self.processor.image_processor
        return int(processor.patch_size * processor.merge_size)

    def _prepare(self, image: Image.Image) -> Image.Image:
        return fit_for_encoder(image, self._factor)

    def _resize(self, image: Image.Image, grid: tuple[int, int]) -> Image.Image:
        """Exactly as many pixels as a grid of visual tokens covers, so that the processor leaves them as they are."""
        rows, columns = grid
        return image.resize((columns * self._factor, rows * self._factor), Image.Resampling.BICUBIC)

    def _grid(self, prepared: Image.Image) -> tuple[int, int]:
        return self._family.token_grid(self.processor.image_processor, self._size, *prepared.size)

    def _token_counts(self, images: Sequence[Image.Image]) -> tuple[int, ...]:
        """Visual tokens of each image at its full size."""
        return tuple(rows * columns for rows, columns in (self._grid(self._prepare(image)) for image in images))

    def _encode_smaller(self, query: str, images: Sequence[Image.Image], method: ImagePruner) -> list[ImageEncoding]:
        """Encode one window's candidates at the sizes that a method chooses."""

        def full_size() -> CandidateTokens:
            return self._candidate_tokens(query, self.encode(images))

        targets = method.token_targets(CandidateImages(self._token_counts(images), full_size))
        return self.encode(images, tokens=targets)

    def _candidate_tokens(self, query: str, candidates: Sequence[ImageEncoding]) -> CandidateTokens:
        """What `prune` would tell a method of these candidates, without a prompt."""
        prompt = self._prompts.build(query, [len(candidate.tokens) for candidate in candidates])
        words = prompt.input_ids[0, prompt.layout.query_positions].to(self.device)
        query_tokens = self.model.get_input_embeddings()(words)
        return CandidateTokens(
            tokens=torch.cat([candidate.tokens for candidate in candidates]),
            candidate_index=prompt.layout.candidate_index.to(self.device),
            query_embedding=query_direction(query_tokens),
            query_tokens=query_tokens,
            sizes=prompt.layout.tokens_per_candidate,
        )

    def schedule(self, keep_ratio: float | None = None) -> PruningSchedule | None:
        """
        The model's pruning schedule: the given one, else one from its stored profile, else the published one.

        :param keep_ratio: `R`, in (0, 1]; default: the given schedule's own, or 0.2.
        :returns: `None` if the model must be calibrated first.
        """
        if self._given_schedule is not None:
            given = self._given_schedule
            return given if keep_ratio is None else given.with_keep_ratio(keep_ratio)
        ratio = DEFAULT_KEEP_RATIO if keep_ratio is None else keep_ratio
        profile = self._stored_profile()
        if profile is not None and profile.complete:
            first = self._family.first_complete_layer(self.model)
            return profile.schedule(
                keep_ratio=ratio, k=self._num_pruning_layers, gap=self._layer_gap, first_layer=first
            )
        try:
            return PruningSchedule.published(self._name, ratio)
        except LookupError:
            return None

    def alternative_schedule(
        self,
        strategy: str = "alpha-maximin",
        *,
        keep_ratio: float | None = None,
        k: int | None = None,
        gap: int | None = None,
        seed: int = 0,
    ) -> PruningSchedule:
        """
        A schedule from the model's measured profile with other layers than its own, to compare with.

        :param strategy: How layers are chosen: one of `STRATEGIES`.
        :param keep_ratio: `R`, in (0, 1]; default: the own schedule's, or 0.2.
        :param k: Number of pruning layers; default: the model's setting.
        :param gap: Least distance between two of them; default: the model's setting.
        :param seed: For the strategy `"random"`.
        :raises LookupError: If no profile is known.
        :raises ValueError: If the strategy is unknown or a parameter is out of range.
        """
        own = self.schedule(keep_ratio)
        if own is None or own.entropies is None:
            raise LookupError(f"The entropy profile of {self._name} is not known; calibrate the model first.")
        return PruningSchedule.from_entropies(
            own.entropies,
            keep_ratio=own.keep_ratio,
            k=self._num_pruning_layers if k is None else k,
            gap=self._layer_gap if gap is None else gap,
            first_layer=self._family.first_complete_layer(self.model),
            model=self._name,
            strategy=strategy,
            seed=seed,
        )

    def calibrate(self, sets: Iterable[CalibrationSet]) -> PruningSchedule:
        """
        Measure the model's entropy profile on unpruned passes, store it, and use it from now on.

        :param sets: A handful of queries with their candidates, at most 52 each.
        :returns: The schedule with the default keep ratio.
        :raises ValueError: If there are no sets.
        """
        probe = EntropyProbe(self._layers)
        measured = []
        with self._lock, torch.inference_mode():
            for query, images, *rest in sets:
                reference = self.encode([rest[0]])[0] if rest and rest[0] is not None else None
                result = self._pass(query, self.encode(images), reference, probe, "logits")
                measured.append(EntropyProbe.entropies(result.trace))
            if not measured:
                raise ValueError("Calibration needs at least one query-candidate set.")
            self._remember(EntropyProfile.average(self._name, measured, complete=True))
        self._given_schedule = None
        schedule = self.schedule()
        assert schedule is not None
        return schedule

    def _method(self, pruner: str | Pruner | None, keep_ratio: float | None) -> tuple[Pruner | None, bool]:
        """The pruner of the next pass, and whether that pass must measure the model instead of pruning."""
        if pruner is None or isinstance(pruner, Pruner):
            return pruner, False
        schedule = self.schedule(keep_ratio)
        if schedule is None and pruner_type(pruner).needs_schedule:
            return EntropyProbe(self._layers), True
        if keep_ratio is None:
            keep_ratio = DEFAULT_KEEP_RATIO if schedule is None else schedule.keep_ratio
        return build_pruner(pruner, schedule, keep_ratio=keep_ratio, depth=self._layers), False

    def _learn(self, trace: PruningTrace) -> None:
        entropies = EntropyProbe.entropies(trace)
        known = self._stored_profile()
        if known is None:
            self._remember(EntropyProfile(self._name, entropies, 1, complete=CALIBRATION_SETS <= 1))
        else:
            self._remember(known.with_set(entropies, wanted=CALIBRATION_SETS))

    def _stored_profile(self) -> EntropyProfile | None:
        with self._lock:
            if not self._profile_loaded:
                self._profile_loaded = True
                self._profile = None if self._store is None else self._store.load(self._layers)
            return self._profile

    def _remember(self, profile: EntropyProfile) -> None:
        self._profile, self._profile_loaded = profile, True
        if self._store is not None:
            self._store.save(profile)

    def _pass(
        self,
        query: str,
        candidates: Sequence[ImageEncoding],
        reference: ImageEncoding | None,
        pruner: Pruner | None,
        scoring: Scoring,
    ) -> _PassResult:
        """One prompt through the model."""
        counts = [len(candidate.tokens) for candidate in candidates]
        prompt = self._prompts.build(query, counts, None if reference is None else len(reference.tokens))
        encodings = [*candidates] if reference is None else [*candidates, reference]
        inputs = {
            "input_ids": prompt.input_ids.to(self.device),
            **self._family.vision_inputs(encodings, prompt.token_types.to(self.device)),
        }
        run = self._score if scoring == "logits" else self._write
        attention = None
        if _needs_attention(pruner):
            received = [candidate.attention for candidate in candidates if candidate.attention is not None]
            attention = torch.cat(received)
        # What resizes images has done so by now.
        inside = None if isinstance(pruner, ImagePruner) else pruner
        with prune(self.model, inside, prompt.layout, encoder_attention=attention) as trace:
            trace.patch_grids = torch.stack([candidate.grid for candidate in candidates])
            return run(inputs, prompt, trace)

    def _score(self, inputs: dict[str, Any], prompt: Prompt, trace: PruningTrace) -> _PassResult:
        logits = self.model(**inputs, logits_to_keep=1, use_cache=False).logits[0, -1]
        identifiers = list(self._prompts.identifier_ids[: prompt.layout.candidates])
        scores = logits[identifiers].float().log_softmax(-1).tolist()
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        return _PassResult(tuple(order), tuple(scores), trace)

    def _write(self, inputs: dict[str, Any], prompt: Prompt, trace: PruningTrace) -> _PassResult:
        tokenizer = self.processor.tokenizer
        output = self.model.generate(
            **inputs,
            attention_mask=torch.ones_like(inputs["input_ids"]),
            pad_token_id=tokenizer.pad_token_id,
            max_new_tokens=MAX_NEW_TOKENS,
            do_sample=False,
            # Sampling settings of the checkpoint mean nothing to a greedy answer, and leaving them in warns about it.
            temperature=None,
            top_p=None,
            top_k=None,
        )
        text = tokenizer.decode(output[0, prompt.layout.length :], skip_special_tokens=True)
        parsed = parse_permutation(text, prompt.layout.candidates)
        return _PassResult(parsed.order, None, trace, missing=parsed.missing, text=text)


def _needs_attention(pruner: Pruner | None) -> bool:
    return isinstance(pruner, InputPruner) and pruner.needs_encoder_attention


def windows(count: int, size: int, step: int) -> list[tuple[int, int]]:
    """
    Spans of a list to rank one after the other: from its back to its front, the last one starting at 0.

    :param count: Length of the list.
    :param size: Candidates per window, at most 52.
    :param step: How far the window moves, at most `size`, so that no candidate is passed over.
    :returns: Pairs of start and end.
    :raises ValueError: If `size` or `step` is out of range.
    """
    if not 1 <= size <= len(IDENTIFIERS):
        raise ValueError(f"The window size must be 1 to {len(IDENTIFIERS)}, got {size}.")
    if not 1 <= step <= size:
        raise ValueError(f"The window step must be 1 to the window size ({size}), got {step}.")
    if count == 0:
        return []
    ends = range(count, min(size, count) - 1, -step)
    spans = [(max(end - size, 0), end) for end in ends]
    if spans[-1][0] > 0:
        spans.append((0, spans[-1][1] - step))
    return spans


def _scores(order: Sequence[int], results: Sequence[_PassResult]) -> tuple[tuple[float, ...], ScoreKind]:
    if len(results) == 1 and results[0].log_probabilities is not None:
        return results[0].log_probabilities, "log_probability"
    ranks = {candidate: rank for rank, candidate in enumerate(order, 1)}
    return tuple(1 / ranks[candidate] for candidate in range(len(order))), "reciprocal_rank"


def _batches(items: list[tuple[str, Image.Image]], max_pixels: int) -> Iterator[list[tuple[str, Image.Image]]]:
    """Consecutive items with a bounded number of pixels, at least one each."""
    batch: list[tuple[str, Image.Image]] = []
    pixels = 0
    for key, image in items:
        size = min(image.width * image.height, max_pixels)
        if batch and pixels + size > _PIXELS_PER_BATCH:
            yield batch
            batch, pixels = [], 0
        batch.append((key, image))
        pixels += size
    if batch:
        yield batch


def _pixel_range(image_processor: Any, max_pixels: int | None) -> dict[str, int]:
    """The image processor's `size`: despite the names, numbers of pixels of the whole image."""
    least, most = int(image_processor.size["shortest_edge"]), int(image_processor.size["longest_edge"])
    if max_pixels is not None:
        if max_pixels < 1:
            raise ValueError(f"max_pixels must be positive, got {max_pixels}.")
        least, most = min(least, max_pixels), max_pixels
    return {"shortest_edge": least, "longest_edge": most}


def _best_device() -> torch.device:
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator or torch.device("cpu")
