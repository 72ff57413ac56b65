"""Tuples, lists, dicts and sets."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from cuvil.codegen.llvm_util import I64, PTR, VOID, address, i64
from cuvil.codegen.python.emit import Applied, Emit, function
from cuvil.codegen.python.numbers import wrapped
from cuvil.codegen.python.texts import flat
from cuvil.codegen.python.values import load_value, slots, store_value, struct, tagged
from cuvil.ir.py_types import BOOL, FLOAT, INT, STR, Dict, List, Set, Tuple, Type, members

SIZE, CAPACITY, DATA = range(3)  # words of a List; a Dict begins with used, filled, capacity
USED, FILLED, _, ENTRIES = range(4)
_LETTERS = {INT: "i", BOOL: "i", FLOAT: "f", STR: "s"}


def kinds_text(kind: Type) -> bytes:
    """What the runtime must know to order or hash values: i, f or s per member, then 0."""
    return "".join(_LETTERS[t] for t in members(kind)).encode() + b"\0"


def _word(e: Emit, place: ir.Value, at: int, kind: ir.Type = I64) -> ir.Value:
    return tagged(e.b, e.b.load(address(e.b, place, i64(at), I64), typ=kind), "header")


def _set_size(e: Emit, place: ir.Value, size: ir.Value) -> None:
    tagged(e.b, e.b.store(size, place), "header")


def _item(e: Emit, data: ir.Value, index: ir.Value, kind: Type) -> ir.Value:
    """The address of an item."""
    return address(e.b, data, e.b.mul(index, i64(slots(kind))), I64)


# -- tuples ----------------------------------------------------------------------------------------
@function("tuple.of")
def _tuple(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return struct(e.b, args)


@function("retype")
def _retype(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """A value as one of a type that lies in memory alike."""
    return args[0]


@function("tuple.get")
def _tuple_get(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.b.extract_value(args[0], op.params[0])


# -- lists -----------------------------------------------------------------------------------------
def _item_type(kind: Type) -> Type:
    assert isinstance(kind, List)
    return kind.item


@function("list.of")
def _list(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    item = _item_type(op.results[0])
    count, width = len(args), slots(item)
    made = e.support("py_list_new", PTR, [i64(count), i64(width)])
    data = _word(e, made, DATA, PTR)
    for i, value in enumerate(args):
        store_value(e.b, value, data, item, i * width)
    _set_size(e, made, i64(count))
    return made


@function("list.reserve")
def _list_reserve(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """An empty list with room for so many items."""
    item = _item_type(op.results[0])
    return e.support("py_list_new", PTR, [args[0], i64(slots(item))])


@function("list.len", "dict.len", "set.len")
def _len(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return _word(e, args[0], SIZE)


@function("list.get")
def _list_get(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    item = _item_type(op.kinds[0])
    at = wrapped(e, args[1], _word(e, args[0], SIZE), op.site)
    return load_value(e.b, _item(e, _word(e, args[0], DATA, PTR), at, item), item)


@function("list.at")
def _list_at(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """The item at an index that is inside."""
    item = _item_type(op.kinds[0])
    return load_value(e.b, _item(e, _word(e, args[0], DATA, PTR), args[1], item), item)


@function("list.set")
def _list_set(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    item = _item_type(op.kinds[0])
    at = wrapped(e, args[1], _word(e, args[0], SIZE), op.site)
    store_value(e.b, args[2], _item(e, _word(e, args[0], DATA, PTR), at, item), item)


@function("list.append")
def _list_append(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    made, item = args[0], _item_type(op.kinds[0])
    size = _word(e, made, SIZE)
    with e.unlikely(e.b.icmp_signed(">=", size, _word(e, made, CAPACITY))):
        e.support("py_list_grow", VOID, [made, i64(slots(item)), i64(1)])
    store_value(e.b, args[1], _item(e, _word(e, made, DATA, PTR), size, item), item)
    _set_size(e, made, e.b.add(size, i64(1)))


@function("list.put")
def _list_put(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(list, index, item): an item at the end, whose index is known. The list's size is not, until
    `list.close` says it: it stays in a register."""
    made, at, item = args[0], args[1], _item_type(op.kinds[0])
    if e.lost is None:
        with e.unlikely(e.b.icmp_signed(">=", at, _word(e, made, CAPACITY))):
            _list_room(e, op, [made, at, i64(1)])
    store_value(e.b, args[2], _item(e, _word(e, made, DATA, PTR), at, item), item)


