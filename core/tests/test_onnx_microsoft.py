"""com.microsoft operators against what their parts say."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx_models import f32

from cuvil.errors import UnsupportedError
from cuvil.frontends.onnx import import_model
from cuvil.ops import interpreter


def run_ms(op: str, inputs: list[Any], outputs: int = 1, **attrs: Any) -> Any:
    """One node of com.microsoft on arrays; None is an absent input."""
    names = [f"x{k}" if v is not None else "" for k, v in enumerate(inputs)]
    given = {n: np.asarray(v) for n, v in zip(names, inputs, strict=True) if v is not None}
    results = [f"y{k}" for k in range(outputs)]
    node = onnx.helper.make_node(op, names, results, domain="com.microsoft", **attrs)
    infos = [
        onnx.helper.make_tensor_value_info(
            n, onnx.helper.np_dtype_to_tensor_dtype(v.dtype), v.shape
        )
        for n, v in given.items()
    ]
    graph = onnx.helper.make_graph(
        [node], "ms", infos, [onnx.ValueInfoProto(name=n) for n in results]
    )
    opsets = [onnx.helper.make_opsetid("com.microsoft", 1), onnx.helper.make_opsetid("", 17)]
    graph = import_model(onnx.helper.make_model(graph, ir_version=8, opset_imports=opsets))
    graph.module.verify()
    values = list(interpreter.run(graph, given).values())
    return values[0] if outputs == 1 else values


RNG = np.random.default_rng(0)


def rand(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any = 0.0) -> np.ndarray:
    """[N, S, D] heads to [S, N * D]."""
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask
    return (softmax(scores) @ v).swapaxes(0, 1).reshape(q.shape[1], -1)


def heads(x: np.ndarray, n: int) -> np.ndarray:
    return x.reshape(x.shape[0], n, -1).swapaxes(0, 1)


def close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_sums_are_normalised_and_given_out():
    x, skip, scale, bias = rand(2, 3, 8), rand(2, 3, 8), rand(8), rand(8)
    y, _, _, total = run_ms("SkipLayerNormalization", [x, skip, scale, None, bias], 4, epsilon=1e-5)
    want = x + skip + bias
    close(total, want)
    centred = want - want.mean(-1, keepdims=True)
    close(y, centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale)


def test_products_of_turned_operands():
    a, b = rand(2, 4, 3), rand(2, 5, 4)
    y = run_ms("FusedMatMul", [a, b], alpha=0.5, transA=1, transB=1)
    close(y, 0.5 * a.swapaxes(1, 2) @ b.swapaxes(1, 2))


def test_self_attention_with_a_mask_of_lengths():
    x, w, bias = rand(1, 3, 8), rand(8, 24), rand(24)
    y = run_ms("Attention", [x, w, bias, np.array([2], np.int32)], num_heads=2)
    q, k, v = np.split(x[0] @ w + bias, 3, axis=1)
    mask = np.where(np.arange(3) < 2, 0, -10000.0)
    close(y[0], attention(heads(q, 2), heads(k, 2), heads(v, 2), mask))


def test_causal_attention_sees_the_past():
    q, k, v = rand(1, 2, 8), rand(1, 2, 8), rand(1, 2, 8)
    past_k, past_v = rand(1, 2, 3, 4), rand(1, 2, 3, 4)
    inputs = [q, k, v, None, None, None, past_k, past_v]
    y, present, _ = run_ms("MultiHeadAttention", inputs, 3, num_heads=2, unidirectional=1)
    keys = np.concatenate([past_k[0], heads(k[0], 2)], axis=1)
    values = np.concatenate([past_v[0], heads(v[0], 2)], axis=1)
    close(present[0], keys)
    mask = np.where(np.arange(5) <= np.arange(2)[:, None] + 3, 0, -10000.0)
    close(y[0], attention(heads(q[0], 2), keys, values, mask))


@pytest.mark.parametrize("room", [3, 6])
def test_grouped_queries_and_a_cache_of_any_length(room):
    """room: of the past cache; 3 steps of it are used."""
    q, k, v = rand(1, 1, 16), rand(1, 1, 4), rand(1, 1, 4)
    past_k, past_v = rand(1, 1, room, 4), rand(1, 1, room, 4)
    inputs = [q, k, v, past_k, past_v, np.array([3], np.int32), np.array(4, np.int32)]
    y, present, _ = run_ms("GroupQueryAttention", inputs, 3, num_heads=4, kv_num_heads=1)
    assert present.shape == (1, 1, max(room, 4), 4)
    keys = np.concatenate([past_k[0, :, :3], k], axis=1)
    values = np.concatenate([past_v[0, :, :3], v], axis=1)
    close(present[0, :, :4], keys)
    close(y[0], attention(heads(q[0], 4), keys.repeat(4, 0), values.repeat(4, 0)))


@pytest.mark.parametrize("interleaved", [0, 1])
def test_pairs_turn_by_their_angles(interleaved):
    angles = np.outer(np.arange(6), [1.0, 0.1]).astype(np.float32)
    x, places = rand(1, 2, 3, 4), np.array([[4, 0, 5]])
    y = run_ms("RotaryEmbedding", [x, places, np.cos(angles), np.sin(angles)],
               interleaved=interleaved)  # fmt: skip
    pair = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, 2), slice(2, 4))
    numbers = x[..., pair[0]] + 1j * x[..., pair[1]]
    turned = numbers * np.exp(1j * angles[places[0]])
    close(y[..., pair[0]], turned.real)
    close(y[..., pair[1]], turned.imag)


def test_quantised_arithmetic():
    a, b = np.array([[10, 200]], np.uint8), np.array([[1], [-2]], np.int8)
    scales = [f32(0.5), f32([0.25]), np.uint8(10), np.array([0], np.int8)]
    assert run_ms("MatMulIntegerToFloat", [a, b, *scales]).tolist() == [[-47.5]]
    parts = [a, f32(0.5), np.uint8(10), a, f32(1), np.uint8(0), f32(2), np.uint8(3)]
    assert run_ms("QLinearAdd", parts).tolist() == [[8, 151]]


def test_what_is_not_supported_says_so():
    with pytest.raises(UnsupportedError, match="constants"):
        run_ms("MatMulNBits", [rand(1, 16), np.zeros((2, 1, 8), np.uint8), rand(2)],
               K=16, N=2, block_size=16)  # fmt: skip


@pytest.mark.parametrize(
    "pattern, least, expected",
    [
        ("[a-z]+", 1, [["the", "cat", "a"], ["#", "#", "#"], ["stra", "e", "b"]]),
        ("[a-z]+", 2, [["the", "cat"], ["#", "#"], ["stra", "#"]]),
        (r"\w\w", 1, [["th", "ca"], ["12", "#"], ["st", "ra"]]),
        ("[ß-]", 1, [["-"], ["#"], ["ß"]]),
    ],
)
def test_tokens_are_matches_from_left_to_right(pattern, least, expected):
    x = np.array(["the-cat a", "123", "straße b"], object)
    y = run_ms("Tokenizer", [x], mark=0, mincharnum=least, pad_value="#", tokenexp=pattern)
    assert y.tolist() == expected
    none = run_ms("Tokenizer", [x[1:2]], mark=0, mincharnum=1, pad_value="#", tokenexp="[a-z]")
    assert none.shape == (1, 0)


@pytest.mark.parametrize("pattern", ["a|ab", "a+?", "(ab?)(bc)?", r"\bword"])
def test_patterns_whose_longest_match_may_be_another_are_refused(pattern):
    with pytest.raises(UnsupportedError, match="tokenexp"):
        run_ms("Tokenizer", [np.array(["x"], object)], mark=0, mincharnum=1, pad_value="#",
               tokenexp=pattern)  # fmt: skip
