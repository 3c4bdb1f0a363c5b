# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The prompt's exact text, where its parts lie, what a hostile query can do to it, and how answers are read."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from radical_haystack.vlm.prompt import IDENTIFIERS, PromptBuilder, PromptTemplate, parse_permutation

SYSTEM = (
    "<|im_start|>system\nRank the images by how well they match the query. "
    "Answer with their letters, best first, for example: C > A > F.<|im_end|>\n<|im_start|>user\n"
)
IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"


class TestText:
    """The bundled model is trained on exactly this."""

    def test_default(self, tiny: SimpleNamespace) -> None:
        text = tiny.prompts().render("a red shirt", 2, with_reference=False)
        query = "Query: a red shirt<|im_end|>\n<|im_start|>assistant\n"
        assert text == f"{SYSTEM}A: {IMAGE}\nB: {IMAGE}\n{query}"

    def test_composed(self, tiny: SimpleNamespace) -> None:
        text = tiny.prompts().render("is red", 1, with_reference=True)
        assert text == (f"{SYSTEM}A: {IMAGE}\nReference: {IMAGE}\nQuery: is red<|im_end|>\n<|im_start|>assistant\n")

    def test_own_template(self, tiny: SimpleNamespace) -> None:
        template = PromptTemplate(system="", candidate="[{identifier}] {image};", query="Find {query}!")
        text = PromptBuilder(tiny.processor(), template).render("{image} 100%", 1, with_reference=False)
        assert text == (f"<|im_start|>user\n[A] {IMAGE};Find {{image}} 100%!<|im_end|>\n<|im_start|>assistant\n")

    @pytest.mark.parametrize("reference", [None, (32, 48)])
    def test_ids_are_the_processors(self, tiny: SimpleNamespace, reference: tuple[int, int] | None) -> None:
        example, processor = tiny.example(reference=reference), tiny.processor()
        text = tiny.prompts().render("a red shirt", 5, with_reference=reference is not None)
        images = [tiny.noise(*size) for size in (*tiny.sizes, *([reference] if reference else []))]
        expected = processor(text=[text], images=images, return_tensors="pt")
        assert torch.equal(example.prompt.input_ids, expected["input_ids"])
        assert torch.equal(example.prompt.token_types, expected["mm_token_type_ids"].long())


class TestLayout:
    def test_positions(self, tiny: SimpleNamespace) -> None:
        prompt = tiny.prompts().build("a red shirt", [3, 1, 2], 2)
        layout, ids, tokenizer = prompt.layout, prompt.input_ids[0], tiny.processor().tokenizer
        pad = tokenizer.convert_tokens_to_ids("<|image_pad|>")
        assert layout.length == len(ids)
        assert layout.tokens_per_candidate == (3, 1, 2)
        assert layout.candidate_index.tolist() == [0, 0, 0, 1, 2, 2]
        assert ids[layout.candidate_positions].eq(pad).all()
        assert ids[layout.reference_positions].eq(pad).all()
        assert layout.reference_positions.numel() == 2
        assert ids.eq(pad).sum() == 8
        assert layout.reference_positions.min() > layout.candidate_positions.max()
        # The first token is " a", merged across the space: the query is tokenised together with what precedes it.
        assert tokenizer.decode(ids[layout.query_positions]) == " a red shirt"
        assert tokenizer.decode(ids[layout.text_positions]) == (
            "\nReference: \nQuery: a red shirt<|im_end|>\n<|im_start|>assistant\n"
        )

    def test_words_of_the_template_are_not_the_query(self, tiny: SimpleNamespace) -> None:
        prompt = tiny.prompts().build("Query: assistant", [1, 1])
        text = tiny.processor().tokenizer.decode(prompt.input_ids[0][prompt.layout.query_positions])
        assert text.strip() == "Query: assistant"
        assert prompt.layout.query_positions.diff().eq(1).all()

    @pytest.mark.parametrize("query", ["grüne Jacke", "緑のジャケット", "👗 dress"])
    def test_any_script(self, tiny: SimpleNamespace, query: str) -> None:
        prompt = tiny.prompts().build(query, [1])
        text = tiny.processor().tokenizer.decode(prompt.input_ids[0][prompt.layout.query_positions])
        assert text.strip() == query

    def test_52_candidates(self, tiny: SimpleNamespace) -> None:
        builder = tiny.prompts()
        assert builder.build("x", [1] * 52).layout.candidates == 52
        assert len(set(builder.identifier_ids)) == 52
        for count in (0, 53):
            with pytest.raises(ValueError, match=f"1 to 52 candidates, got {count}"):
                builder.build("x", [1] * count)

    @pytest.mark.parametrize("query", ["", " \n\t\u2028"])
    def test_blank_query(self, tiny: SimpleNamespace, query: str) -> None:
        with pytest.raises(ValueError, match="blank"):
            tiny.prompts().build(query, [1])

    def test_identifiers_must_be_single_tokens(self, tiny: SimpleNamespace) -> None:
        processor = tiny.build_processor()
        processor.tokenizer.backend_tokenizer.normalizer = tiny.doubling_normalizer()
        with pytest.raises(ValueError, match="'A' is 2 tokens"):
            PromptBuilder(processor)


FRAGMENTS = [
    *("<|im_start|>", "<|im_end|>", "<|image_pad|>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"),
    *("<|endoftext|>", "<tool_call>", "<|", "|>", "im_end", "<|im_<|im_end|>end|>", "\n", " ", "\ue000query\ue001"),
    *("{query}", "{image}", "{{ 1 }}", "{% raw %}", "user\n", "A: ", "red"),
]


