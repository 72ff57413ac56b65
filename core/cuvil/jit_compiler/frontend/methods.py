"""Methods of strings, lists, dicts, sets and arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable

from cuvil.ir.py_build import PyBuilder, value_block
from cuvil.ir.py_types import (
    BOOL,
    INT,
    NONE,
    STR,
    Dict,
    Element,
    List,
    Set,
    Tensor,
    Tuple,
    Type,
    Unknown,
    can_order,
)
from cuvil.jit_compiler.frontend import elements, tensors
from cuvil.jit_compiler.frontend.comparisons import member_equal
from cuvil.jit_compiler.frontend.displays import add_item, learn_key
from cuvil.jit_compiler.frontend.expressions import (
    as_value,
    call_python,
    condition,
    note_write,
    value_of,
)
from cuvil.jit_compiler.frontend.iteration import append, for_each, known, new_list
from cuvil.jit_compiler.frontend.numpy_methods import array_method
from cuvil.jit_compiler.frontend.subscripts import find_key
from cuvil.jit_compiler.frontend.translator import Pending, Translator
from cuvil.jit_compiler.frontend.values import Expression, Val, Walk

LEFT, RIGHT = 1, 2
_STRIP = {"strip": LEFT | RIGHT, "lstrip": LEFT, "rstrip": RIGHT}
_IS = {"isdigit": "d", "isalpha": "a", "isalnum": "n", "isspace": "s", "isupper": "u",
       "islower": "l"}  # fmt: skip
_BY_PYTHON: dict[str, Type] = {
    "replace": STR, "title": STR, "capitalize": STR, "swapcase": STR, "casefold": STR,
    "zfill": STR, "center": STR, "ljust": STR, "rjust": STR, "removeprefix": STR,
    "removesuffix": STR, "expandtabs": STR, "rfind": INT, "index": INT, "rindex": INT,
    "isnumeric": BOOL, "isdecimal": BOOL, "isidentifier": BOOL, "istitle": BOOL,
    "isprintable": BOOL, "isascii": BOOL, "partition": Tuple((STR,) * 3),
    "rpartition": Tuple((STR,) * 3), "splitlines": List(STR), "rsplit": List(STR),
}  # fmt: skip
"""Methods of strings that Python's own are called for, and what they give."""


def call_method(t: Translator, base: Expression, node: ast.Call) -> Expression:
    """A call of a method of a value."""
    assert isinstance(node.func, ast.Attribute)
    name = node.func.attr
    if elements.is_array(t, base):
        return array_method(t, base, name, node)
    value = as_value(t, base)
    kind = t.resolve(value.kind)
    if kind == STR:
        return _str_method(t, value, name, node)
    if isinstance(kind, Tensor):
        return tensors.method(t, value, kind, name, _args(t, node, 0, 1))
    if isinstance(kind, Element):
        _args(t, node, 0, 0)
        return tensors.element_method(t, value, kind, name)
    table = {List: _LIST, Dict: _DICT, Set: _SET}.get(type(kind), {})
    found = table.get(name)
    if found is None:
        raise t.refusal(f"the method '{name}' of {kind}")
    return found(t, value, node)


def _args(t: Translator, node: ast.Call, least: int, most: int) -> list[Val]:
    if node.keywords or not least <= len(node.args) <= most:
        raise t.refusal(f"this call of {ast.unparse(node.func)}")
    return [value_of(t, a) for a in node.args]


# -- strings ---------------------------------------------------------------------------------------
def _str_method(t: Translator, value: Val, name: str, node: ast.Call) -> Expression:
    if name == "join":
        return _join(t, value, node)
    args = _args(t, node, 0, 3)
    kinds = [t.resolve(a.kind) for a in args]
    if name in _STRIP and kinds in ([], [STR], [NONE]):
        if kinds == [STR]:
            return t.apply("str.strip_of", [value, *args], STR, None, [_STRIP[name]])
        return t.apply("str.strip", [value], STR, None, [_STRIP[name]])
    if name in ("lower", "upper") and not args:
        return t.apply(f"str.{name}", [value], STR)
    if name in ("startswith", "endswith") and len(args) == 1:
        return _affix(t, value, args[0], name[:-4])
    if name in ("find", "count") and kinds == [STR]:
        return t.apply(f"str.{name}", [value, *args], INT)
    if name == "split" and kinds in ([], [NONE]):
        return t.apply("str.split", [value], List(STR))
    if name == "split" and kinds == [STR]:
        site = t.site("ValueError", "empty separator")
        return t.apply("str.split_by", [value, *args], List(STR), site)
    if name in _IS and not args:
        return t.apply("str.is", [value], BOOL, None, [_IS[name]])
    result = _BY_PYTHON.get("rsplit" if name == "split" else name)
    if result is None or not all(k in (STR, INT, NONE) for k in kinds):
        raise t.refusal(f"the method '{name}' of str")
    return call_python(t, None, name, [value, *args], result)


