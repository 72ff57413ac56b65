"""Custom operators that are refused: both signatures are shown, and what to do is said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from custom_examples import HEADER, X, Y, blend, imported, model, planned

from cuvil.errors import OptionError, RuntimeFailure, SignatureError, UnsupportedError
from cuvil.frontends.onnx import check_model, import_model
from cuvil.ir.attrs import Attr
from cuvil.ir.text import print_ir
from cuvil.ops import interpreter
from cuvil.ops.custom import custom_op
from cuvil.ops.custom.registry import OPERATORS


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Takes away what a test declares."""
    yield
    for operator in list(OPERATORS.values()):
        operator.remove()


MISUSES = [
    ("z = com.acme.Blend(x)", r"1 input, not 2"),
    ("z = com.acme.Blend(x, y, x)", r"3 inputs, not 2"),
    ("z = com.acme.Blend(x, )", r"1 input, not 2"),
    ("z = com.acme.Blend( , y)", r"input 0 \(x\) is missing"),
    ("h = Cast<to = 11>(y)  z = com.acme.Blend(x, h)", r"input 1 \(y\) is f64, not f32"),
    ("z, w = com.acme.Blend(x, y)", r"2 outputs, not 1"),
    ("z = com.acme.Blend<pain = 1>(x, y)", r"there is no attribute pain"),
    ('z = com.acme.Blend<gain = "loud">(x, y)', r"attribute gain is str, not float"),
    (
        's = Constant<value_strings = ["a"]>()  z = com.acme.Blend(s, s)',
        r"its C function cannot take strings",
    ),
    ("s = SequenceConstruct(x)  z = com.acme.Blend(s, y)", r"input 0 is a sequence, not a tensor"),
]


@pytest.mark.parametrize(("nodes", "reason"), MISUSES)
def test_a_node_that_does_not_fit_is_refused_with_both_signatures(nodes: str, reason: str) -> None:
    blend()
    with pytest.raises(SignatureError) as error:
        imported(nodes)
    first, declared, used = str(error.value).split("\n")
    assert re.search(rf"node '[zw]' \(com.acme.Blend\): {reason}", first)
    assert declared == (
        "  declared: com.acme::Blend(x: T, y: T) -> (z: T); attributes gain: float = 2.0"
    )
    assert used.startswith("  used:     com.acme::Blend(")


def test_the_signature_as_used_has_types_shapes_and_attributes() -> None:
    blend()
    with pytest.raises(SignatureError) as error:
        imported("z = com.acme.Blend<pain = 1>(x, y, x)")
    assert str(error.value).endswith(
        "com.acme::Blend(f32 [N, 3], f32 [N, 3], f32 [N, 3]) -> 1 output; attributes pain: int = 1"
    )


def test_types_are_those_of_the_declaration_or_of_its_code() -> None:
    blend(types={"T": ["f32", "float64"]})
    with pytest.raises(SignatureError, match=r"x\) is i32; T is one of f32, f64"):
        imported("c = Cast<to = 6>(x)  z = com.acme.Blend(c, c)")
    OPERATORS["com_acme_Blend"].remove()
    table = custom_op("com.acme::Blend", inputs=["T", "T"], outputs=["T"])
    table.native({"f32": "acme_blend", "f16": "acme_blend_half"})
    with pytest.raises(SignatureError, match=r"(?s)is i32; T is one of f32, f16.*T in {f32, f16}"):
        imported("c = Cast<to = 6>(x)  z = com.acme.Blend(c, c)")


SHAPES = [
    (lambda x, y, **a: (*x, 1), "[2, 3, 1] f32, but f32 [2, 3] is declared"),
    (lambda x, y, **a: (x[1], x[0]), "[3, 2] f32, but f32 [2, 3] is declared"),
    (lambda x, y, **a: 7, "gives 7, not a tuple of extents"),
    (lambda x, y, **a: (2, -1), "gives a negative extent"),
    (lambda x, y, **a: (2.5,), "gives (2.5,), not a tuple of extents"),
    (lambda x: x, "its shape function says: TypeError"),
]


@pytest.mark.parametrize(("function", "reason"), SHAPES)
def test_a_shape_function_must_agree_with_the_model(function: Any, reason: str) -> None:
    blend().shape(function)
    with pytest.raises(SignatureError, match=re.escape(reason)) as error:
        import_model(model("g (float[2, 3] x) => (float[2, 3] z) { z = com.acme.Blend(x, x) }"))
    assert "node 'z' (com.acme.Blend)" in str(error.value)
    assert "\n  declared: com.acme::Blend(" in str(error.value)
    assert "\n  used:     com.acme::Blend(f32 [2, 3], f32 [2, 3]) -> " in str(error.value)


def test_a_shape_function_says_why() -> None:
    operator = blend()

    @operator.shape
    def extents(x: Any, y: Any, *, gain: float) -> Any:
        if len(x) != 4:
            raise ValueError("images have four axes")
        return x

    with pytest.raises(SignatureError, match="its shape function says: images have four axes\n"):
        imported("z = com.acme.Blend(x, y)")


def test_inner_values_of_the_model_are_compared_too() -> None:
    blend()
    made = model("g (float[2, 3] x) => (z) { a = com.acme.Blend(x, x)  z = Neg(a) }")
    made.graph.value_info.append(onnx.helper.make_tensor_value_info("a", 11, [2, 3]))
    with pytest.raises(SignatureError, match=r"output 0 as \[2, 3\] f32, but f64 \[2, 3\] is decl"):
        import_model(made)


MEANINGS = [
    (lambda x, y, gain: x.astype(np.float64), "float64 [2, 3]"),
    (lambda x, y, gain: x[0], "float32 [3]"),
    (lambda x, y, gain: 1.5, "float64 []"),
]


