"""Which builds a target gets, and that LLVM knows every name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cuvil.errors import TargetError
from cuvil.targets.backend import VariantSpec, variants_of
from cuvil.targets.registry import find
from cuvil_backend_riscv.features import CPUS, FEATURES
from cuvil_backend_riscv.host import extensions
from cuvil_backend_riscv.variants import LLVM_TRIPLES


def builds(*target: str) -> list[VariantSpec]:
    return variants_of(*find(*target))


@pytest.mark.parametrize("triple", LLVM_TRIPLES)
def test_a_triple_gets_builds_for_registers_of_every_width(triple: str) -> None:
    names = [build.name for build in builds(triple) if not build.products]
    assert names == ["rvv512", "rvv256", "rvv", "scalar"]
    assert set(builds(triple)[-1].requires) == {"m", "a", "f", "d", "c"}


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (("riscv64:spacemit-x60",), ["rvv256_fp16", "rvv256"]),
        (("riscv64:sifive-x280",), ["rvv512_fp16", "rvv512"]),
        (("riscv64:sifive-p670",), ["rvv"]),
        (("riscv64:sifive-u74",), ["scalar"]),
        (("riscv64:thead-c906",), ["scalar"]),
        (("riscv64", "spacemit-x60", "-zvfh"), ["rvv256"]),
        (("riscv64", "spacemit-x60", "-zvl256b,-zvfh"), ["rvv"]),
        (("riscv64", "spacemit-x60", "-v"), ["scalar"]),
        (("riscv64", "", "+v"), ["rvv"]),
        (("riscv64", "", "+zvl256b"), ["rvv256"]),
    ],
)
def test_a_cpu_gets_the_builds_that_it_runs(target: tuple[str, ...], names: list[str]) -> None:
    assert [build.name for build in builds(*target)] == names


def test_a_build_never_asks_for_what_old_kernels_do_not_tell() -> None:
    untold = {"zba", "zbb", "zbs"}
    for cpu in CPUS:
        assert not untold & set(builds("riscv64", cpu)[-1].requires)
    assert "zbb" in builds("riscv64", "", "+zbb")[0].requires


def test_wider_registers_are_required_where_code_counts_on_them() -> None:
    for build in builds("riscv64"):
        if build.name != "scalar":
            assert f"zvl{build.facts.vector_bits}b" in build.requires


def test_names_that_there_are_not() -> None:
    with pytest.raises(TargetError, match="did you mean 'spacemit-x60'"):
        find("riscv64", "spacemit_x60")
    with pytest.raises(TargetError, match="esp32-c3' is not of riscv64-linux-gnu"):
        builds("riscv64", "esp32-c3")
    with pytest.raises(TargetError, match="no builds without f"):
        builds("riscv64", "", "-f")


def test_llvm_knows_every_feature_and_takes_the_abi() -> None:
    words = [f"+{name}" for name in FEATURES]
    code = (
        "import llvmlite.binding as llvm\n"
        "from cuvil.codegen.unit import Unit, compile_unit\n"
        "unit = Unit('define void @f() { ret void }', 'riscv64-unknown-linux-gnu',\n"
        f"            'generic-rv64', '{','.join(words)}', abi='lp64d')\n"
        "print(compile_unit(unit)[0x30])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert int(done.stdout) == 5  # EF_RISCV_RVC | EF_RISCV_FLOAT_ABI_DOUBLE


def test_the_hosts_features_are_those_of_all_its_cores() -> None:
    text = "hart : 0\nisa\t: rv64imafdcv_zicbom_zba_zbb\n\nhart : 1\nisa\t: rv64imafdc_zba\n"
    assert extensions(text) == {"i", "m", "a", "f", "d", "c", "zba"}
    assert extensions("") == frozenset()
