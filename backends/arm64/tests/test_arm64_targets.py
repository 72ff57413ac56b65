"""Which builds a target gets, and that LLVM knows every name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cuvil.errors import TargetError
from cuvil.targets.backend import VariantSpec, variants_of
from cuvil.targets.registry import find
from cuvil_backend_arm64.features import CPUS, FEATURES, NARROW
from cuvil_backend_arm64.host import _cpu_flags
from cuvil_backend_arm64.variants import LLVM_TRIPLES, MACOS


def builds(*target: str) -> list[VariantSpec]:
    return variants_of(*find(*target))


@pytest.mark.parametrize("triple", LLVM_TRIPLES)
def test_a_triple_gets_a_build_for_everything(triple: str) -> None:
    names = [build.name for build in builds(triple)]
    assert names == ["i8mm_bf16", "fp16fml", "dotprod", "neon"]
    least = ("dotprod", "fp16", "fp16fml") if triple == MACOS else ()
    assert builds(triple)[-1].requires == least


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (("aarch64:cortex-a53",), ["neon"]),
        (("aarch64:cortex-a76",), ["dotprod", "neon"]),
        (("aarch64:neoverse-v1",), ["i8mm_bf16", "fp16fml", "dotprod", "neon"]),
        (("aarch64", "cortex-a76", "-dotprod"), ["neon"]),
        (("aarch64", "", "+i8mm"), ["dotprod", "neon"]),
        (("aarch64", "", "+i8mm,+bf16"), ["i8mm_bf16", "dotprod", "neon"]),
    ],
)
def test_a_cpu_gets_the_builds_that_it_runs(target: tuple[str, ...], names: list[str]) -> None:
    assert [build.name for build in builds(*target)] == names


def test_what_is_switched_off_is_off_for_llvm_too() -> None:
    (build,) = builds("aarch64", "cortex-a76", "-dotprod")
    assert build.facts.cpu == "cortex-a76" and "-dotprod" in build.facts.features.split(",")
    assert build.requires == ("fp16",)


def test_a_cpu_that_there_is_not() -> None:
    with pytest.raises(TargetError, match="did you mean 'cortex-a76'"):
        find("aarch64", "cortex_a76")


@pytest.mark.parametrize(
    ("target", "cpu"), [("aarch64-linux-gnu", "cortex-m4"), ("arm64-apple-macos", "cortex-a76")]
)
def test_cpus_of_other_triples_are_refused(target: str, cpu: str) -> None:
    with pytest.raises(TargetError, match=f"{cpu} does not run {target}"):
        builds(target, cpu)


def test_llvm_knows_every_cpu_and_feature() -> None:
    features = ",".join(f"+{f.llvm}" for f in FEATURES.values() if f.name not in NARROW)
    code = (
        "import llvmlite.binding as llvm\n"
        "llvm.initialize_all_targets(), llvm.initialize_all_asmprinters()\n"
        "target = llvm.Target.from_triple('aarch64-linux-gnu')\n"
        f"for cpu in {list(CPUS)}:\n"
        "    machine = target.create_target_machine(cpu=cpu, features='{}')\n"
        "    machine.emit_object(llvm.parse_assembly('define void @f() {{ ret void }}'))\n"
    ).replace("{}", features).replace("{{", "{").replace("}}", "}")  # fmt: skip
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stderr == ""


def test_the_hosts_features_are_those_of_all_its_cores() -> None:
    text = "processor: 0\nFeatures\t: fp asimd asimddp i8mm\n\nFeatures\t: fp asimd asimddp\n"
    assert _cpu_flags(text) == {"fp", "asimd", "asimddp"}
    assert _cpu_flags("") == frozenset()