def _affix(t: Translator, value: Val, part: Val, fn: str) -> Val:
    """One text, or one of several."""
    kind = t.resolve(part.kind)
    texts = [part] if kind == STR else []
    if isinstance(kind, Tuple):
        texts = [t.item(part, i) for i in range(len(kind.items))]
    found = t.literal(False)
    for text in texts:
        if t.resolve(text.kind) != STR:
            raise t.refusal(f"a prefix of type {kind}")
        test = t.apply(f"str.{fn}", [value, text], BOOL)
        found = test if found.is_literal else t.apply("bool.or", [found, test], BOOL)
    if not texts:
        raise t.refusal(f"a prefix of type {kind}")
    return found


def _join(t: Translator, value: Val, node: ast.Call) -> Val:
    (items,) = _args(t, node, 1, 1)
    kind = t.resolve(items.kind)
    if not isinstance(kind, List) or known(t, kind.item) != STR:
        raise t.refusal(f"join of {kind}")
    return t.apply("str.join", [value, items], STR)


# -- lists -----------------------------------------------------------------------------------------
def _owner(node: ast.Call) -> ast.expr:
    assert isinstance(node.func, ast.Attribute)
    return node.func.value


def _append(t: Translator, made: Val, node: ast.Call) -> Val:
    (item,) = _args(t, node, 1, 1)
    note_write(t, _owner(node), t.resolve(made.kind))
    append(t, made, item)
    return t.none()


def _insert(t: Translator, made: Val, node: ast.Call) -> Val:
    at, item = _args(t, node, 2, 2)
    kind = t.resolve(made.kind)
    assert isinstance(kind, List)
    note_write(t, _owner(node), kind)
    joined = t.learn(kind.item, item.kind)
    size = t.apply("list.len", [made], INT)
    place = t.apply("int.clamp", [elements.as_int(t, at), size, t.literal(0), size], INT)
    t.do("list.insert", [Val(List(joined), made.ssa), place, t.convert(item, joined)])
    return t.none()


def _extend(t: Translator, made: Val, node: ast.Call) -> Val:
    (other,) = _args(t, node, 1, 1)
    note_write(t, _owner(node), t.resolve(made.kind))
    joined = t.join(made.kind, other.kind)
    if isinstance(joined, List):
        t.do("list.extend", [Val(joined, v.ssa) for v in (made, other)])
    else:
        key = ("extend", node.lineno, node.col_offset)
        for_each(t, key, other, lambda item: append(t, made, item))
    return t.none()


def _pop(t: Translator, made: Val, node: ast.Call) -> Val:
    args = _args(t, node, 0, 1)
    kind = t.resolve(made.kind)
    assert isinstance(kind, List)
    note_write(t, _owner(node), kind)
    at = elements.as_int(t, args[0]) if args else t.literal(-1)
    site = t.site("IndexError", "pop index out of range" if args else "pop from empty list")
    return t.apply("list.pop", [made, at], known(t, kind.item), site)


def _clear(t: Translator, made: Val, node: ast.Call) -> Val:
    _args(t, node, 0, 0)
    note_write(t, _owner(node), t.resolve(made.kind))
    t.do("list.clear" if isinstance(t.resolve(made.kind), List) else "dict.clear", [made])
    return t.none()


def _reverse(t: Translator, made: Val, node: ast.Call) -> Val:
    _args(t, node, 0, 0)
    note_write(t, _owner(node), t.resolve(made.kind))
    t.do("list.reverse", [made])
    return t.none()


def _sort(t: Translator, made: Val, node: ast.Call) -> Val:
    if node.args:
        raise t.refusal("this call of sort")
    kind = t.resolve(made.kind)
    note_write(t, _owner(node), kind)
    if any(k.arg == "key" for k in node.keywords):
        done = sort_list(t, made, node.keywords)
        t.do("list.clear", [made])
        t.do("list.extend", [made, done])
    else:
        sort_list(t, made, node.keywords)
    return t.none()


def _list_copy(t: Translator, made: Val, node: ast.Call) -> Val:
    _args(t, node, 0, 0)
    size = t.apply("list.len", [made], INT)
    return t.apply("list.slice", [made, t.literal(0), t.literal(1), size], t.resolve(made.kind))


