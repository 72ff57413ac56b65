"""Backends found by entry point, targets found by name, and what each mistake is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import cuvil.ops  # registers the primitives
from cuvil.codegen.facts import TargetFacts
from cuvil.errors import TargetError, UnsupportedError
from cuvil.ir.build import Builder
from cuvil.ir.graph import Graph, finish_graph, new_graph
from cuvil.ir.pool import Pool
from cuvil.ir.types import TensorType
from cuvil.plan.devices import Assignment, Device, DeviceKernel
from cuvil.plan.plan import make_plan
from cuvil.plan.steps import HOST
from cuvil.targets import registry
from cuvil.targets.backend import Backend, Feature, MemorySpace, VariantSpec
from cuvil.targets.registry import find, packages
from cuvil.targets.target import Target, parse_features
from cuvil.targets.target_list import resolve

Install = Callable[..., None]
LISTED, PACKAGE = next(iter(packages().items()))  # an architecture, and what serves it

HOST_CPU = Backend(
    name="abacus",
    version="1.0",
    triples=("abacus-linux-gnu",),
    aliases={"abacus": "abacus-linux-gnu"},
    cpus={"wooden": (), "bamboo": ("beads10",)},
    features={"beads": Feature("beads", 0, "beads"),
              "beads10": Feature("beads10", 2, "b10", ("beads",))},
    variants=lambda target: [VariantSpec("plain", (), TargetFacts(target.triple))],
    host=lambda: Target("abacus-linux-gnu", "wooden", ("+beads",)),
)  # fmt: skip


def accelerator(name: str, **changes: Any) -> Backend:
    made = Backend(
        name=name,
        version="1.0",
        triples=(f"{name}-none-none",),
        aliases={name: f"{name}-none-none"},
        supports=lambda op, types, attrs: 0.5 if op == "contract" else None,
        emit=lambda op, types, attrs, target: DeviceKernel("text", b"blob", target.cpu),
        space=MemorySpace(name),
    )
    return replace(made, **changes)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes records (or other objects) the only installed backends."""

    def found(**records: Any) -> None:
        module = ModuleType("fake_backends")
        vars(module).update({k: v for k, v in records.items() if v is not ImportError})
        monkeypatch.setitem(sys.modules, "fake_backends", module)
        entries = [
            registry.EntryPoint(name, f"fake_backends:{name}", registry.GROUP) for name in records
        ]
        monkeypatch.setattr(registry, "entry_points", lambda group: entries)
        registry.scan.cache_clear()

    yield found
    registry.scan.cache_clear()


def test_names_of_one_target(install: Install) -> None:
    install(abacus=HOST_CPU)
    for text in ("cpu", "native", "host"):
        assert find(text) == (HOST_CPU, Target("abacus-linux-gnu", "wooden", ("+beads",)))
    for text in ("abacus", "abacus-linux-gnu"):
        assert find(text)[1] == Target("abacus-linux-gnu")
    assert find("abacus", "bamboo", "+beads,-beads10")[1].features == ("+beads", "-beads10")
    assert find("abacus:bamboo")[1] == find("abacus", "bamboo")[1]


def test_features_imply_others() -> None:
    assert HOST_CPU.feature_bits(["beads10"]) == 0b101
    assert HOST_CPU.feature_names() == ["beads", "", "beads10"]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ((LISTED,), f"no installed backend serves '{LISTED}': pip install {PACKAGE}$"),
        (("abakus",), r"unknown target 'abakus'; did you mean 'abacus'\? \(known: abacus, "),
        (("abacus", "bambo"), r"unknown cpu 'bambo' for abacus-linux-gnu; did you mean 'bamboo'"),
        (("abacus", "", "+bead"), r"unknown feature 'bead' .*; did you mean 'beads'\?"),
        (("cpu", "quartz"), r"unknown cpu 'quartz' for abacus-linux-gnu \(known: bamboo, wooden\)"),
        (("abacus", "", "beads"), r"feature 'beads' needs a sign: '\+beads' or '-beads'"),
        (("abacus,cpu",), "target 'abacus' is a host's: in a list, accelerators come first"),
        (("chip,chip,cpu",), "target 'chip' stands twice"),
    ],
)
def test_a_mistake_is_told_with_the_way_out(
    asked: tuple[str, ...], message: str, install: Install
) -> None:
    install(abacus=HOST_CPU, chip=accelerator("chip"))
    with pytest.raises(TargetError, match=message):
        resolve(*asked)


@pytest.mark.parametrize(("architecture", "package"), packages().items())
def test_the_package_that_serves_a_triple(
    architecture: str, package: str, install: Install
) -> None:
    install(abacus=HOST_CPU)
    with pytest.raises(TargetError, match=f"pip install {package}$"):
        find(f"{architecture}-linux-gnu")


def test_a_package_that_is_installed_is_not_asked_for(install: Install) -> None:
    """Its backend does not serve that triple, whatever the architecture."""

    def variants(target: Target) -> list[VariantSpec]:
        return []

    variants.__module__ = f"{PACKAGE.replace('-', '_')}.variants"
    near = f"{LISTED}s"
    install(abacus=replace(HOST_CPU, variants=variants, aliases={near: "abacus-linux-gnu"}))
    with pytest.raises(TargetError, match=rf"unknown target '{LISTED}'; did you mean '{near}'\?"):
        find(LISTED)


