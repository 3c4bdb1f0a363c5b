# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Table 14: one image and a question, where RaDiCal is left with the relevance of tokens to the question (N = 1)."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from radical_haystack.components.image_loading import ImageReadError, load_image
from radical_haystack.evaluation.bootstrap import bootstrap_mean
from radical_haystack.evaluation.datasets import CatalogueDataset
from radical_haystack.evaluation.methods import Method, parse_methods
from radical_haystack.evaluation.reproductions.base import Outcome, Reproduction
from radical_haystack.evaluation.reproductions.comparing import ratio_text
from radical_haystack.evaluation.reproductions.session import Session, Settings
from radical_haystack.evaluation.reproductions.sheets import MISSING, Sheet, interval, number, percent
from radical_haystack.pruning import Pruner
from radical_haystack.vlm import ListwiseVLM, prune
from radical_haystack.vlm.families import family_of
from radical_haystack.vlm.prompt import PromptBuilder, PromptTemplate

RECORDS = "records.jsonl"
FIELDS = ("image", "question", "answer")
MAX_ANSWER_TOKENS = 16

TEMPLATE = PromptTemplate(
    system="Answer the question about the image with a word or a short phrase.",
    candidate="{identifier}: {image}\n",
    query="Question: {query}",
)
"""The prompt of one image is that of a list of one [choice], so that pruning sees the same layout."""


@dataclass(frozen=True)
class ImageQuestion:
    """
    One record.

    :param image: The image.
    :param question: The question.
    :param answer: The right answer.
    """

    image: Image.Image
    question: str
    answer: str


@dataclass(frozen=True)
class Answer:
    """
    What a model makes of one record.

    :param text: What it writes.
    :param first: Log-probabilities of the first answer token, shape `(vocabulary,)`, float32.
    :param log_probability: Of the right answer, all its tokens together.
    :param kept_share: Share of the image's tokens that reached the end.
    """

    text: str
    first: Tensor
    log_probability: float
    kept_share: float


class SingleImage(Reproduction):
    """The variant without CCU."""

    name = "single-image"
    number = "table 14"
    shows = "What pruning does to answers about a single image, where there is nothing to tell candidates apart by."
    methods = ("dense", "radical", "random")
    queries = 20

    def refusal(self, settings: Settings) -> str | None:
        """It needs records; the catalogue draws its own."""
        if settings.records is not None or settings.is_catalogue:
            return None
        return f"'{self.name}' needs image-question-answer records: name their file with --records."

    def run(self, session: Session) -> Outcome:
        """See `Reproduction`."""
        path = session.settings.records
        records = read_records(path) if path is not None else self._drawn(session)
        vlm = session.vlm(calibrate=path is None)
        if vlm.schedule() is None:
            model = session.settings.models[0]
            raise ValueError(
                f"The model '{model}' has no pruning schedule; make one with: "
                f"radical-haystack calibrate --model {model} --images FOLDER"
            )
        methods = parse_methods(self.methods)
        variants = [
            (method, ratio)
            for method in methods
            for ratio in ((1.0,) if method.is_dense else session.settings.keep_ratios)
        ]
        asked = Asked(vlm)
        answers: list[list[Answer]] = []
        for place, record in enumerate(records):
            noise = random.Random(f"{session.settings.seeds[0]}/{place}").getrandbits(63)
            answers.append([asked(record, method.build(vlm, ratio, noise=noise)) for method, ratio in variants])
            session.progress("single-image: questions", place + 1, len(records))
        by_variant = list(zip(*answers, strict=True))
        rows = [_row(variant, records, own, by_variant[0]) for variant, own in zip(variants, by_variant, strict=True)]
        source = "the drawn catalogue" if path is None else path.name
        sheet = Sheet(
            f"Answers to {len(records)} questions of {source}",
            (
                "method", "R", "tokens kept %", "exact answer %", "answer contained %", "KL to dense, first token",
                "log-probability of the answer", "paper",
            ),
            tuple(rows),
        )  # fmt: skip
        return Outcome((sheet,), self._notes(session), values=_values(variants, answers, records))

    def _drawn(self, session: Session) -> list[ImageQuestion]:
        dataset = session.dataset(session.experiment(self.methods, session.count(self), first_stage=None))
        assert isinstance(dataset, CatalogueDataset)
        return drawn_records(dataset)

    def _notes(self, session: Session) -> tuple[str, ...]:
        notes = [
            "KL is the divergence of the first answer token's distribution from that without pruning, and the "
            "log-probability is that of the right answer: both say how faithful pruning is, whether or not the model "
            "can answer. With one image CCU is not defined and QRel alone is fused with attention. The paper's values "
            "of this table are not known here.",
        ]
        if session.settings.records is None:
            notes.append(
                "The bundled model was trained to rank and never to answer questions: its accuracy here says nothing "
                "about pruning; KL and the log-probability do."
            )
        return tuple(notes)