def _list_count(t: Translator, made: Val, node: ast.Call) -> Val:
    (wanted,) = _args(t, node, 1, 1)
    total = t.temporary(Val(INT, t.literal(0).ssa))

    def check(item: Val) -> None:
        test = member_equal(t, item, wanted)
        one = t.apply("int.of_bool", [test], INT)
        t.assign(total, t.apply("int.add", [t.read(total), one], INT, t.site("OverflowError", "")))

    for_each(t, ("count", node.lineno, node.col_offset), made, check)
    return t.read(total)


def condition_of(t: Translator, value: Val) -> Val:
    """A comparison's result as a bool."""
    return value if t.resolve(value.kind) == BOOL else t.apply("scalar.cast", [value], BOOL)


def _index(t: Translator, made: Val, node: ast.Call) -> Val:
    """The first place of an item; ValueError where it is not in."""
    (wanted,) = _args(t, node, 1, 1)
    place, at = t.temporary(Val(INT, t.literal(-1).ssa)), t.temporary(Val(INT, t.literal(0).ssa))
    overflow = t.site("OverflowError", "")

    def check(item: Val) -> None:
        test = member_equal(t, item, wanted)
        new = t.apply("int.lt", [t.read(place), t.literal(0)], BOOL)
        first = t.apply("bool.and", [test, new], BOOL)
        t.assign(place, t.apply("select", [first, t.read(at), t.read(place)], INT))
        t.assign(at, t.apply("int.add", [t.read(at), t.literal(1)], INT, overflow))

    for_each(t, ("index", node.lineno, node.col_offset), made, check)
    missing = t.apply("int.lt", [t.read(place), t.literal(0)], BOOL)
    t.do("fail_if", [missing], t.site("ValueError", "the item is not in list"))
    return t.read(place)


def _remove(t: Translator, made: Val, node: ast.Call) -> Val:
    kind, place = t.resolve(made.kind), _index(t, made, node)
    assert isinstance(kind, List)
    note_write(t, _owner(node), kind)
    t.apply("list.pop", [made, place], known(t, kind.item), t.site("IndexError", ""))
    return t.none()


def sort_list(t: Translator, made: Val, keywords: list[ast.keyword]) -> Val:
    """Sorts a list in place, or, with a key, gives a new one."""
    options = {k.arg: k.value for k in keywords}
    turned = condition(t, options.pop("reverse", ast.Constant(False, lineno=t.line, col_offset=0)))
    key = options.pop("key", None)
    kind = t.resolve(made.kind)
    assert isinstance(kind, List)
    if options:
        raise t.refusal("this call of sort or sorted")
    site = t.site("ValueError", "a sort of nan")
    if key is not None:
        return _sort_by(t, made, kind, key, turned, site)
    if isinstance(kind.item, Unknown):
        raise Pending("a type that nothing shows")
    if not can_order(kind.item):
        raise t.refusal(f"the order of {kind.item}")
    t.do("list.sort", [made, turned], site)
    return made


def _sort_by(t: Translator, made: Val, kind: List, key: ast.expr, turned: Val, site: int) -> Val:
    """Pairs of key and item are sorted by key; then the items are taken out."""
    if not isinstance(key, ast.Lambda) or len(key.args.args) != 1:
        raise t.refusal("a key that is not a lambda of one argument")
    place = (key.lineno, key.col_offset)
    pairs = new_list(t, ("pairs", place))
    name = key.args.args[0].arg
    renames, t.renames = t.renames, {**t.renames, name: f"{name}.{place[0]}.{place[1]}"}

    def pair(item: Val) -> None:
        t.assign(t.renames[name], item)
        append(t, pairs, t.tuple_of([value_of(t, key.body), item]))

    for_each(t, ("sort", place), made, pair)
    t.renames = renames
    pair_kind = t.resolve(pairs.kind)
    assert isinstance(pair_kind, List)
    if isinstance(pair_kind.item, Unknown):
        raise Pending("a type that nothing shows")
    assert isinstance(pair_kind.item, Tuple)
    if not can_order(pair_kind.item.items[0]):
        raise t.refusal(f"the order of {pair_kind.item.items[0]}")
    held = Val(pair_kind, pairs.ssa)
    t.do("list.sort", [held, turned], site, [1])
    done = new_list(t, ("sorted", place))
    for_each(t, ("unpair", place), held, lambda item: append(t, done, t.item(item, 1)))
    return Val(t.resolve(done.kind), done.ssa)


# -- dicts and sets --------------------------------------------------------------------------------
def _dict_parts(t: Translator, table: Val) -> Dict:
    kind = t.resolve(table.kind)
    assert isinstance(kind, Dict)
    return kind