@function("list.room")
def _list_room(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(list, size, items): room for more items behind those that were put."""
    _set_size(e, args[0], args[1])
    e.support("py_list_grow", VOID, [args[0], i64(slots(_item_type(op.kinds[0]))), args[2]])


@function("list.close")
def _list_close(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(list, size): all items were put."""
    _set_size(e, args[0], args[1])


@function("list.insert")
def _list_insert(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    item = _item_type(op.kinds[0])
    place = e.support("py_list_insert", PTR, [args[0], args[1], i64(slots(item))])
    store_value(e.b, args[2], place, item)


@function("list.pop")
def _list_pop(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    item = _item_type(op.kinds[0])
    at = wrapped(e, args[1], _word(e, args[0], SIZE), op.site)
    value = load_value(e.b, _item(e, _word(e, args[0], DATA, PTR), at, item), item)
    e.call("py_list_remove", VOID, [args[0], at, i64(1), i64(slots(item))])
    return value


@function("list.clear")
def _list_clear(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    _set_size(e, args[0], i64(0))


@function("list.extend")
def _list_extend(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.support("py_list_extend", VOID, [*args, i64(slots(_item_type(op.kinds[0])))])


@function("list.concat", "list.repeat", "list.slice")
def _list_made(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """slice: (list, start, step, items)."""
    width = i64(slots(_item_type(op.kinds[0])))
    return e.support(f"py_{op.fn.replace('.', '_')}", PTR, [*args, width])


@function("list.reverse")
def _list_reverse(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.call("py_list_reverse", VOID, [args[0], i64(slots(_item_type(op.kinds[0])))])


@function("list.sort")
def _list_sort(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """(list, reversed). params: 1 where the first member of each item is its key."""
    item = _item_type(op.kinds[0])
    key = item
    if op.params:
        assert isinstance(item, Tuple)
        key = item.items[0]
    width, reverse = i64(slots(item)), e.b.zext(args[1], I64)
    text = e.text(kinds_text(key))
    e.support("py_list_sort", VOID, [args[0], width, text, reverse, i64(op.site)])


# -- dicts and sets --------------------------------------------------------------------------------
def _key_type(kind: Type) -> Type:
    return kind.item if isinstance(kind, Set) else kind.key  # type: ignore[attr-defined]


def _value_type(kind: Type) -> Type | None:
    return kind.value if isinstance(kind, Dict) else None


@function("dict.new", "set.new")
def _dict_new(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    kind = op.results[0]
    key, value = _key_type(kind), _value_type(kind)
    widths = [i64(slots(key)), i64(slots(value) if value else 0)]
    return e.support("py_dict_new", PTR, [e.text(kinds_text(key)), *widths])


@function("dict.put", "set.put")
def _dict_put(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    value = _value_type(op.kinds[0])
    place = e.support("py_dict_put", PTR, [args[0], e.spill(args[1], op.kinds[1])])
    if value is not None:
        store_value(e.b, args[2], place, value)


@function("dict.find", "set.find")
def _dict_find(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """The address of a key's value as an int, 0 where it is not in."""
    suffix = {STR: "_str", INT: "_int"}.get(op.kinds[1])
    if suffix is None:
        place = e.call("py_dict_get", PTR, [args[0], e.spill(args[1], op.kinds[1])])
    else:  # the same search twice, with nothing written between, is done once
        place = e.call_reading(f"py_dict_get{suffix}", PTR, flat(e, args))
    return e.b.ptrtoint(place, I64)


@function("dict.pop", "set.pop")
def _dict_pop(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """Takes a key out; as `find`."""
    place = e.call("py_dict_pop", PTR, [args[0], e.spill(args[1], op.kinds[1])])
    return e.b.ptrtoint(place, I64)


@function("dict.load")
def _dict_load(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """The value at an address that `find` gave."""
    return load_value(e.b, e.b.inttoptr(args[0], PTR), op.results[0])


@function("dict.store")
def _dict_store(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    store_value(e.b, args[1], e.b.inttoptr(args[0], PTR), op.kinds[1])


@function("fail_if_zero")
def _fail_if_zero(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.fail_if(e.b.icmp_signed("==", args[0], i64(0)), op.site)


@function("fail_if")
def _fail_if(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.fail_if(args[0], op.site)


@function("dict.filled", "set.filled")
def _filled(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """How many entries there are, with those that were taken out."""
    return _word(e, args[0], FILLED)


def _entry(e: Emit, kind: Type, table: ir.Value, index: ir.Value) -> ir.Value:
    value = _value_type(kind)
    width = 1 + slots(_key_type(kind)) + (slots(value) if value else 0)
    return address(e.b, _word(e, table, ENTRIES, PTR), e.b.mul(index, i64(width)), I64)


@function("dict.is_entry", "set.is_entry")
def _is_entry(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    entry = _entry(e, op.kinds[0], args[0], args[1])
    return e.b.icmp_signed("!=", load_value(e.b, entry, INT), i64(-1))


@function("dict.key", "set.key")
def _key(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    entry = _entry(e, op.kinds[0], args[0], args[1])
    return load_value(e.b, entry, op.results[0], 1)


@function("dict.value")
def _value(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    entry = _entry(e, op.kinds[0], args[0], args[1])
    return load_value(e.b, entry, op.results[0], 1 + slots(_key_type(op.kinds[0])))


@function("dict.copy")
def _dict_copy(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    return e.support("py_dict_copy", PTR, args)


@function("dict.compact")
def _dict_compact(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """Entries that were taken out go away, so that all up to `filled` are there."""
    gaps = e.b.icmp_signed("!=", _word(e, args[0], USED), _word(e, args[0], FILLED))
    with e.unlikely(gaps):
        e.support("py_dict_compact", VOID, args)


@function("dict.clear")
def _dict_clear(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    e.call("py_dict_clear", VOID, args)


@function("same")
def _same(e: Emit, op: Applied, args: list[ir.Value]) -> Any:
    """Whether two containers are one."""
    a, b = (e.b.ptrtoint(v, I64) for v in args)
    return e.b.icmp_signed("==", a, b)