def read_records(path: str | Path) -> list[ImageQuestion]:
    """
    Read image-question-answer records, one JSON object per line with `image`, `question` and `answer`.

    :param path: The JSONL file, or the folder that has it as `records.jsonl`; images are relative to its folder.
    :raises FileNotFoundError: If there is no such file.
    :raises ValueError: If a record cannot be used; the message names the file, the line and the reason.
    """
    path = Path(path)
    path = path / RECORDS if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"There are no records in '{path}'.")
    lines = path.read_text(encoding="utf-8").split("\n")
    found = [_record(line, path, place) for place, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise ValueError(f"'{path}' has no records.")
    return found


def drawn_records(dataset: CatalogueDataset) -> list[ImageQuestion]:
    """
    Questions about the colour of a garment in the target of each text query.

    :param dataset: The catalogue.
    """
    found = []
    for query in dataset.queries:
        item = dataset.items[query.id]
        if query.reference is None:
            target = dataset.by_id[dataset.candidates[query.id][item.target_index]]
            garment = item.candidates[item.target_index][0].garments[0]
            question = f"What colour is the {garment.kind}?"
            found.append(ImageQuestion(dataset.image(target), question, garment.colour))
    return found


class Asked:
    """
    A model that is asked about single images.

    :param vlm: The model.
    """

    def __init__(self, vlm: ListwiseVLM) -> None:
        self._vlm = vlm
        self._family = family_of(vlm.model)
        self._prompts = PromptBuilder(vlm.processor, TEMPLATE)
        self._tokenizer = vlm.processor.tokenizer

    def __call__(self, record: ImageQuestion, pruner: Pruner) -> Answer:
        """
        Ask a question.

        :param record: The record.
        :param pruner: The pruning method.
        """
        encodings = self._vlm.encode([record.image])
        prompt = self._prompts.build(record.question, [len(encodings[0].tokens)])
        inputs = {
            "input_ids": prompt.input_ids.to(self._vlm.device),
            **self._family.vision_inputs(encodings, prompt.token_types.to(self._vlm.device)),
        }
        answer = self._tokenizer(record.answer, add_special_tokens=False)["input_ids"]
        length = prompt.layout.length

        def only_answer(_: int, ids: Tensor) -> list[int]:
            return [answer[len(ids) - length]]

        with torch.inference_mode(), prune(self._vlm.model, pruner, prompt.layout) as trace:
            written = self._generate(inputs, MAX_ANSWER_TOKENS)
            forced = self._generate(inputs, len(answer), only_answer)
        logits = torch.stack([step[0] for step in forced.logits]).float().log_softmax(-1).cpu()
        return Answer(
            text=self._tokenizer.decode(written.sequences[0, length:], skip_special_tokens=True).strip(),
            first=logits[0],
            log_probability=float(logits[torch.arange(len(answer)), torch.tensor(answer)].sum()),
            kept_share=trace.kept.numel() / prompt.layout.candidate_positions.numel(),
        )

    def _generate(
        self, inputs: dict[str, Any], count: int, allowed: Callable[[int, Tensor], list[int]] | None = None
    ) -> Any:
        """Greedy; `logits` of what comes back are the model's own, whatever is allowed."""
        return self._vlm.model.generate(
            **inputs,
            attention_mask=torch.ones_like(inputs["input_ids"]),
            pad_token_id=self._tokenizer.pad_token_id,
            max_new_tokens=count,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            prefix_allowed_tokens_fn=allowed,
            output_logits=True,
            return_dict_in_generate=True,
        )


def is_exact(text: str, answer: str) -> bool:
    """
    Whether an answer is the right one, but for case, punctuation and articles.

    :param text: What the model wrote.
    :param answer: The right answer.
    """
    return _words(text) == _words(answer)


def is_contained(text: str, answer: str) -> bool:
    """
    Whether the right answer stands somewhere in what was written, as whole words.

    :param text: What the model wrote.
    :param answer: The right answer.
    """
    return f" {' '.join(_words(answer))} " in f" {' '.join(_words(text))} "


def divergence(of: Tensor, to: Tensor) -> float:
    """
    The Kullback-Leibler divergence KL(of || to) of two distributions, in nats.

    :param of: Log-probabilities, shape `(vocabulary,)`.
    :param to: The same of the other.
    """
    return float((of.exp() * (of - to)).sum().clamp_min(0.0))


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.lower()) if word not in ("a", "an", "the")]


