"""What code generation may know about a target's CPU: numbers and LLVM's own strings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuvil.ir.dtypes import dtype as dtype_of

GROUPS = {
    "bf16x2": 32,
    "u8s8x4": 32,
}  # neighbours in a sum that one instruction multiplies and adds


def dtype_bits(dtype: str) -> int:
    """Bits of one element, or of one group, in memory."""
    return GROUPS.get(dtype) or dtype_of(dtype).bits


@dataclass(frozen=True)
class TargetFacts:
    """A record of one target, as its backend fills it; generators branch on nothing else.

    triple, cpu, features: as LLVM takes them (features is "+a,-b").
    pointer_bits: 32 or 64. relocation: LLVM's model, "pic" or "static" where code has no loader.
    abi: LLVM's name of how functions are called, "" for what it takes for these features.
    float_bits: of the widest float that there are instructions for, 0 for none.
    vector_bits: width of the widest register worth using; vector_registers: how many.
    integer_registers: how many hold sums of integers, 0 where those are the vector registers.
    vector_group: registers that one instruction may take as one; longer work for fewer of them.
    in_order: instructions wait for each other in program order, so loads go well before their use.
    scalar_products: one instruction multiplies a vector by a number in a register of another kind.
    lane_products: one instruction multiplies a vector by one lane of another.
    fma: a fused multiply-add instruction exists for float vectors (else it would call libm).
    rounding, half: vector instructions round to integers, and convert f16 to f32 and back.
    l1_bytes, l1_ways, l2_bytes: the data caches of one core.
    prefer_vector_width: LLVM's `prefer-vector-width` attribute in bits, 0 to leave it out.
    tune: LLVM's name of a cpu whose costs its scheduler goes by, where that is not `cpu`.
    dots: group of `GROUPS` -> the intrinsic (sums, left, right) -> sums over one vector of groups;
    for bytes where they have none: "s8s8x4", the same of signed ones on both sides, or "i16x2" ->
    (left, right) -> sums of pairs of products. Of scalar targets: "i16x2" -> (left, right, sum),
    and "s8x2" -> bytes 0 and 2 of a register as such a pair.
    matrices: group -> the intrinsic (2x2 sums, left, right) -> sums of two rows of two groups each
    on the left by two on the right, in vectors of 128 bits; where that is better than `dots`.
    half_products: the intrinsics (sums, left, right) -> sums of products of the first four of eight
    halves, and of the second; with `lane_products`. Empty without them.
    byte_pick: the intrinsic (bytes, places below 16) -> the bytes at these places, of each 128 bits
    of a vector register; "" without one.
    byte_table: the intrinsic (four vectors of 16 bytes, places) -> the bytes of these 64 at 16
    places, zero for places beyond them; "" without one.
    """

    triple: str
    cpu: str = "generic"
    features: str = ""
    pointer_bits: int = 64
    relocation: str = "pic"
    abi: str = ""
    float_bits: int = 64
    vector_bits: int = 128
    vector_registers: int = 16
    integer_registers: int = 0
    vector_group: int = 1
    in_order: bool = False
    scalar_products: bool = False
    lane_products: bool = False
    fma: bool = False
    rounding: bool = False
    half: bool = False
    l1_bytes: int = 32 * 1024
    l1_ways: int = 8
    l2_bytes: int = 512 * 1024
    prefer_vector_width: int = 0
    tune: str = ""
    dots: Mapping[str, str] = field(default_factory=dict, hash=False)
    matrices: Mapping[str, str] = field(default_factory=dict, hash=False)
    half_products: tuple[str, ...] = ()
    byte_pick: str = ""
    byte_table: str = ""

    def lanes(self, dtype: str) -> int:
        """Elements of `dtype` in one vector register, or 1."""
        return max(1, self.vector_bits // dtype_bits(dtype))

    def registers(self, dtype: str) -> int:
        """Registers for sums of products of elements, or groups, of `dtype`."""
        integer = dtype in GROUPS and dtype != "bf16x2"
        return (integer and self.integer_registers) or self.vector_registers

    @property
    def fast_bytes(self) -> bool:
        """Whether sums of bytes are not slower than fewer products of floats: they are where bytes
        are multiplied as 16-bit integers."""
        return not (set(self.dots) == {"i16x2"} and not self.scalar and not self.matrices)

    @property
    def picks_bytes(self) -> bool:
        """Whether vectors of bytes can look into a table."""
        return bool(self.byte_pick or self.byte_table)

    @property
    def scalar(self) -> bool:
        """Whether there are no vector registers."""
        return self.vector_bits <= 32