def _get(t: Translator, table: Val, node: ast.Call) -> Val:
    args = _args(t, node, 1, 2)
    kind = _dict_parts(t, table)
    wanted = t.convert(args[0], learn_key(t, kind.key, args[0]))
    place = t.apply("dict.find", [table, wanted], INT)
    if len(args) == 1:
        raise t.refusal("dict.get without a default, which may be None")
    value = t.resolve(kind.value)
    if isinstance(value, Unknown):
        value = t.learn(value, args[1].kind)
    test = t.apply("bool.of_int", [place], BOOL)
    return _found_or(t, test, place, value, args[1])


def _found_or(t: Translator, test: Val, place: Val, kind: Type, default: Val) -> Val:
    outer = t.builder
    t.builder = inner = PyBuilder(value_block())
    found = t.apply("dict.load", [place], kind)
    joined = t.join(kind, default.kind)
    if joined is None:
        raise t.refusal(f"{kind} or {t.resolve(default.kind)} as one result")
    inner.yield_([t.convert(found, joined).ssa])
    t.builder = other = PyBuilder(value_block())
    other.yield_([t.convert(default, joined).ssa])
    t.builder = outer
    return Val(joined, outer.if_(test.ssa, inner.block, other.block, [joined])[0])


def _setdefault(t: Translator, table: Val, node: ast.Call) -> Val:
    key, default = _args(t, node, 2, 2)
    kind = _dict_parts(t, table)
    note_write(t, _owner(node), kind)
    joined = Dict(learn_key(t, kind.key, key), t.learn(kind.value, default.kind))
    held, wanted = Val(joined, table.ssa), t.convert(key, joined.key)
    test = t.apply("bool.of_int", [t.apply("dict.find", [held, wanted], INT)], BOOL)
    absent = t.apply("bool.not", [test], BOOL)
    outer = t.builder
    t.builder = inner = PyBuilder(value_block())
    t.do("dict.put", [held, wanted, t.convert(default, joined.value)])
    t.builder = outer
    outer.if_(absent.ssa, inner.block, value_block())
    return t.apply("dict.load", [find_key(t, held, wanted)], joined.value)


def _dict_pop(t: Translator, table: Val, node: ast.Call) -> Val:
    args = _args(t, node, 1, 2)
    kind = _dict_parts(t, table)
    note_write(t, _owner(node), kind)
    wanted = t.convert(args[0], learn_key(t, kind.key, args[0]))
    place = t.apply("dict.pop", [table, wanted], INT)
    if len(args) == 1:
        t.do("fail_if_zero", [place], t.site("KeyError", "a key that is not in the dict"))
        return t.apply("dict.load", [place], known(t, kind.value))
    test = t.apply("bool.of_int", [place], BOOL)
    return _found_or(t, test, place, known(t, kind.value), args[1])


def _walk(how: str) -> Callable[[Translator, Val, ast.Call], Expression]:
    def walk(t: Translator, table: Val, node: ast.Call) -> Expression:
        _args(t, node, 0, 0)
        return Walk(how, (table,))

    return walk


def _dict_copy(t: Translator, table: Val, node: ast.Call) -> Val:
    _args(t, node, 0, 0)
    return t.apply("dict.copy", [table], t.resolve(table.kind))


def _add(t: Translator, made: Val, node: ast.Call) -> Val:
    (item,) = _args(t, node, 1, 1)
    add_item(t, made, item)
    return t.none()


def _discard(t: Translator, made: Val, node: ast.Call) -> Val:
    (item,) = _args(t, node, 1, 1)
    kind = t.resolve(made.kind)
    assert isinstance(kind, Set)
    wanted = t.convert(item, learn_key(t, kind.item, item))
    place = t.apply("set.pop", [made, wanted], INT)
    if ast.unparse(node.func).endswith("remove"):
        t.do("fail_if_zero", [place], t.site("KeyError", "an item that is not in the set"))
    return t.none()


Method = Callable[[Translator, Val, ast.Call], Expression]
_LIST: dict[str, Method] = {
    "append": _append, "insert": _insert, "extend": _extend, "pop": _pop, "clear": _clear,
    "reverse": _reverse, "sort": _sort, "copy": _list_copy, "count": _list_count, "index": _index,
    "remove": _remove,
}  # fmt: skip
_DICT: dict[str, Method] = {
    "get": _get, "setdefault": _setdefault, "pop": _dict_pop, "keys": _walk("keys"),
    "values": _walk("values"), "items": _walk("items"), "copy": _dict_copy, "clear": _clear,
}  # fmt: skip
_SET: dict[str, Method] = {"add": _add, "discard": _discard, "remove": _discard}
