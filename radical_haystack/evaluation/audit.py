# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Auditing what pruning does to groups of images and to the energy of a query, on one's own index and queries."""

import csv
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from haystack import Document
from haystack.utils import ComponentDevice
from PIL import Image

from radical_haystack.catalog import FIELDS
from radical_haystack.components.bundled import resolve_model
from radical_haystack.components.image_loading import ImageReadError, load_document_images
from radical_haystack.evaluation.audit_files import file_of, groups_of
from radical_haystack.evaluation.datasets import load_catalogue
from radical_haystack.evaluation.energy import open_meter
from radical_haystack.evaluation.exposure import GroupShift, audit_exposure
from radical_haystack.pipelines.indexes import open_index
from radical_haystack.pipelines.running import run_pipeline
from radical_haystack.pipelines.searching import CANDIDATES
from radical_haystack.pruning.pruners import pruner_type
from radical_haystack.pruning.schedule import check_keep_ratio
from radical_haystack.vlm import ListwiseVLM

DENSE = "dense"
CATALOGUE_QUERIES = 20
"""How many queries of the drawn catalogue are audited by default."""

_MEASURES = ("exposure", "top_k")

Progress = Callable[[str, int, int], None]
Loaded = Image.Image | ImageReadError


@dataclass(frozen=True)
class AuditQuery:
    """
    A query and what the first stage found for it.

    :param text: The query.
    :param documents: The candidates, best first; `meta["file_path"]` names each.
    """

    text: str
    documents: tuple[Document, ...]


@dataclass(frozen=True)
class QueryCost:
    """
    What one query costs on average, from loading its candidates' images to their order.

    :param seconds: Time.
    :param joules: Energy of the device; `None` where no meter can be read.
    """

    seconds: float
    joules: float | None


