# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""
Stage 2 of `catalog-vlm-tiny`: the decoder learns to rank.

A set of look-alikes is encoded once and many queries run behind it: text queries, composed queries with a reference
image, and text queries whose whole permutation is spelled out. Beside the answer's cross-entropy, auxiliary losses
break the plateau on which such models otherwise stay: the residual of an image's tokens must tell that image's
identifier (binding); attention is guided, annealed to nothing: query tokens of one middle layer to what they speak
about (grounding; two layers on they must tell whose tokens these were: votes), the last rows of two late layers to the
target's evidence tokens, so that the answer is read late. The vision encoder and the word embeddings stay as
stage 1 left them; background tokens are dropped at random during most of the run, which is faster.

Run: `python -m training.train_listwise`. Resumes from `training/runs/listwise.pt`.
"""

import argparse
import hashlib
import os
import random
import signal
import socket
import threading
import time
from dataclasses import astuple, dataclass
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from rich.progress import track
from torch import Tensor, distributed, multiprocessing
from transformers import Qwen2Tokenizer, Qwen3VLForConditionalGeneration

from radical_haystack.catalog import Modification, Outfit, Query, describe, modification
from training.benchmark import evaluate, load_benchmark
from training.grounding import SetTruth, Vocabulary, reference_truth, word_truth
from training.layout import IDENTIFIERS, Layout
from training.optim import build_optimizers
from training.packed import PackedDecoder, Segment, vision_features
from training.pool import FAMILY_SIZE, HUBS, RUNS, Pool, draw_pool
from training.train_vision import CHECKPOINT as VISION_CHECKPOINT
from training.train_vision import training_tokenizer
from training.vlm_model import (
    MODEL_FOLDER,
    TOKENS_PER_IMAGE,
    build_model,
    build_processor,
    save_folder,
)

CHECKPOINT = RUNS / "listwise.pt"
PROCESSES = 2
WATCHED = 24
EVALUATE_EVERY = 300
WARM_SHARE = 0.4
BINDING_LAYER = 4
GROUNDED_LAYER = 5
VOTE_LAYER = 7
GUIDED_LAYERS = (7, 9)
GUIDED_HEADS = 2
GROUPS = ("text", "spelled", "composed")
GROUP_WEIGHTS = (1.0, 0.5, 2.5)
CUT_LAYER = 5
CUT_SHARE = 0.2
HUB_SHARE = 0.7
MASS_FLOOR = 1e-4
VISUAL_NORM = 14.0
EMBEDDING_FACTOR = 6.0


@dataclass
class Task:
    """
    One query behind a set: its text, the reference's row in the pool if any, each candidate's relevance, that of a full
    match, and whether the text describes what is wanted, rather than a change.
    """

    text: str
    reference: int | None
    relevance: list[int]
    best: int
    described: bool


def pool_features(model, images: np.ndarray, batch: int = 64) -> list[Tensor]:
    """Vision outputs of a whole pool in float16, `[merger, deepstack...]`, each `(n, tokens, hidden)`."""
    parts = []
    with torch.no_grad():
        for start in track(range(0, len(images), batch), "encoding the pool"):
            pixels = torch.from_numpy(images[start : start + batch]).permute(0, 3, 1, 2).float() / 127.5 - 1
            parts.append([f.half() for f in vision_features(model.model.visual, pixels)])
    return [torch.cat(column) for column in zip(*parts, strict=True)]


def stored_features(model, images: np.ndarray) -> list[Tensor]:
    """`pool_features`, kept on disk for this vision encoder, so that a resumed run starts at once."""
    weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.model.visual.parameters())
    path = RUNS / f"listwise-features-{hashlib.sha256(weights).hexdigest()[:12]}.pt"
    if not path.exists():
        torch.save(pool_features(model, images), path)
    features = torch.load(path, weights_only=True, mmap=True)
    assert len(features[0]) == len(images), "the stored features are of another pool: delete them"
    return features


@torch.no_grad()
def balance(model, images: np.ndarray) -> None:
    """
    Bring stage 1's visual tokens and embeddings to lengths that fit a fresh decoder, whose layers add nothing yet.

    Directions, and with them all cosines, stay. Were the inputs shorter, or the layers' first outputs random, what the
    tokens show would drown in the residual before any layer has learned to look for it.
    """
    visual = model.model.visual
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1
    factor = VISUAL_NORM / vision_features(visual, pixels)[0].norm(dim=-1).mean()
    for merger in (visual.merger, *visual.deepstack_merger_list):
        merger.linear_fc2.weight *= factor
        merger.linear_fc2.bias *= factor
    model.model.language_model.embed_tokens.weight *= EMBEDDING_FACTOR
    for layer in model.model.language_model.layers:
        layer.mlp.down_proj.weight.zero_()
        layer.self_attn.o_proj.weight.zero_()


def distance(a: Outfit, b: Outfit) -> int:
    """Number of attribute values in which two outfits with the same slots differ, 99 for other slots."""
    if [g.slot for g in a.garments] != [g.slot for g in b.garments]:
        return 99
    return sum(
        x != y for g, h in zip(a.garments, b.garments, strict=True) for x, y in zip(astuple(g), astuple(h), strict=True)
    )


def graded(query: Query | Modification, outfits: list[Outfit], reference: int | None) -> Task:
    relevance = [query.relevance(outfit) for outfit in outfits]
    return Task(f" {query.text}", reference, relevance, query.max_relevance, isinstance(query, Query))


def text_task(outfits: list[Outfit], target: int, rng: random.Random, *, full: bool) -> Task:
    return graded(describe(outfits[target], rng, full=full), outfits, None)


def composed_task(pool: Pool, family: int, outfits: list[Outfit], target: int, rng: random.Random) -> Task | None:
    """A reference of the same family one to three changes away from the target, or `None` where there is none."""
    rows = range(family * FAMILY_SIZE, (family + 1) * FAMILY_SIZE)
    near = [row for row in rows if 1 <= distance(pool.outfits[row], outfits[target]) <= 3]
    if not near:
        return None
    weights = [len(near) if row - rows[0] < HUBS else 1 for row in near]
    reference = rng.choices(near, weights)[0]
    query = modification(pool.outfits[reference], outfits[target], rng)
    return graded(query, outfits, reference)


def candidate_count(share: float, rng: random.Random) -> int:
    """The curriculum on the number of candidates."""
    if share < 0.16:
        return rng.randint(3, 5)
    if share < 0.29:
        return rng.randint(4, 8)
    if share < 0.44:
        return rng.randint(5, 14)
    return rng.choice((8, 14, 20, 20, 20, 26))


def kept_tokens(cover: np.ndarray, count: int, generator: torch.Generator) -> Tensor:
    """Ascending token numbers per image, `(..., count)`: garment tokens first, then random background."""
    on_garment = torch.from_numpy(cover).any(-2)
    priority = on_garment.float() + torch.rand(on_garment.shape, generator=generator)
    return priority.topk(count, dim=-1).indices.sort(-1).values


def evidence_first(labels: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """
    The image tokens of each set that a truthful pruner keeps: pockets, then as many from every garment of an image.

    :param labels: Label of every present token (see `Pool.labels`), `(B, N, T)`.
    :param count: How many of a set's `N * T` tokens.
    :returns: Token numbers, `(B, count)`.
    """
    noise = torch.rand(labels.shape, generator=generator)
    priority = -noise
    for garment in (1, 3):
        on = (labels == garment) | (labels == garment + 1)
        rank = noise.masked_fill(~on, 2.0).argsort(-1).argsort(-1)
        priority = torch.where(on, 1 - rank / TOKENS_PER_IMAGE + 2.0 * (labels == garment + 1), priority)
    return priority.flatten(1).topk(count, dim=-1).indices


class Batch:
    """Candidate sets of one size with their query groups, ready for the packed decoder."""

    def __init__(
        self, pool, features, layout, vocabulary, rng, generator, *, sets, candidates, tokens, queries, late
    ) -> None:
        self.pool, self.vocabulary = pool, vocabulary
        families = [rng.randrange(len(pool.outfits) // FAMILY_SIZE) for _ in range(sets)]
        self.rows = np.array([rng.sample(range(f * FAMILY_SIZE, (f + 1) * FAMILY_SIZE), candidates) for f in families])
        outfits = [[pool.outfits[r] for r in rows] for rows in self.rows]
        self.kept = kept_tokens(pool.cover[self.rows], tokens, generator)
        self.letters = torch.stack([self._letters(candidates, rng) for _ in range(sets)])
        self.letter_ids = torch.tensor(layout.letters)[self.letters]
        ids, positions, index = layout.prefix(self.letters, self.kept)
        self.prefix = Segment(ids, positions, self._prefix_features(features), index)
        evidence = torch.from_numpy(pool.cover[self.rows]).any(2).gather(2, self.kept)
        self.evidence = evidence
        start = layout.next_position(candidates)
        text, spelled, composed = [], [], []
        for family, members in zip(families, outfits, strict=True):
            one = partial(self._target, len(text), rng)
            text.append([text_task(members, one(), rng, full=rng.random() < 0.8) for _ in range(queries[0])])
            spelled.append([text_task(members, one(), rng, full=True)])
            made = [composed_task(pool, family, members, one(), rng) for _ in range(queries[1])]
            composed.append([task for task in made if task is not None])
        shown = partial(self._reference, pool, features, tokens, generator)
        labels = np.take_along_axis(pool.labels[self.rows], self.kept.numpy(), 2)
        self.cut = self._cut(torch.from_numpy(labels), generator) if late else None
        self.truths = [SetTruth(members, label) for members, label in zip(outfits, labels, strict=True)]
        self.groups, self.tasks, self.ends, self.answers, self.grounding = [], [], [], [], []
        self._add(layout, text, start, shown, spell=False)
        self._add(layout, spelled, start, shown, spell=True)
        least = min(map(len, composed))
        if least:
            self._add(layout, [made[:least] for made in composed], start, shown, spell=False)

    def _target(self, number: int, rng: random.Random) -> int:
        """A candidate of a set to ask for, mostly one of the family's hubs, if the set has any."""
        hubs = np.flatnonzero(self.rows[number] % FAMILY_SIZE < HUBS)
        if len(hubs) and rng.random() < HUB_SHARE:
            return int(rng.choice(hubs))
        return rng.randrange(self.rows.shape[1])

    def _cut(self, labels: Tensor, generator: torch.Generator) -> tuple[int, Tensor]:
        """What stays behind the middle layer: all text and a share of the image tokens, the evidence first."""
        sets, candidates, _ = labels.shape
        count = round(CUT_SHARE * candidates * TOKENS_PER_IMAGE)
        stays = torch.ones(sets, self.prefix.ids.shape[2], dtype=torch.bool)
        index = self.prefix.visual_index[:, 0]
        stays.scatter_(1, index, False)
        stays.scatter_(1, index.gather(1, evidence_first(labels, count, generator)), True)
        return CUT_LAYER, stays.nonzero()[:, 1].view(sets, -1)

    @staticmethod
    def _letters(count: int, rng: random.Random) -> Tensor:
        if rng.random() < 0.5:
            return torch.arange(count)
        return torch.tensor(rng.sample(range(len(IDENTIFIERS)), count))

    def _prefix_features(self, features: list[Tensor]) -> list[Tensor]:
        sets = self.rows.shape[0]
        index = self.kept[..., None].expand(-1, -1, -1, features[0].shape[-1])
        rows = torch.from_numpy(self.rows)
        return [f[rows].gather(2, index).float().reshape(sets, 1, -1, f.shape[-1]) for f in features]

    @staticmethod
    def _reference(pool: Pool, features: list[Tensor], count: int, generator: torch.Generator, tasks: list[Task]):
        """Which tokens of the tasks' reference images are present, `(Q, V)`, and their features."""
        rows = torch.tensor([task.reference for task in tasks])
        kept = kept_tokens(pool.cover[rows.numpy()], count, generator)
        index = kept[..., None].expand(-1, -1, features[0].shape[-1])
        return kept, [f[rows].gather(1, index).float() for f in features]

    def _add(self, layout: Layout, tasks: list[list[Task]], start: int, shown, *, spell: bool) -> None:
        sets, count = len(tasks), len(tasks[0])
        flat = [task for made in tasks for task in made]
        answers = [self._spelled(layout, number // count, task) if spell else [] for number, task in enumerate(flat)]
        kept, visual = shown(flat) if flat[0].reference is not None else (None, None)
        encoded = [layout.encode(task.text) for task in flat]
        ids, positions, index, ends, words = layout.segments(encoded, start, reference=kept, answers=answers)
        if visual is not None:
            visual = [f.view(sets, count, *f.shape[1:]) for f in visual]
            index = index.view(sets, count, -1)
        self.groups.append(Segment(ids.view(sets, count, -1), positions.view(3, sets, count, -1), visual, index))
        self.grounding.append(self._grounding(flat, encoded, words, kept, index))
        self.tasks.append(flat)
        self.ends.append(ends.view(sets, count))
        self.answers.append(answers)

    def _grounding(self, tasks: list[Task], encoded, words: Tensor, kept: Tensor | None, index: Tensor | None):
        """
        Rows `(n,)` into the flattened `(B * Q * L)` query tokens, the mask `(n, N * T)` each looks at, and the
        candidates `(n, N)` it speaks for.
        """
        length, per_set = words.shape[1], len(tasks) // len(self.truths)
        rows, masks, votes = [], [], []
        for number, (task, ids) in enumerate(zip(tasks, encoded, strict=True)):
            truth = self.truths[number // per_set]
            first = number * length + int(words[number].nonzero()[0])
            words_found = word_truth(truth, self.vocabulary, ids, described=task.described)
            found = [(first + place, mask, vote) for place, mask, vote in words_found]
            if kept is not None:
                shown = number * length + int(index.view(len(tasks), -1)[number, 0])
                labels = self.pool.labels[task.reference][kept[number].numpy()]
                matches = reference_truth(truth, self.pool.outfits[task.reference], labels)
                found += [(shown + token, mask, vote) for token, mask, vote in matches]
            rows += [row for row, _, _ in found]
            masks += [mask.reshape(-1) for _, mask, _ in found]
            votes += [vote for _, _, vote in found]
        return torch.tensor(rows), torch.from_numpy(np.stack(masks)), torch.from_numpy(np.stack(votes))

    def _spelled(self, layout: Layout, number: int, task: Task) -> list[int]:
        order = sorted(range(len(task.relevance)), key=lambda k: -task.relevance[k])
        ids: list[int] = []
        for candidate in order:
            ids += [*(layout.separator if ids else []), int(self.letter_ids[number, candidate])]
        return [*ids, layout.end]

    def targets(self, group: int) -> tuple[Tensor, Tensor]:
        """Soft target over candidates `(B, Q, N)` and full-match mask."""
        sets = self.rows.shape[0]
        relevance = torch.tensor([task.relevance for task in self.tasks[group]], dtype=torch.float32)
        best = torch.tensor([task.best for task in self.tasks[group]])[:, None]
        full = (relevance >= best).float()
        soft = 0.7 * full / full.sum(-1, keepdim=True) + 0.3 * (1.5 * relevance).softmax(-1)
        shape = (sets, -1, relevance.shape[-1])
        return soft.view(shape), full.view(shape)


def weighted_mean(per_group: list[Tensor]) -> Tensor:
    """The mean over the query groups of a batch; composed queries are the hardest to learn."""
    weights = torch.tensor(GROUP_WEIGHTS[: len(per_group)])
    return (torch.stack(per_group) * weights).sum() / weights.sum()


def binding_loss(model, batch: Batch, layout: Layout, residual: Tensor) -> Tensor:
    """The residual of image tokens must tell the image's identifier."""
    text = model.model.language_model
    index = batch.prefix.visual_index[0, 0]
    hidden = text.norm(residual[:, 0, index])
    logits = hidden @ text.embed_tokens.weight[torch.tensor(layout.letters)].T
    sets, _, tokens = batch.kept.shape
    expected = batch.letters[..., None].expand(-1, -1, tokens).reshape(sets, -1)
    return F.cross_entropy(logits.flatten(0, 1), expected.flatten())


def guidance_loss(batch: Batch, attention: dict[int, list[Tensor]], fulls: list[Tensor]) -> Tensor:
    """Mass of the last rows' attention on the evidence tokens of the full matches, in the guided heads."""
    parts = []
    for full, *per_layer in zip(fulls, *(attention[layer] for layer in GUIDED_LAYERS), strict=True):
        wanted = torch.zeros(*full.shape[:2], batch.prefix.ids.shape[2])
        index = batch.prefix.visual_index.expand(-1, full.shape[1], -1)
        wanted.scatter_(2, index, (full[..., None] * batch.evidence[:, None]).flatten(2))
        if batch.cut is not None:
            wanted = wanted.gather(2, batch.cut[1][:, None].expand(-1, full.shape[1], -1))
        for weights in per_layer:
            mass = weights[..., :GUIDED_HEADS, :]
            parts.append(-(mass * wanted[:, :, None, None]).sum(-1).clamp(min=MASS_FLOOR).log().mean())
    return torch.stack(parts).mean()


def grounding_loss(batch: Batch, attention: list[Tensor]) -> Tensor:
    """Mass of the query tokens' attention on what they speak about, in the guided heads of one layer."""
    index = batch.prefix.visual_index[0, 0]
    parts = []
    for weights, (rows, masks, _) in zip(attention, batch.grounding, strict=True):
        mass = weights[..., :GUIDED_HEADS, :].mean(-2).flatten(0, 2)[rows][:, index]
        parts.append(-(mass * masks).sum(-1).clamp(min=MASS_FLOOR).log().mean())
    return weighted_mean(parts)


def vote_loss(model, batch: Batch, residuals: list[Tensor]) -> Tensor:
    """The residual of a grounded query token must tell the identifiers of the candidates it speaks about."""
    text = model.model.language_model
    parts = []
    for hidden, (rows, _, votes) in zip(residuals, batch.grounding, strict=True):
        per_set = hidden.shape[1] * hidden.shape[2]
        letters = text.embed_tokens.weight[batch.letter_ids[rows // per_set]]
        states = text.norm(hidden.flatten(0, 2)[rows])
        log_probs = torch.einsum("nd,nkd->nk", states, letters).log_softmax(-1)
        wanted = votes.float()
        parts.append(-(wanted * log_probs).sum(-1).div(wanted.sum(-1)).mean())
    return weighted_mean(parts)


def step_losses(model, decoder: PackedDecoder, batch: Batch, layout: Layout) -> dict[str, Tensor]:
    tail = torch.arange(-len(layout.tail) + 1, 1)
    watched = [ends[..., None] + tail for ends in batch.ends]
    everything = [torch.arange(g.ids.shape[2]).expand(g.ids.shape) for g in batch.groups]
    watch = {GROUNDED_LAYER: everything, **dict.fromkeys(GUIDED_LAYERS, watched)}
    hidden, residuals, attention = decoder.forward(batch.prefix, batch.groups, watch, batch.cut)
    answer, fulls = [], []
    losses: dict[str, Tensor] = {}
    for group, (states, ends) in enumerate(zip(hidden, batch.ends, strict=True)):
        at_end = states.gather(2, ends[..., None, None].expand(-1, -1, 1, states.shape[-1])).squeeze(2)
        log_probs = model.lm_head(at_end).log_softmax(-1)
        soft, full = batch.targets(group)
        fulls.append(full)
        chosen = log_probs.gather(2, batch.letter_ids[:, None].expand(-1, log_probs.shape[1], -1))
        answer.append(-(soft * chosen).sum(-1).mean())
        losses[f"right_{GROUPS[group]}"] = full.gather(2, chosen.argmax(-1, keepdim=True)).mean()
        if batch.answers[group][0]:
            losses["spelled"] = spelled_loss(model, states, ends, batch.answers[group])
    losses["answer"] = weighted_mean(answer)
    losses["binding"] = binding_loss(model, batch, layout, residuals[BINDING_LAYER][0])
    losses["votes"] = vote_loss(model, batch, residuals[VOTE_LAYER][1:])
    losses["grounding"] = grounding_loss(batch, attention[GROUNDED_LAYER])
    losses["guidance"] = guidance_loss(batch, attention, fulls)
    return losses


def spelled_loss(model, states: Tensor, ends: Tensor, answers: list[list[int]]) -> Tensor:
    """Language modelling of the spelled permutation."""
    flat, last = states.flatten(0, 1), ends.flatten()
    rows = torch.tensor([row for row, answer in enumerate(answers) for _ in answer])
    steps = torch.tensor([step for answer in answers for step in range(len(answer))])
    expected = torch.tensor([token for answer in answers for token in answer])
    return F.cross_entropy(model.lm_head(flat[rows, last[rows] + steps]), expected)


def trainable_rows(layout: Layout, vocabulary: int) -> Tensor:
    """Embedding rows of identifiers and prompt structure; word rows stay aligned with the vision encoder."""
    mask = torch.zeros(vocabulary, 1)
    fixed = [layout.head, layout.letters, layout.before_image, [layout.image], layout.after_image, layout.reference]
    for ids in (*fixed, layout.query, layout.tail, layout.separator, [layout.end]):
        mask[ids] = 1
    return mask


def loss_weights(share: float) -> dict[str, float]:
    """The auxiliaries lead at first, while the answer's gradient is mostly noise, and are gone at 90% of the run."""
    early, guided = share < 0.2, min(1.0, max(0.0, (0.9 - share) / 0.25))
    return {
        "answer": 0.3 if early else 1.0,
        "spelled": 0.1 if early else 0.3,
        "binding": 0.3,
        "votes": guided,
        "grounding": 0.5 * guided,
        "guidance": 0.5 * guided,
    }


def learning_rate(share: float, step: int) -> float:
    """Warm-up over 60 steps, constant for half of the run, then linear to zero."""
    return min(1.0, (step + 1) / 60) * min(1.0, (1 - share) / 0.5 + 0.005)


def starting_point(seed: int, pool: Pool, *, warm_start: bool):
    """Tokenizer and model: a fresh decoder behind stage 1, or the bundled checkpoint as it is."""
    if warm_start:
        model = Qwen3VLForConditionalGeneration.from_pretrained(MODEL_FOLDER, dtype=torch.float32)
        return Qwen2Tokenizer.from_pretrained(MODEL_FOLDER), model.train()
    tokenizer = training_tokenizer(seed)
    model = build_model(tokenizer, seed)
    model.load_state_dict(torch.load(VISION_CHECKPOINT, weights_only=True)["model"])
    balance(model, pool.images[:64])
    return tokenizer, model


class Run:
    """Progress, checkpoint and optimizers of one process of the run."""

    def __init__(self, arguments: argparse.Namespace, model) -> None:
        self.steps = arguments.steps
        self.model = model
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.optimizers = build_optimizers(model, arguments.lr, adam_lr=1e-3)
        self.step = 0
        if CHECKPOINT.exists():
            state = torch.load(CHECKPOINT, weights_only=True)
            model.load_state_dict(state["model"])
            for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
                optimizer.load_state_dict(saved)
            self.step = state["step"]
        elif arguments.warm_start:
            self.step = round(WARM_SHARE * self.steps)

    @property
    def share(self) -> float:
        """How much of the run is done, in [0, 1]."""
        return self.step / self.steps

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
        }
        torch.save(state, CHECKPOINT.with_suffix(".part"))
        os.replace(CHECKPOINT.with_suffix(".part"), CHECKPOINT)

    def update(self) -> None:
        """One step of all optimizers on the gradients averaged over the processes."""
        average_gradients([parameter.grad for parameter in self.parameters if parameter.grad is not None])
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * learning_rate(self.share, self.step)
            optimizer.step()
            optimizer.zero_grad()
        self.step += 1


def average_gradients(gradients: list[Tensor]) -> None:
    """Replace every process's gradients by their mean."""
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    distributed.all_reduce(flat)
    flat /= distributed.get_world_size()
    for gradient, mean in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def agreed(stop: bool) -> bool:
    """The first process's decision, for all."""
    decision = torch.tensor([stop])
    distributed.broadcast(decision, 0)
    return bool(decision)


def train(process: int, arguments: argparse.Namespace, port: int) -> None:
    """
    One process of the run. Each works on its own candidate sets with one thread; gradients are averaged.

    The decoder's tensors are small: two threads in one process would spend half of their time waiting for each other.
    """
    distributed.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=process, world_size=PROCESSES)
    torch.set_num_threads(1)
    first = process == 0
    pool = draw_pool("listwise", arguments.families, arguments.seed, workers=2)
    tokenizer, model = starting_point(arguments.seed, pool, warm_start=arguments.warm_start)
    model.model.visual.requires_grad_(False)
    layout = Layout(tokenizer)
    features = stored_features(model, pool.images)
    benchmark = load_benchmark(model, WATCHED) if first else []
    decoder = PackedDecoder(model)
    vocabulary = Vocabulary(layout)
    embedding = model.model.language_model.embed_tokens.weight
    learned_rows = trainable_rows(layout, embedding.shape[0])
    run = Run(arguments, model)
    common = random.Random(f"listwise/{arguments.seed}/{run.step}")
    own = random.Random(f"listwise/{arguments.seed}/{run.step}/{process}")
    generator = torch.Generator().manual_seed(own.getrandbits(32))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    last_report = last_save = time.monotonic()
    shown: dict[str, list[float]] = {}
    while (share := run.share) < 1 and not agreed(stop.is_set()):
        candidates = candidate_count(share, common)
        tokens = TOKENS_PER_IMAGE if share > 0.85 or common.random() < 0.15 else common.choice((36, 40, 48))
        batch = Batch(
            pool,
            features,
            layout,
            vocabulary,
            own,
            generator,
            sets=max(1, round(20 / candidates)),
            candidates=candidates,
            tokens=tokens,
            queries=(min(6, candidates), 4 + candidates // 3),
            late=share > 0.44 and common.random() < 0.5,
        )
        losses = step_losses(model, decoder, batch, layout)
        sum(weight * losses[name] for name, weight in loss_weights(share).items()).backward()
        embedding.grad *= learned_rows
        run.update()
        if not first:
            continue
        for name, value in losses.items():
            shown.setdefault(name, []).append(value.item())
        now = time.monotonic()
        if now - last_report > 20:
            last_report = now
            means = " ".join(f"{name} {np.mean(values):.3f}" for name, values in shown.items())
            print(f"{share:5.1%} step {run.step} N {candidates} {means}", flush=True)
            shown = {}
        if now - last_save > 180:
            last_save = now
            run.save()
        if run.step % EVALUATE_EVERY == 0:
            print(f"held-out, N = 20: {evaluate(model, layout, benchmark)}", flush=True)
    if not first:
        return
    run.save()
    if run.share < 1:
        print(f"stopped at step {run.step}, saved {CHECKPOINT.name}")
        return
    print(f"held-out, N = 20: {evaluate(model, layout, benchmark)}")
    save_folder(model, build_processor(tokenizer), MODEL_FOLDER)
    print(f"done: {run.step} steps, saved {MODEL_FOLDER.name}")


def prepare(arguments: argparse.Namespace) -> None:
    """Draw and encode what is not on disk yet, with all cores, before the processes start."""
    RUNS.mkdir(exist_ok=True)
    pool = draw_pool("listwise", arguments.families, arguments.seed, workers=2)
    _, model = starting_point(arguments.seed, pool, warm_start=arguments.warm_start)
    stored_features(model, pool.images)
    load_benchmark(model, WATCHED)


def main() -> None:
    parser = argparse.ArgumentParser(description="Stage 2 of catalog-vlm-tiny: the decoder learns to rank.")
    parser.add_argument("--steps", type=int, default=2100)
    parser.add_argument("--families", type=int, default=700)
    parser.add_argument(
        "--warm-start", action="store_true", help=f"enter at {WARM_SHARE:.0%} of a run with the bundled checkpoint"
    )
    parser.add_argument("--lr", type=float, default=1.5e-3)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    prepare(arguments)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    context = multiprocessing.spawn(train, (arguments, port), nprocs=PROCESSES, join=False)
    signal.signal(signal.SIGTERM, lambda *_: [process.terminate() for process in context.processes])
    while not context.join():
        pass


if __name__ == "__main__":
    main()