@pytest.mark.parametrize(("function", "gave"), MEANINGS)
def test_a_numpy_meaning_must_give_what_is_declared(function: Any, gave: str) -> None:
    blend().reference(function)
    graph = imported("z = com.acme.Blend(x, y)")
    with pytest.raises(SignatureError) as error:
        interpreter.run(graph, {"x": X, "y": Y})
    first, declared, used = str(error.value).split("\n")
    assert "numpy meaning does not give [2, 3] f32" in first
    assert declared.startswith("  declared: com.acme::Blend(")
    assert f"com.acme::Blend(f32 [2, 3], f32 [2, 3]) -> ({gave}); attributes gain" in used


BAD_DECLARATIONS = [
    ({"name": "Swirl"}, "expected 'domain::Op'"),
    ({"name": "com.microsoft::Gelu"}, "a domain of your own"),
    ({"name": "::Relu"}, "a domain of your own"),
    ({"inputs": ["x y"]}, "'x y' is not 'TYPE'"),
    ({"inputs": ["float99"]}, "'float99' is no element type"),
    ({"inputs": "T"}, "are lists of types"),
    ({"outputs": []}, "at least one output"),
    ({"outputs": ["T..."]}, "no optional or variadic ones"),
    ({"inputs": ["T...", "T"]}, "only the last input can be variadic"),
    ({"outputs": ["U"]}, "no input tells what the output's type U is"),
    ({"inputs": ["a: T", "a: T"]}, "two parameters are called a"),
    ({"types": {"U": ["f32"]}}, "no input is of type U"),
    ({"attributes": {"a b": 1}}, "cannot be called 'a b'"),
    ({"attributes": {"a": None}}, "attribute a is declared as None"),
    ({"attributes": {"a": Attr("dims", ())}}, "cannot be of kind dims"),
]


@pytest.mark.parametrize(("change", "reason"), BAD_DECLARATIONS)
def test_declarations_that_cannot_be(change: dict[str, Any], reason: str) -> None:
    words: dict[str, Any] = {"name": "com.acme::Swirl", "inputs": ["T"], "outputs": ["T"]}
    words |= change
    with pytest.raises(OptionError, match=re.escape(reason)):
        custom_op(words.pop("name"), **words)
    assert not OPERATORS


def test_code_that_cannot_be() -> None:
    operator = custom_op("com.acme::Swirl", inputs=["T", "U"], outputs=["T"])
    for symbol_, reason in (("a b", "cannot be the name"), ("memcpy", "cannot be the name"),
                            ("f_{V}", "there is no type V"), ("f", "T may be any: say which"),
                            ("f_{T}", "U may be any")):  # fmt: skip
        with pytest.raises(OptionError, match=reason):
            operator.native(symbol_)
    with pytest.raises(OptionError, match="one of library, object and source, not 2"):
        operator.native("f_{T}_{U}", library="a.so", object="a.o")
    operator.native("f_{T}_{U}")
    assert operator.prototype(T="f32", U="bf16").startswith(
        "int32_t f_f32_bf16(const float *x0, const int64_t *x0_dims, int64_t x0_rank, "
        "const uint16_t *x1,"
    )
    with pytest.raises(OptionError, match="it cannot be composed too"):
        operator.compose(lambda b, x, y: x)


def test_a_name_is_declared_once() -> None:
    blend()
    with pytest.raises(OptionError, match=r"declared already, at .*custom_examples.py:\d+"):
        blend()
    OPERATORS["com_acme_Blend"].remove()
    blend()


def test_what_is_missing_is_said() -> None:
    operator = custom_op("com.acme::Blend", inputs=["T", "T"], outputs=["T"])
    with pytest.raises(SignatureError, match=r"no shape function: give it one with \.shape"):
        imported("z = com.acme.Blend(x, y)")
    operator.shape(lambda x, y: x)
    graph = imported("z = com.acme.Blend(x, y)")
    with pytest.raises(RuntimeFailure, match=r"no numpy meaning: give it one with \.reference"):
        interpreter.run(graph, {"x": X, "y": Y})
    with pytest.raises(UnsupportedError, match="no native code: give it a C function"):
        planned(graph)


def test_a_domain_that_nobody_declares() -> None:
    unknown = model("g (float[2] x) => (z) { z = com.acme.Blend(x, x) }")
    with pytest.raises(UnsupportedError) as error:
        import_model(unknown)
    assert "'z' (com.acme.Blend): the operator is not supported; declare it" in str(error.value)
    assert "cuvil.custom_op('com.acme::Blend', ...), or --custom FILE" in str(error.value)
    (problem,) = check_model(unknown)
    assert problem.reason == "the operator is not supported"
    assert "cuvil.custom_op('com.acme::Blend', ...)" in problem.way_out
    blend()
    assert check_model(unknown) == []


def test_versions_follow_the_opset() -> None:
    blend()
    newer = custom_op("com.acme::Blend", inputs=["x: T"], outputs=["T"], since=2)
    newer.compose(lambda b, x: b.neg(x))
    old = imported("z = com.acme.Blend(x, y)")
    assert "com_acme_Blend" in print_ir(old.module)
    text = HEADER.replace('"com.acme" : 1', '"com.acme" : 3')
    new = onnx.parser.parse_model(text + "g (float[2] x) => (z) { z = com.acme.Blend(x) }")
    assert "cuvil.neg" in print_ir(import_model(new).module)


def test_a_function_of_the_model_comes_first() -> None:
    blend()
    made = onnx.parser.parse_model(
        HEADER + "g (float[2] x) => (z) { z = com.acme.Blend(x, x) }"
        '<domain: "com.acme", opset_import: ["" : 18]> Blend (x, y) => (z) { z = Neg(x) }'
    )
    assert "cuvil.neg" in print_ir(import_model(made).module)
