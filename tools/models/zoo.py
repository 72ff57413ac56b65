"""The table of models. `names()` lists them, `get(name)` makes one available on disk."""

from __future__ import annotations

from dataclasses import dataclass

from tools.models import fills, light
from tools.models.case import Feed, Fill, ModelCase, Shape, Tolerance, ZooError
from tools.models.quantized import FORMS, Quantized
from tools.models.sources import Exported, Light, Packaged, Source

BERT_VOCABULARY = 30522
FP32 = Tolerance()
TOLERANCE_OF_BYTES = Tolerance(2e-2, 1e-2)  # a step of one code may grow on its way
QUANTIZED = ("bert-base", "minilm", "resnet50", "resnet18")


@dataclass(frozen=True)
class Row:
    """One model at one size.

    `representative` marks the row that stands for its architecture in the fixed list that
    speed is judged by.
    """

    name: str
    arch: str
    source: Source
    feeds: tuple[Feed, ...]
    representative: bool = False
    tolerance: Tolerance = FP32


def names() -> list[str]:
    """Names of all models, in table order."""
    return list(_ROWS)


def quantized_names() -> list[str]:
    """Names of the models of bytes, which `names` leaves out: only about right by intent."""
    return [f"{name}-{form}" for name in QUANTIZED for form in FORMS]


def representatives() -> list[str]:
    """One model per architecture: the fixed list of the speed goal."""
    return [row.name for row in _ROWS.values() if row.representative]


def row(name: str) -> Row:
    """The table row; ZooError for an unknown name."""
    stem, _, form = name.rpartition("-")
    if stem in QUANTIZED and form in FORMS:
        whole = _ROWS[stem]
        source = Quantized(stem, whole.source, form)
        return Row(name, whole.arch, source, whole.feeds, tolerance=TOLERANCE_OF_BYTES)
    if name not in _ROWS:
        raise ZooError(f"no zoo model {name!r}; there are {', '.join(_ROWS)}")
    return _ROWS[name]


def get(name: str) -> ModelCase:
    """The model with its file on disk, built first when needed.

    Raises ZooError, naming the pip command, when a package it comes from is missing.
    """
    found = row(name)
    path = found.source.file(found.feeds)
    return ModelCase(found.name, found.arch, path, found.feeds, found.tolerance)


def _silero() -> list[Row]:
    def file(stem: str) -> Packaged:
        return Packaged("silero_vad", f"data/{stem}.onnx", "silero-vad")

    def chunk(samples: int, *free: int) -> Feed:
        return Feed("input", (1, samples), fills.audio, free)

    rate = Feed("sr", (), fills.constant(16000))
    slow_rate = Feed("sr", (), fills.constant(8000))
    state = Feed("state", (2, 1, 128), fills.hidden_state, (1,))
    fixed_state = Feed("state", (2, 1, 128), fills.hidden_state)
    carried = tuple(Feed(name, (1, 1, 128), fills.hidden_state) for name in "hc")
    frames = Feed("input", (16, 576), fills.audio, (0,))
    return [
        Row("silero-vad", "silero", file("silero_vad"), (chunk(576, 0), state, rate), True),
        Row("silero-vad-8k", "silero", file("silero_vad"), (chunk(288, 0), state, slow_rate)),
        Row("silero-vad-op15", "silero", file("silero_vad_16k_op15"), (chunk(576, 0), state, rate)),
        Row("silero-vad-sequence", "silero", file("silero_vad_16k_sequence"), (frames, *carried)),
        Row("silero-vad-half", "silero", file("silero_vad_half"), (chunk(576, 0), state)),
        Row(
            "silero-vad-ifless",
            "silero",
            file("silero_vad_op18_ifless"),
            (chunk(576, 0), rate, state),
        ),
        Row(
            "silero-vad-openvino",
            "silero",
            file("silero_vad_openvino_16k"),
            (chunk(576), fixed_state),
        ),
    ]