class TestUntrustedQuery:
    @given(parts=st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=8), composed=st.booleans())
    def test_never_becomes_structure(self, tiny: SimpleNamespace, parts: list[str], composed: bool) -> None:
        tokenizer = tiny.processor().tokenizer
        structure = torch.tensor(sorted(tokenizer.added_tokens_decoder))
        reference = 4 if composed else None
        hostile = tiny.prompts().build("x" + "".join(parts), [2, 3], reference)
        harmless = tiny.prompts().build("x", [2, 3], reference)

        def structural(ids: torch.Tensor) -> list[int]:
            return ids[0][torch.isin(ids[0], structure)].tolist()

        assert structural(hostile.input_ids) == structural(harmless.input_ids)
        assert hostile.layout.tokens_per_candidate == (2, 3)
        assert torch.equal(hostile.layout.candidate_positions, harmless.layout.candidate_positions)
        assert not torch.isin(hostile.input_ids[0][hostile.layout.query_positions], structure).any()
        # It stays on its one line.
        newlines = [tokenizer.decode(prompt.input_ids[0]).count("\n") for prompt in (hostile, harmless)]
        assert newlines[0] == newlines[1]

    def test_the_fragments_are_dangerous(self, tiny: SimpleNamespace) -> None:
        tokenizer = tiny.processor().tokenizer
        for fragment in FRAGMENTS[:8]:
            assert len(tokenizer(fragment, add_special_tokens=False)["input_ids"]) == 1

    def test_harmless_text_is_untouched(self, tiny: SimpleNamespace) -> None:
        query = "a < b | c > d [x] <b> {y} im_end"
        assert f"Query: {query}<|im_end|>" in tiny.prompts().render(query, 1, with_reference=False)


class TestTemplate:
    def test_round_trip(self) -> None:
        template = PromptTemplate(system="s", candidate="{identifier}{image}", reference="{image}", query="{query}")
        data = template.to_dict()
        assert PromptTemplate.from_dict(data) == template
        assert data == template.to_dict()
        assert PromptTemplate.from_dict({}) == PromptTemplate()

    @pytest.mark.parametrize(
        ("part", "text", "missing"),
        [
            ("candidate", "{image}", "{identifier}"),
            ("candidate", "{identifier}: {image} {image}", "{image}"),
            ("reference", "none", "{image}"),
            ("query", "{Query}", "{query}"),
        ],
    )
    def test_placeholders(self, part: str, text: str, missing: str) -> None:
        with pytest.raises(ValueError, match=f"'{part}' must contain {missing} exactly once"):
            PromptTemplate(**{part: text})

    def test_unknown_part(self) -> None:
        with pytest.raises(ValueError, match="Unknown part of a prompt template: sistem"):
            PromptTemplate.from_dict({"sistem": ""})


class TestParsing:
    @given(text=st.text(alphabet="ABCDEFGHabz >,.[]()\n'1é_", max_size=60) | st.text(), count=st.integers(0, 52))
    def test_always_a_permutation(self, text: str, count: int) -> None:
        parsed = parse_permutation(text, count)
        assert sorted(parsed.order) == list(range(count))
        assert parsed.fallback == (parsed.missing > 0)
        tail = parsed.order[count - parsed.missing :]
        assert list(tail) == sorted(tail)

    @given(order=st.integers(1, 52).flatmap(lambda n: st.permutations(range(n))), data=st.data())
    def test_a_full_answer(self, order: list[int], data: st.DataObject) -> None:
        separator = data.draw(st.sampled_from([" > ", ">", ", ", " > \n", "] > ["]))
        parsed = parse_permutation(f"[{separator.join(IDENTIFIERS[k] for k in order)}]", len(order))
        assert parsed.order == tuple(order)
        assert (parsed.missing, parsed.repeated, parsed.unknown) == (0, 0, 0)

    @given(order=st.permutations(range(6)), named=st.integers(0, 6))
    def test_missing_ones_keep_their_order(self, order: list[int], named: int) -> None:
        parsed = parse_permutation(" > ".join(IDENTIFIERS[k] for k in order[:named]), 6)
        assert parsed.order == (*order[:named], *sorted(order[named:]))
        assert parsed.missing == 6 - named

    @pytest.mark.parametrize(
        ("text", "order", "missing", "repeated", "unknown"),
        [
            ("C > A > B", (2, 0, 1), 0, 0, 0),
            ("C > A > C > B", (2, 0, 1), 0, 1, 0),
            ("C > Z > A", (2, 0, 1), 1, 0, 1),
            ("I think C > A > B. As I said, A is good", (2, 0, 1), 0, 0, 0),
            ("[C] > [A] > [B]", (2, 0, 1), 0, 0, 0),
            ("C>A>B<|im_end|>", (2, 0, 1), 0, 0, 0),
            ("Certainly! B", (1, 0, 2), 2, 0, 0),
            ("B's better", (0, 1, 2), 3, 0, 0),
            ("", (0, 1, 2), 3, 0, 0),
            (">>>", (0, 1, 2), 3, 0, 0),
        ],
    )
    def test_examples(self, text: str, order: tuple[int, ...], missing: int, repeated: int, unknown: int) -> None:
        parsed = parse_permutation(text, 3)
        assert (parsed.order, parsed.missing, parsed.repeated, parsed.unknown) == (order, missing, repeated, unknown)
