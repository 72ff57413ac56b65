"""What a compile for a target without an operating system leaves, and what it refuses; no emulator
takes part."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import small_models
from microcontrollers.boards import undefined_in_link
from microcontrollers.cases import CASES

from cuvil.aot.write import Artefact, compile_to_folder
from cuvil.cli import main
from cuvil.codegen.elf import section_sizes, undefined_symbols
from cuvil.codegen.elf_archive import read_archive
from cuvil.errors import OptionError, TargetError, UnsupportedError
from cuvil.options import Options

MEMORY = {"memcpy", "memmove", "memset", "memcmp"}
TARGETS = {
    "cortex-m4": Options(target="thumbv7em-none-eabihf", cpu="cortex-m4"),
    "cortex-m7": Options(target="thumbv7em-none-eabihf", cpu="cortex-m7"),
    "cortex-m0": Options(target="thumbv6m-none-eabi"),
    "rv32imc": Options(target="riscv32-unknown-none-elf"),
    "rv32imfc": Options(target="riscv32-unknown-none-elf", features="+f"),
}
FLASH = 20_000  # bytes, of a model that tells digits, with its weights
RUNTIME = 8_000  # bytes of code
M4 = TARGETS["cortex-m4"]


def digits() -> object:
    """64 inputs, 24 hidden units, 10 probabilities."""
    made = small_models.model(
        """digits (float[1, 64] pixels) => (float[1, 10] y) {
            a = MatMul(pixels, v)  h = Relu(a)  s = MatMul(h, w)  y = Softmax(s)
        }"""
    )
    for name, shape in (("v", (64, 24)), ("w", (24, 10))):
        array = small_models.np.random.default_rng(1).standard_normal(shape, "float32")
        made.graph.initializer.append(small_models.numpy_helper.from_array(array, name))
    return made


@pytest.fixture(scope="module", params=TARGETS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Artefact:
    """The digits' model for each target."""
    folder = tmp_path_factory.mktemp(request.param)
    return compile_to_folder(digits(), folder, TARGETS[request.param])


def code_of(made: Artefact) -> bytes:
    (member,) = read_archive(made.files["a"].read_bytes())
    return member


def test_a_folder_has_what_firmware_needs(made: Artefact) -> None:
    names = {str(p.relative_to(made.folder)) for p in made.folder.rglob("*") if p.is_file()}
    assert names == {"libdigits.a", "digits.h", "manifest.json", "include/cuvil/abi.h"}


def test_it_is_small(made: Artefact) -> None:
    sizes = section_sizes(code_of(made))
    flash = sum(n for name, n in sizes.items() if name.startswith((".text", ".rodata", ".ARM.ex")))
    assert made.manifest["weights_bytes"] < flash < FLASH
    assert 0 < made.manifest["code_bytes"]["runtime"] < RUNTIME
    assert not any(n for name, n in sizes.items() if name.startswith((".data", ".bss", ".got")))


def test_it_asks_for_little(made: Artefact) -> None:
    target, asked = made.manifest["target"], undefined_symbols(code_of(made))
    arithmetic = set(asked) - MEMORY - {f"__aeabi_{name}" for name in ("memclr", "memcpy")}
    if target["triple"].startswith("thumbv7em") or "+f" in target["features"]:
        assert not arithmetic
    assert all(name.startswith("__") for name in arithmetic)
    assert all(name in made.files["header"].read_text() for name in asked)


