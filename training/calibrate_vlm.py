# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""Measures the entropy profile of `catalog-vlm-tiny` on the train world and stores it in its folder."""

from rich.progress import track

from radical_haystack.catalog import BenchmarkItem, benchmark_composed, benchmark_text, draw
from radical_haystack.vlm import ListwiseVLM
from radical_haystack.vlm.calibration import PROFILE_FILE, EntropyProbe, EntropyProfile
from training.vlm_model import MODEL_FOLDER

SEED = 7
SETS = 12


def pictures(item: BenchmarkItem):
    """The candidates' images, and the reference's if there is one."""
    images = [draw(outfit, scene).image for outfit, scene in item.candidates]
    return images, None if item.reference is None else draw(*item.reference).image


def main() -> None:
    vlm = ListwiseVLM.load(str(MODEL_FOLDER))
    probe = EntropyProbe(vlm.model.config.text_config.num_hidden_layers)
    items = [*benchmark_text(SEED, SETS // 2, world="train"), *benchmark_composed(SEED, SETS // 2, world="train")]
    measured = []
    for item in track(items, "measuring H_norm"):
        images, reference = pictures(item)
        ranking = vlm.rank(item.query.text, images, reference, pruner=probe)
        measured.append(EntropyProbe.entropies(ranking.traces[0]))
    profile = EntropyProfile.average(MODEL_FOLDER.name, measured, complete=True)
    (MODEL_FOLDER / PROFILE_FILE).write_text(profile.to_json() + "\n", encoding="utf-8")
    print("H_norm", " ".join(f"{value:.3f}" for value in profile.entropies))
    schedule = ListwiseVLM.load(str(MODEL_FOLDER)).schedule()
    print("schedule", schedule.layers, "alphas", [round(alpha, 2) for alpha in schedule.alphas])


if __name__ == "__main__":
    main()
