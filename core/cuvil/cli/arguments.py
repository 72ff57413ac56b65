"""Arguments that several commands share, and how their text is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from cuvil.options import Options

Words = list[str] | None


def load_custom(words: Words) -> Words:
    """Runs what declares custom operators, before a command starts. Raises OptionError."""
    from cuvil.cli.custom import load_declarations

    for word in words or ():
        load_declarations(word)
    return words


ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="an ONNX file")]
AnyModel = Annotated[
    str,
    typer.Argument(
        metavar="MODEL", help="an ONNX file, torch's .pt2 or TorchScript, or package.module:factory"
    ),
]
InputSpec = Annotated[
    Words,
    typer.Option(
        "--input-spec",
        metavar="X=float32[1,seq]",
        help="an input of a torch model: dtype and extents; names and ? are extents of the run",
    ),
]
MemoryPlan = Annotated[str, typer.Option("--memory-plan", help="static or dynamic")]
GraphFusion = Annotated[
    bool,
    typer.Option("--enable-graph-fusion/--no-graph-fusion", help="whether rewrite rules run"),
]
ModelOrArtefact = Annotated[
    str, typer.Argument(metavar="MODEL", help="an ONNX file, or a compiled .so, .o or folder")
]
Json = Annotated[bool, typer.Option("--json", help="print JSON for scripts")]
Target = Annotated[
    str, typer.Option(help="triple, short name, or accelerator,host: 'cuvil targets'")
]
Cpu = Annotated[str, typer.Option(help="cpu to compile for; 'cuvil targets' lists them")]
Features = Annotated[str, typer.Option(help="features to add or leave out: +a,-b")]
OptLevel = Annotated[str, typer.Option("--opt-level", "-O", help="0 to 3")]
Dim = Annotated[Words, typer.Option("--dim", metavar="B=1", help="fix a symbolic dim")]
Bound = Annotated[
    Words, typer.Option("--bound", metavar="N=1:100", help="least and greatest of a symbolic dim")
]
DynamicShape = Annotated[
    Words,
    typer.Option(
        "--dynamic-shape",
        metavar="SEQ=128..512:8",
        help="promise a symbolic dim's range and divisor; nodes that break it are errors; "
        "for torch also X[1]=SEQ: an axis by name",
    ),
]
Specialize = Annotated[
    Words,
    typer.Option(
        "--specialize",
        metavar="BATCH=1,4,8",
        help="extents of a symbolic dim that get code of their own beside the code for all",
    ),
]
Elements = Annotated[
    Words,
    typer.Option(
        "--elements",
        metavar="X=3",
        help="tensors that a sequence holds; 1 or 0 where an optional is there or not",
    ),
]
Passes = Annotated[
    Words, typer.Option("--pass", metavar="NAME", help="run these rule groups or rules only")
]
DisableRule = Annotated[Words, typer.Option("--disable-rule", metavar="NAME", help="skip a rule")]
EnableRule = Annotated[
    Words, typer.Option("--enable-rule", metavar="NAME", help="run a rule that is off by default")
]
DisableKernel = Annotated[
    Words, typer.Option("--disable-kernel", metavar="KIND", help="do without a fast kernel")
]
Variant = Annotated[str, typer.Option(help="the backend's only build to make: see 'cuvil targets'")]
Precision = Annotated[
    str,
    typer.Option(
        help="fp32: the model's own types; bf16: products of float32 in bfloat16; "
        "fp16: weights stored as float16"
    ),
]
Tune = Annotated[
    str,
    typer.Option(
        metavar="60s",
        help="measure on this machine, for so long, which tiles and algorithms are fastest",
    ),
]
NoWinograd = Annotated[
    bool, typer.Option("--no-winograd", help="3x3 convolutions as plain sums: exacter, slower")
]
NoGraphFusion = Annotated[bool, typer.Option("--no-graph-fusion", help="run no rewrite rule")]
DisableOpScheduling = Annotated[
    bool, typer.Option("--disable-op-scheduling", help="run kernels in the order of the model")
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="threads of a run; default: CUVIL_NUM_THREADS, or all")
]
Input = Annotated[
    Words,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=VALUE",
        help="VALUE is a .npy file, random, zeros, ones, random:LOW:HIGH or numbers as JSON; "
        "without NAME= for all other inputs",
    ),
]
Size = Annotated[
    Words, typer.Option("--size", metavar="N=8", help="extent of a symbolic dim in made-up inputs")
]
Seed = Annotated[int, typer.Option(help="of random inputs")]
Custom = Annotated[
    Words,
    typer.Option(
        "--custom",
        metavar="FILE",
        callback=load_custom,
        help="a Python file, or a module's name, that declares custom operators",
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="compile anew, keep nothing")]


@dataclass(frozen=True)
class Made:
    """How inputs are made: the words for them, extents of symbols, what random ones start from."""

    words: Words
    sizes: dict[str, int]
    seed: int


def options_of(
    *,
    target: str = "cpu",
    cpu: str = "",
    features: str = "",
    opt_level: str = "2",
    precision: str = "fp32",
    variant: str = "",
    dim: Sequence[str] | None = None,
    bound: Sequence[str] | None = None,
    dynamic_shape: Sequence[str] | None = None,
    specialize: Sequence[str] | None = None,
    elements: Sequence[str] | None = None,
    passes: Sequence[str] | None = None,
    disable: Sequence[str] | None = None,
    enable: Sequence[str] | None = None,
    disable_kernel: Sequence[str] | None = None,
    no_winograd: bool = False,
    no_graph_fusion: bool = False,
    disable_op_scheduling: bool = False,
    name: str = "",
    weights: str = "auto",
    memory_plan: str = "static",
    tune: str = "0",
) -> Options:
    """The options that the arguments say. Raises OptionError."""
    from cuvil.options import Options

    return Options(
        target=target, cpu=cpu, features=features, opt_level=opt_level,  # type: ignore[arg-type]
        precision=precision, variant=variant,
        dims=parse_sizes("--dim", dim), bounds=parse_bounds(bound),
        dynamic=parse_dynamic(dynamic_shape), specialize=parse_specialize(specialize),
        elements=parse_sizes("--elements", elements),
        passes=None if passes is None else tuple(passes),
        disable_rules=tuple(disable or ()), enable_rules=tuple(enable or ()),
        disable_kernels=(*(disable_kernel or ()), *(("winograd",) if no_winograd else ())),
        graph_fusion=not no_graph_fusion, op_scheduling=not disable_op_scheduling,
        name=name, weights=weights,
        memory_plan=memory_plan, tune=tune,  # type: ignore[arg-type]
    )  # fmt: skip


def parse_sizes(option: str, words: Sequence[str] | None) -> dict[str, int]:
    """`["B=1", "S=8"]` as a mapping. Raises OptionError."""
    from cuvil.errors import OptionError

    sizes: dict[str, int] = {}
    for word in words or ():
        name, equals, text = word.partition("=")
        if not name or not equals or not text.isdecimal():
            raise OptionError(f"{option} {word}: expected NAME=NUMBER, such as B=1")
        sizes[name] = int(text)
    return sizes


def parse_bounds(words: Sequence[str] | None) -> dict[str, tuple[int, int | None]]:
    """`["n=1:100", "m=2:"]` as a mapping to (least, greatest or None). Raises OptionError."""
    from cuvil.errors import OptionError

    bounds: dict[str, tuple[int, int | None]] = {}
    for word in words or ():
        name, _, text = word.partition("=")
        low, colon, high = text.partition(":")
        if not name or not colon or not all(t.isdecimal() or not t for t in (low, high)):
            raise OptionError(f"--bound {word}: expected NAME=LEAST:GREATEST, such as n=1:100")
        bounds[name] = (int(low or 0), int(high) if high else None)
        if high and int(high) < bounds[name][0]:
            raise OptionError(f"--bound {word}: the greatest is below the least")
    return bounds


def parse_dynamic(words: Sequence[str] | None) -> dict[str, Any]:
    """`["seq=128..512:8", "x[1]=seq"]` as `extents.read_dynamic_shapes` gives it. Raises
    OptionError."""
    from cuvil.errors import OptionError
    from cuvil.extents import read_dynamic_shapes

    given: dict[str, Any] = {}
    for word in words or ():
        name, equals, text = word.partition("=")
        key, bracket, axis = name.removesuffix("]").partition("[")
        if not key or not equals or (bracket and not axis.isdecimal()):
            raise OptionError(
                f"--dynamic-shape {word}: expected NAME=LEAST..GREATEST:DIVISOR or X[AXIS]=NAME"
            )
        if bracket:
            given.setdefault(key, {})[int(axis)] = text
        else:
            given[key] = text
    return read_dynamic_shapes(given)


def parse_specialize(words: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """`["batch=1,4"]` as a mapping to extents. Raises OptionError."""
    from cuvil.errors import OptionError

    found: dict[str, tuple[int, ...]] = {}
    for word in words or ():
        name, _, text = word.partition("=")
        numbers = [t.strip() for t in text.split(",")]
        if not name or not all(t.isdecimal() and int(t) for t in numbers):
            raise OptionError(f"--specialize {word}: expected NAME=NUMBERS, such as batch=1,4,8")
        found[name] = (*found.get(name, ()), *map(int, numbers))
    return found


def split_words(words: Sequence[str] | None) -> list[str]:
    """Words of an option that may be repeated or separated by commas."""
    return [w.strip() for word in words or () for w in word.split(",") if w.strip()]
