"""The IR infrastructure's own classes, for the layers above: they import them from here."""

from xdsl.ir import Block, Operation, Region
from xdsl.ir import SSAValue as Value
from xdsl.utils.exceptions import VerifyException

__all__ = ["Block", "Operation", "Region", "Value", "VerifyException"]