def test_no_backend_at_all(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.platform, "machine", lambda: LISTED)
    install()
    with pytest.raises(TargetError, match=f"this machine's cpu: pip install {PACKAGE}"):
        find("cpu")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (ImportError, r"backend 'broken' \(fake_backends:broken\) does not load: .*'broken'"),
        (
            replace(HOST_CPU, api_version=7),
            "speaks version 7 of the backend contract",
        ),
        (SimpleNamespace(api_version=1), "fake_backends:broken is not a backend's record"),
    ],
)
def test_a_broken_backend_is_named_where_it_is_missed(
    record: Any, message: str, install: Install
) -> None:
    install(abacus=HOST_CPU, broken=record)
    assert find("abacus")[0] is HOST_CPU  # others work all the same
    with pytest.raises(TargetError, match=message):
        find("broken")


@pytest.mark.parametrize(
    ("twin", "message"),
    [
        (replace(HOST_CPU, name="twin"), "'abacus' and 'twin' both serve abacus-linux-gnu: un"),
        (accelerator("twin", aliases={"abacus": "twin-none-none"}), "both serve abacus: uninstall"),
        (accelerator("twin", space=MemorySpace("chip")), "both serve memory space 'chip'"),
    ],
)
def test_two_backends_that_clash(twin: Backend, message: str, install: Install) -> None:
    install(abacus=HOST_CPU, chip=accelerator("chip"), twin=twin)
    with pytest.raises(TargetError, match=message):
        find("cpu")


def test_a_list_of_targets(install: Install) -> None:
    chip, slab = accelerator("chip", cpus={"mark2": ()}), accelerator("slab")
    install(abacus=HOST_CPU, chip=chip, slab=slab)
    found = resolve("chip:mark2, slab, abacus", "bamboo")
    assert [str(t) for _, t in found.accelerators] == ["chip-none-none mark2", "slab-none-none"]
    assert found.host == (HOST_CPU, Target("abacus-linux-gnu", "bamboo"))
    assert found.backends == (chip, slab, HOST_CPU)
    assert resolve("chip").host == find("cpu")
    (device,) = resolve("chip:mark2").assignment().devices
    assert device.emit("contract", [], None).symbol == "mark2"  # type: ignore[arg-type]


RULE = """\
from cuvil.rewrite.pattern import rewrites
from cuvil.rewrite.rule import case

@rewrites(
    lambda p, x: p.neg(p.neg(x)),
    example=case(lambda b, x: b.neg(b.neg(x)), x="[4] f32"),
    near_miss=case(lambda b, x: b.neg(x), x="[4] f32"),
)
def double_negation(b, x):
    return x
"""


def test_rules_of_a_backend_join_cores(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "abacus_rules" / "canonicalize"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "double_negation.py").write_text(RULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    install(abacus=replace(HOST_CPU, rules=import_module("abacus_rules")))
    assert [rule.name for rule in resolve("abacus").rules()] == ["double_negation"]


def product_then_tanh() -> Graph:
    kinds = {"x": TensorType.of((2, 3), "f32"), "y": TensorType.of((3, 4), "f32")}
    graph = new_graph("g", kinds, Pool())
    b = Builder(graph.block, graph.pool, "node")
    product = b.emit("contract", graph.inputs, spec="ab,bc->ac")
    return finish_graph(graph, {"z": b.emit("tanh", [product])})


def device(name: str, cost: float | None) -> Device:
    chip = accelerator(name)
    return Device(
        name,
        64,
        lambda op, types, attrs: cost if op == "contract" else None,
        lambda op, types, attrs: chip.emit(op, types, attrs, Target(name)),  # type: ignore[misc]
    )


@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [(0.5, 0.1, "first"), (None, 0.1, "second"), (2.0, 1.0, "second"), (None, None, HOST)],
)
def test_the_first_that_is_no_dearer_than_the_host_takes_an_op(
    first: float | None, second: float | None, taken: str
) -> None:
    devices = [device("first", first), device("second", second)]
    plan = make_plan(product_then_tanh(), assignment=Assignment(devices, lambda *_: 1.0))
    queues = {op.queue.data for op in plan.program.body.walk() if op.name == "host.launch"}  # type: ignore[attr-defined]
    assert queues == {taken, HOST} if taken != HOST else queues == {HOST}


def test_an_op_that_nobody_computes() -> None:
    def no_tanh(op: str, *_: object) -> float | None:
        return None if op == "tanh" else 1.0

    message = r"node: no target computes cuvil.tanh of \[2, 4\] f32 \(asked: the host, chip\)"
    with pytest.raises(UnsupportedError, match=message):
        make_plan(product_then_tanh(), assignment=Assignment([device("chip", 0.5)], no_tanh))


def test_words_of_features() -> None:
    assert parse_features(" +a, -b,") == ("+a", "-b")


def test_a_cpu_by_name_stands_for_its_own_features(install: Install) -> None:
    """Features of this machine are kept only where no other cpu is asked for."""
    install(abacus=HOST_CPU)
    assert find("cpu")[1].features == ("+beads",)
    assert find("cpu", cpu="bamboo")[1] == Target("abacus-linux-gnu", "bamboo", ())
    assert find("cpu", features="-beads")[1].features == ("+beads", "-beads")


assert cuvil.ops is not None
