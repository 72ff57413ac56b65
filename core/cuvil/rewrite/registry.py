"""Rules found by package walk, and which of them a compile asks for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pkgutil import walk_packages

from cuvil.errors import OptionError
from cuvil.rewrite.rule import PHASES, Rule

PLANNER_PASSES = ("vectorize_matmul", "memory_packing")  # names that mean more than rules


@dataclass(frozen=True)
class Selection:
    """Which rules run.

    passes: names of groups or of rules; None is every rule that is on. Rules of no group always
    run. disable, enable: names of single rules; disabling wins.
    """

    passes: tuple[str, ...] | None = None
    disable: tuple[str, ...] = ()
    enable: tuple[str, ...] = ()

    def choose(self, rules: Iterable[Rule]) -> list[Rule]:
        """The chosen rules. Raises OptionError for a name that is no rule and no group."""
        rules = list(rules)
        names = {r.name for r in rules} | {"cse"}
        groups = {r.group for r in rules if r.group} | set(PLANNER_PASSES)
        _check("rule", [*self.disable, *self.enable], names)
        _check("pass", self.passes or (), names | groups)
        return [r for r in rules if self._wanted(r)]

    def _wanted(self, rule: Rule) -> bool:
        if rule.name in self.disable:
            return False
        if rule.name in self.enable or rule.name in (self.passes or ()):
            return True
        return rule.on and (self.passes is None or not rule.group or rule.group in self.passes)


def unknown(what: str, name: str, known: Collection[str]) -> OptionError:
    """The error for a name that is none of these: it tells those that are near."""
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    meant = f"; did you mean {' or '.join(near)}?" if near else ""
    return OptionError(f"unknown {what} '{name}'{meant} (cuvil-opt --list names all {len(known)})")


def _check(what: str, names: Sequence[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown(what, name, known)


@cache
def load_rules(package: str = "cuvil.rules") -> tuple[Rule, ...]:
    """Every rule of a package, by phase and name. ValueError for a name used twice."""
    root = import_module(package)
    found: dict[str, Rule] = {}
    for info in walk_packages(root.__path__, f"{package}."):
        if info.name.rpartition(".")[2].startswith("_"):
            continue
        module = import_module(info.name)
        for item in vars(module).values():
            if isinstance(item, Rule) and found.setdefault(item.name, item) is not item:
                raise ValueError(f"two rules are called '{item.name}'")
    return tuple(sorted(found.values(), key=lambda r: (PHASES.index(r.phase), r.name)))
