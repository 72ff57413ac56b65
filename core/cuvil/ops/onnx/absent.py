"""What stands for an optional that is empty."""

from cuvil.ir.names import Value


class Absent(list[Value]):
    """An optional that is not there."""