@dataclass(frozen=True)
class Audit:
    """
    What pruning changes.

    :param model: Name of the reranking model.
    :param group_by: The field that images are grouped by.
    :param keep_ratio: Share of the visual tokens that is kept.
    :param top_k: How many places the top-k share is of.
    :param queries: The queries.
    :param shifts: By method, what it does to each group, against the dense order.
    :param costs: By method, `DENSE` included, what a query costs.
    :param meter: What the energy was read from; `None` if there is no meter.
    :param no_meter: Why there is no meter; `None` if there is one.
    :param unreadable: By file, why an image could not be ranked.
    :param orders: By method, `DENSE` included, each query's files, best first.
    """

    model: str
    group_by: str
    keep_ratio: float
    top_k: int
    queries: tuple[str, ...]
    shifts: Mapping[str, tuple[GroupShift, ...]]
    costs: Mapping[str, QueryCost]
    meter: str | None
    no_meter: str | None
    unreadable: Mapping[str, str]
    orders: Mapping[str, tuple[tuple[str, ...], ...]]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values for JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    def write(self, folder: str | Path) -> list[Path]:
        """
        Write `audit.json` with everything, and `exposure.csv` with the shifts.

        :param folder: Where; made if it is not there.
        :returns: The files.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        whole, table = folder / "audit.json", folder / "exposure.csv"
        whole.write_text(json.dumps(self.to_dict(), indent=2) + "\n", encoding="utf-8")
        with table.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["method", "group", "documents", "measure", "dense", "pruned", "difference", "low", "high"])
            for method, groups in self.shifts.items():
                for group in groups:
                    for measure in _MEASURES:
                        shift = asdict(getattr(group, measure))
                        writer.writerow([method, group.group, group.documents, measure, *shift.values()])
        return [whole.resolve(), table.resolve()]


def run_audit(
    store_path: str | Path,
    queries: Sequence[str],
    *,
    group_by: str,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
    methods: Sequence[str] = ("radical",),
    model: str = "catalog-vlm-tiny",
    candidates: int = CANDIDATES,
    keep_ratio: float = 0.2,
    top_k: int = 10,
    trust_remote_code: bool = False,
    device: ComponentDevice | None = None,
    seed: int = 0,
    progress: Progress = lambda step, done, total: None,
) -> Audit:
    """
    Audit pruning on an index that `index_folder` made.

    :param store_path: The index's folder.
    :param queries: The queries.
    :param group_by: The field to group images by: one of `metadata`, else one of the documents' own, else `"folder"`,
        the first folder of an image's path.
    :param metadata: By file path, fields of images; see `read_metadata`.
    :param methods: Pruning methods to compare with the dense order.
    :param model: The reranking model, as `RadicalRanker` takes it; it must have a schedule if a method needs one.
    :param candidates: How many images the first stage hands over; those that cannot be read are left out.
    :param keep_ratio: Share of the visual tokens to keep, in (0, 1].
    :param top_k: How many places the top-k share is of.
    :param trust_remote_code: Whether code that comes with the first stage's model may run.
    :param device: Where to run the models; `None` for the default device.
    :param seed: Seed of the bootstrap.
    :param progress: Called with what is done, the number of queries done and of all.
    :raises ValueError: If a query is blank, a method is unknown or has no schedule, no document has the field, one has
        several values of it, or a value is out of range.
    :raises StoreError: If there is no store, it is damaged or empty, or another first stage made it.
    """
    _check(methods, keep_ratio, top_k, queries)
    index = open_index(store_path, trust_remote_code=trust_remote_code)
    index.require_documents()
    groups = groups_of(index.store.filter_documents(), group_by, metadata)
    pipeline = index.retrieval_pipeline(candidates=candidates, device=device)
    found = []
    for done, text in enumerate(queries):
        progress("Retrieving", done, len(queries))
        outputs = run_pipeline(pipeline, {"embedder": {"text": text}})
        found.append(AuditQuery(text.strip(), tuple(outputs["retriever"]["documents"])))
    progress("Retrieving", len(queries), len(queries))
    return audit_rankings(
        _load(model, device),
        found,
        lambda some: load_document_images(some, root_path=index.info.root_path),
        groups,
        group_by=group_by,
        methods=methods,
        keep_ratio=keep_ratio,
        top_k=top_k,
        seed=seed,
        progress=progress,
    )


def audit_catalogue(
    *,
    group_by: str = "colour",
    queries: int = CATALOGUE_QUERIES,
    methods: Sequence[str] = ("radical",),
    model: str = "catalog-vlm-tiny",
    candidates: int = CANDIDATES,
    keep_ratio: float = 0.2,
    top_k: int = 10,
    device: ComponentDevice | None = None,
    seed: int = 0,
    progress: Progress = lambda step, done, total: None,
) -> Audit:
    """
    Audit pruning on text queries of the drawn catalogue, for demonstration.

    :param group_by: An attribute of garments (`FIELDS`); that of the upper garment counts.
    :param queries: How many queries.
    :param methods: See `run_audit`, also for what follows.
    :param model: The reranking model.
    :param candidates: How many candidates a query has.
    :param keep_ratio: Share of the visual tokens to keep, in (0, 1].
    :param top_k: How many places the top-k share is of.
    :param device: Where to run the model; `None` for the default device.
    :param seed: Seed of the bootstrap.
    :param progress: Called with what is done, the number of queries done and of all.
    :raises ValueError: If a method is unknown or has no schedule, there is no such attribute, or a value is out of
        range.
    """
    _check(methods, keep_ratio, top_k, ["any"])
    dataset = load_catalogue(queries=queries, candidates=candidates).of_category("text")
    metadata = {
        file_of(document): {field: getattr(dataset.scenes[document.id][0].garments[0], field) for field in FIELDS}
        for document in dataset.documents
    }
    groups = groups_of(dataset.documents, group_by, metadata)
    return audit_rankings(
        _load(model, device),
        [AuditQuery(q.text, tuple(dataset.by_id[name] for name in dataset.candidates[q.id])) for q in dataset.queries],
        lambda some: [dataset.image(document) for document in some],
        groups,
        group_by=group_by,
        methods=methods,
        keep_ratio=keep_ratio,
        top_k=top_k,
        seed=seed,
        progress=progress,
    )


def audit_rankings(
    vlm: ListwiseVLM,
    queries: Sequence[AuditQuery],
    load: Callable[[Sequence[Document]], Sequence[Loaded]],
    groups: Mapping[str, str | None],
    *,
    group_by: str,
    methods: Sequence[str] = ("radical",),
    keep_ratio: float = 0.2,
    top_k: int = 10,
    seed: int = 0,
    progress: Progress = lambda step, done, total: None,
) -> Audit:
    """
    Rank candidates with the dense model and with pruning methods, and compare.

    Each method ranks all queries in turn, loading images anew, so that the meter sees one method at a time; one ranking
    before all that is not measured.

    :param vlm: The model. Without a vision cache (`vision_cache_bytes=0`) every method pays for all that it needs.
    :param queries: The queries with their candidates.
    :param load: Gives the images of documents, or why one cannot be read.
    :param groups: By file path, the image's group.
    :param group_by: What the groups are, for the report.
    :param methods: Pruning methods to compare with the dense order.
    :param keep_ratio: Share of the visual tokens to keep, in (0, 1].
    :param top_k: How many places the top-k share is of.
    :param seed: Seed of the bootstrap.
    :param progress: Called with what is done, the number of queries done and of all.
    :raises ValueError: If a method is unknown or has no schedule, no candidate of a query can be read, or a value is
        out of range.
    """
    methods = _check(methods, keep_ratio, top_k, [query.text for query in queries])
    unscheduled = [name for name in methods if pruner_type(name).needs_schedule]
    if unscheduled and vlm.schedule() is None:
        name = vlm.model.config.name_or_path
        raise ValueError(
            f"The model '{name}' has no pruning schedule, which {', '.join(unscheduled)} needs; make one with: "
            f"radical-haystack calibrate --model {name} --images FOLDER"
        )
    unreadable: dict[str, str] = {}

    def rank(query: AuditQuery, method: str) -> tuple[str, ...]:
        loaded = dict(zip(map(file_of, query.documents), load(query.documents), strict=True))
        unreadable.update({file: str(error) for file, error in loaded.items() if isinstance(error, ImageReadError)})
        images = {file: image for file, image in loaded.items() if isinstance(image, Image.Image)}
        if not images:
            raise ValueError(f"None of the {len(loaded)} candidates of the query '{query.text}' can be read.")
        ranking = vlm.rank(query.text, list(images.values()), pruner=method, keep_ratio=keep_ratio)
        return tuple(list(images)[place] for place in ranking.order)

    rank(queries[0], DENSE)
    meter = open_meter(vlm.device)
    orders, seconds, joules = dict[str, tuple[tuple[str, ...], ...]](), dict[str, float](), dict[str, float]()
    for method in (DENSE, *methods):
        made, taken, start = [], 0.0, time.perf_counter()
        meter.joules()
        for done, query in enumerate(queries):
            progress(f"Ranking ({method})", done, len(queries))
            made.append(rank(query, method))
            taken += meter.joules() or 0.0
        progress(f"Ranking ({method})", len(queries), len(queries))
        seconds[method] = (time.perf_counter() - start) / len(queries)
        joules[method] = taken / len(queries)
        orders[method] = tuple(made)
    runs = {method: {str(number): order for number, order in enumerate(made)} for method, made in orders.items()}
    return Audit(
        model=str(vlm.model.config.name_or_path),
        group_by=group_by,
        keep_ratio=keep_ratio,
        top_k=top_k,
        queries=tuple(query.text for query in queries),
        shifts={name: audit_exposure(runs[DENSE], runs[name], groups, top_k=top_k, seed=seed) for name in methods},
        # A meter that was lost on the way leaves no figure that could be trusted.
        costs={name: QueryCost(seconds[name], None if meter.reason else joules[name]) for name in orders},
        meter=meter.name,
        no_meter=meter.reason,
        unreadable=unreadable,
        orders=orders,
    )


def _check(methods: Sequence[str], keep_ratio: float, top_k: int, queries: Sequence[str]) -> list[str]:
    """The methods to compare with the dense order, each once."""
    names = [name for name in dict.fromkeys(methods) if name != DENSE]
    if not names:
        raise ValueError("An audit needs a pruning method to compare with the dense order.")
    for name in names:
        pruner_type(name)
    check_keep_ratio(keep_ratio)
    if top_k < 1:
        raise ValueError(f"top_k must be at least 1, not {top_k}.")
    if not queries:
        raise ValueError("There are no queries to audit.")
    for number, text in enumerate(queries, start=1):
        if not text.strip():
            raise ValueError(f"Query {number} is blank.")
    return names


def _load(model: str, device: ComponentDevice | None) -> ListwiseVLM:
    target = ComponentDevice.resolve_device(device).to_torch_str()
    return ListwiseVLM.load(resolve_model(model), device=target, vision_cache_bytes=0)