def _record(line: str, path: Path, place: int) -> ImageQuestion:
    where = f"'{path}', line {place}"
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: this is not JSON ({error.msg}).") from error
    if not isinstance(record, dict):
        raise ValueError(f"{where}: a record is a JSON object with {', '.join(FIELDS)}.")
    for name in FIELDS:
        if not isinstance(record.get(name), str) or not record[name].strip():
            raise ValueError(f"{where}: the field '{name}' is missing, blank or no text.")
    try:
        image = load_image(path.parent / record["image"])
    except ImageReadError as error:
        raise ValueError(f"{where}: {error}") from error
    return ImageQuestion(image, record["question"], record["answer"])


def _row(
    variant: tuple[Method, float], records: Sequence[ImageQuestion], own: Sequence[Answer], dense: Sequence[Answer]
) -> tuple[str, ...]:
    pairs = list(zip(own, records, strict=True))
    exact = bootstrap_mean({str(k): [float(is_exact(a.text, r.answer))] for k, (a, r) in enumerate(pairs)})
    contained = bootstrap_mean({str(k): [float(is_contained(a.text, r.answer))] for k, (a, r) in enumerate(pairs)})
    distances = [divergence(plain.first, pruned.first) for plain, pruned in zip(dense, own, strict=True)]
    kl = bootstrap_mean({str(k): [distance] for k, distance in enumerate(distances)})
    method, ratio = variant
    return (
        method.name,
        ratio_text(ratio),
        percent(fmean(answer.kept_share for answer in own)),
        interval(exact),
        interval(contained),
        MISSING if method.is_dense or kl is None else str(kl),
        number(fmean(answer.log_probability for answer in own), 2),
        MISSING,
    )


def _values(
    variants: Sequence[tuple[Method, float]], answers: Sequence[Sequence[Answer]], records: Sequence[ImageQuestion]
) -> list[dict[str, Any]]:
    """Every answer of every method, as plain values."""
    return [
        {
            "method": method.name,
            "keep_ratio": ratio,
            "answers": [
                {
                    "question": record.question,
                    "answer": record.answer,
                    "text": of_record[place].text,
                    "log_probability": of_record[place].log_probability,
                    "divergence": divergence(of_record[0].first, of_record[place].first),
                    "kept_share": of_record[place].kept_share,
                }
                for record, of_record in zip(records, answers, strict=True)
            ],
        }
        for place, (method, ratio) in enumerate(variants)
    ]