def _vision() -> list[Row]:
    def ocr(stem: str) -> Packaged:
        return Packaged("rapidocr_onnxruntime", f"models/{stem}.onnx", "rapidocr-onnxruntime")

    def image(name: str, height: int, width: int, fill: Fill = fills.text_page) -> tuple[Feed, ...]:
        return (Feed(name, (1, 3, height, width), fill, (0, 2, 3)),)

    det, rec = ocr("ch_PP-OCRv4_det_infer"), ocr("ch_PP-OCRv4_rec_infer")
    cls = ocr("ch_ppocr_mobile_v2.0_cls_infer")
    nude = Packaged("nudenet", "320n.onnx", "nudenet")
    return [
        Row("ocr-det", "ocr-det", det, image("x", 320, 320), True),
        Row("ocr-det-wide", "ocr-det", det, image("x", 256, 480)),
        Row("ocr-rec", "ocr-rec", rec, image("x", 48, 320), True),
        Row("ocr-rec-short", "ocr-rec", rec, image("x", 48, 200)),
        Row("ocr-cls", "ocr-cls", cls, image("x", 48, 192), True),
        Row("ocr-cls-short", "ocr-cls", cls, image("x", 48, 100)),
        Row("nudenet", "nudenet", nude, image("images", 320, 320, fills.unit_image), True),
        Row("nudenet-wide", "nudenet", nude, image("images", 256, 448, fills.unit_image)),
    ]


def _magika() -> list[Row]:
    source = Packaged("magika", "models/*/model.onnx", "magika")
    return [
        Row("magika", "magika", source, (Feed("bytes", (1, 2048), fills.file_bytes, (0,)),), True)
    ]


def _light() -> list[Row]:
    named = {"resnet50": "gpu_0/data_0", "shufflenet": "gpu_0/data_0", "zfnet512": "gpu_0/data_0"}

    def feeds(stem: str) -> tuple[Feed, ...]:
        return (Feed(named.get(stem, "data_0"), (1, 3, 224, 224), fills.image),)

    return [Row(f"light-{stem}", f"light-{stem}", Light(stem), feeds(stem)) for stem in light.STEMS]


def _text() -> list[Row]:
    def feeds(length: int, *free: int) -> tuple[Feed, ...]:
        shape = (1, length)
        return (
            Feed("input_ids", shape, fills.token_ids(BERT_VOCABULARY), free),
            Feed("attention_mask", shape, fills.constant(1), free),
            Feed("token_type_ids", shape, fills.constant(0), free),
        )

    def model(stem: str, net: str) -> Exported:
        return Exported(stem, net, ("last_hidden_state", "pooler_output"))

    bert, any_bert = model("bert-base", "bert-base"), model("bert-base-dynamic", "bert-base")
    minilm, fixed_minilm = model("minilm", "minilm"), model("minilm-static", "minilm")
    return [
        Row("bert-base", "bert", bert, feeds(128), True),
        Row("bert-base-dynamic", "bert", any_bert, feeds(128, 0, 1)),
        Row("minilm", "minilm", minilm, feeds(128, 0, 1), True),
        Row("minilm-16", "minilm", minilm, feeds(16, 0, 1)),
        Row("minilm-static", "minilm", fixed_minilm, feeds(128)),
    ]


def _classifiers() -> list[Row]:
    def feeds(*free: int, batch: int = 1) -> tuple[Feed, ...]:
        return (Feed("pixel_values", (batch, 3, 224, 224), fills.image, free),)

    def model(stem: str, net: str, keep_batch_norm: bool = False) -> Exported:
        return Exported(stem, net, ("logits",), keep_batch_norm=keep_batch_norm)

    return [
        Row("resnet50", "resnet50", model("resnet50", "resnet50"), feeds(), True),
        Row(
            "resnet50-dynamic", "resnet50", model("resnet50-dynamic", "resnet50"), feeds(0, batch=2)
        ),
        Row("resnet18", "resnet18", model("resnet18", "resnet18", True), feeds(), True),
        Row(
            "mobilenet-v2",
            "mobilenet-v2",
            model("mobilenet-v2", "mobilenet-v2", True),
            feeds(),
            True,
        ),
        Row("vit-tiny", "vit-tiny", model("vit-tiny", "vit-tiny"), feeds(), True),
    ]


def _decoders() -> list[Row]:
    def feeds(vocabulary: int, shape: Shape, *free: int) -> tuple[Feed, ...]:
        ids = Feed("input_ids", shape, fills.token_ids(vocabulary), free)
        return (ids, Feed("attention_mask", shape, fills.constant(1), free))

    gpt2 = Exported("gpt2", "gpt2", ("logits",), dynamo=True)
    llama = Exported("llama-tiny", "llama-tiny", ("logits",), dynamo=True)
    return [
        Row("gpt2", "gpt2", gpt2, feeds(50257, (1, 128), 0, 1), representative=True),
        Row("llama-tiny", "llama", llama, feeds(1024, (1, 32), 0, 1)),
    ]


def _table() -> dict[str, Row]:
    rows = _silero() + _vision() + _magika() + _light() + _text() + _classifiers() + _decoders()
    return {entry.name: entry for entry in rows}


_ROWS = _table()