def test_inspect_lists_what_the_link_brings(
    made: Artefact, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(made.files["a"])]) == 0
    said = capsys.readouterr().out
    assert f"imports: {', '.join(sorted(undefined_in_link(made.files['a'])))}" in said
    assert "exports: digits_artefact, digits_inference" in said


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")
@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_header_compiles(made: Artefact, language: str, tmp_path: Path) -> None:
    source = tmp_path / "use.c"
    source.write_text(
        '#include "digits.h"\nstatic unsigned char memory[DIGITS_MEMORY_BYTES];\n'
        "int32_t use(const float *x, float *y)\n"
        "{ return digits_inference(memory, sizeof memory, x, y); }\n"
    )
    words = ["cc", "-x", language, "-ffreestanding", "-Wall", "-Wextra", "-Werror"]
    command = [*words, "-fsyntax-only", f"-I{made.folder}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_same_bytes_twice(tmp_path: Path) -> None:
    first, second = (compile_to_folder(digits(), tmp_path / n, M4) for n in "ab")
    assert first.files["a"].read_bytes() == second.files["a"].read_bytes()


@pytest.mark.parametrize(("board", "pairs"), [("cortex-m4", True), ("cortex-m0", False)])
def test_bytes_are_multiplied_in_pairs_where_the_cpu_can(
    board: str, pairs: bool, tmp_path: Path
) -> None:
    model = CASES["bytes"].model("bytes")
    made = compile_to_folder(model, tmp_path, TARGETS[board], emit=("asm",))
    text = "".join(path.read_text() for path in made.files["asm"].glob("*.s"))
    assert ("\tsmlad\t" in text) == pairs


@pytest.mark.parametrize("name", ["norm", "doubles", "integers", "codes"])
def test_every_kind_of_model_links_without_libm(name: str, tmp_path: Path) -> None:
    """Nothing but arithmetic is asked for, whatever the cpu lacks: the compile would fail."""
    case, options = CASES[name], TARGETS["cortex-m0"]
    bounds = {symbol: (1, most) for symbol, most, _ in case.extents}
    made = compile_to_folder(
        case.model(name), tmp_path, Options(target=options.target, bounds=bounds)
    )
    wanted = set(undefined_symbols(code_of(made))) - MEMORY
    assert all(symbol.startswith("__aeabi_") for symbol in wanted), wanted


def test_memory_is_that_of_the_largest_extents(tmp_path: Path) -> None:
    sizes = []
    for most in (1, 100):
        options = Options(target=M4.target, bounds={"N": (1, most)})
        made = compile_to_folder(small_models.dynamic(), tmp_path / str(most), options)
        sizes.append(made.manifest["memory_bytes"])
        assert f"DYNAMIC_MEMORY_BYTES {sizes[-1]} " in made.files["header"].read_text()
    assert sizes[0] <= sizes[1]


def compiled(model: object, folder: Path, **options: object) -> Artefact:
    return compile_to_folder(model, folder, Options(**{"target": M4.target, **options}))  # type: ignore[arg-type]


def test_extents_need_a_bound(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"bound 'N' \(--bound N=1:64\) or fix it \(--dim N=16\)"):
        compiled(small_models.dynamic(), tmp_path)


def test_outputs_without_a_bound_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"output 'y' has no upper bound.*no allocator"):
        compiled(small_models.steps(), tmp_path)


def test_strings_that_a_run_makes_are_refused(tmp_path: Path) -> None:
    made = small_models.onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 20]> '
        "words (string[2] x) => (string[2] y) { y = StringConcat(x, x) }"
    )
    with pytest.raises(UnsupportedError, match=r"makes strings.*no allocator"):
        compiled(made, tmp_path)


def test_what_needs_a_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no shared libraries: emit an archive"):
        compile_to_folder(small_models.add(), tmp_path, M4, emit=("so",))
    with pytest.raises(OptionError, match=r"has no files: use --weights embed"):
        compiled(small_models.dense(rows=1), tmp_path, weights="external")


@pytest.mark.parametrize(
    ("target", "cpu", "features", "message"),
    [
        ("thumbv6m-none-eabi", "cortex-m4", "", r"cortex-m4.*thumbv6m-none-eabi.*cortex-m0plus"),
        ("thumbv7em-none-eabihf", "cortex-a76", "", r"cortex-a76.*thumbv7em.*cortex-m7"),
        ("thumbv7em-none-eabihf", "cortex-m8", "", r"unknown cpu 'cortex-m8'.*did you mean"),
        ("riscv32-unknown-none-elf", "sifive-x280", "", r"sifive-x280.*esp32-c3"),
        ("riscv32-unknown-none-elf", "", "+v", r"feature 'v' is not of riscv32"),
    ],
)
def test_names_of_other_targets(
    target: str, cpu: str, features: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TargetError, match=message):
        compiled(small_models.add(), tmp_path, target=target, cpu=cpu, features=features)
