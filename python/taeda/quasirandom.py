"""Points that fill the unit cube more evenly than random ones: Sobol sequences."""

from __future__ import annotations

import base64
from functools import lru_cache

import taeda
from taeda._C import Tensor

__all__ = ["SobolEngine"]

_DEGREE = 13  # that of the last dimensions' polynomials


def _times(a: int, b: int, p: int) -> int:
    """The product of two polynomials over GF(2), as bits, modulo a third."""
    top, result = 1 << (p.bit_length() - 1), 0
    while b:
        if b & 1:
            result ^= a
        a <<= 1
        if a & top:
            a ^= p
        b >>= 1
    return result


def _is_primitive(p: int, order: int, primes: list[int]) -> bool:
    """Whether the powers of x modulo `p` are all `order` polynomials but 0."""

    def power(n: int) -> int:
        result, square = 1, _times(2, 1, p)
        while n:
            if n & 1:
                result = _times(result, square, p)
            square = _times(square, square, p)
            n >>= 1
        return result

    return power(order) == 1 and all(power(order // q) != 1 for q in primes)


@lru_cache(maxsize=_DEGREE)
def _of_degree(degree: int) -> list[int]:
    """The primitive polynomials of a degree, in order."""
    order = 2**degree - 1
    odd = range(3, order // 2 + 1, 2)
    primes = [q for q in odd if order % q == 0 and all(q % r for r in range(3, q, 2))]
    candidates = (p for p in range(order + 2, 2 * order + 2, 2) if p.bit_count() % 2)
    return [p for p in candidates if _is_primitive(p, order, primes)] if degree > 1 else [3]


def _polynomials(count: int) -> list[int]:
    """The first primitive polynomials: one for each dimension from the second on."""
    found: list[int] = []
    for degree in range(1, _DEGREE + 1):
        if len(found) < count:
            found += _of_degree(degree)
    return found[:count]


def _direction_numbers(dimension: int, bits: int) -> Tensor:
    """The direction numbers of each dimension, of shape (dimension, bits)."""
    from taeda._sobol_numbers import BITS  # 11 KB

    packed = base64.b85decode(BITS)
    whole, place = int.from_bytes(packed, "big"), 8 * len(packed)
    table = [[1] * bits]
    for p in _polynomials(dimension - 1):
        degree = p.bit_length() - 1
        row: list[int] = []
        for i in range(min(degree, bits)):
            number = 1
            for k in range(1, i + 1):
                place -= 1
                number |= (whole >> place & 1) << k
            row.append(number)
        for i in range(degree, bits):
            number = row[i - degree] ^ row[i - degree] << degree
            for k in range(1, degree):
                if p >> (degree - k) & 1:
                    number ^= row[i - k] << k
            row.append(number)
        table.append(row)
    shifts = taeda.arange(bits - 1, -1, -1)
    return taeda.tensor(table) << shifts


class SobolEngine:
    """A Sobol sequence in the unit cube, with the numbers that PyTorch gives.

    Direction numbers are those of Joe and Kuo (2008), for up to 1111 dimensions. Scrambling is by
    random lower triangular matrices and a shift (Matousek, 1998).

    Args:
        dimension: of the points, from 1 to 1111.
        scramble: scramble the sequence, so that each point is uniform by itself.
        seed: of the scrambling; the default generator is drawn from without one.

    Raises:
        ValueError: the dimension is out of range.

    >>> engine = taeda.quasirandom.SobolEngine(2)
    >>> engine.draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 1111

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine: dimension must be in [1, {self.MAXDIM}], got {dimension}"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = _direction_numbers(dimension, self.MAXBIT)
        self.shift = taeda.zeros(dimension, dtype=taeda.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def _scramble(self) -> None:
        bits = self.MAXBIT
        generator = None if self.seed is None else taeda.Generator().manual_seed(self.seed)
        places = taeda.arange(bits)
        shift = taeda.randint(2, (self.dimension, bits), generator=generator)
        self.shift = (shift << places).sum(1)
        matrix = taeda.randint(2, (self.dimension, bits, bits), generator=generator).tril()
        matrix.diagonal(dim1=1, dim2=2).fill_(1)
        # Of each direction number, the highest bit first.
        digits = (self.sobolstate.unsqueeze(1) >> places.flip(0).view(1, -1, 1)) & 1
        mixed = (matrix.float() @ digits.float()).long() & 1
        self.sobolstate = (mixed << places.flip(0).view(1, -1, 1)).sum(1)

    def _numbers(self, first: int, n: int) -> Tensor:
        """Points `first` to `first + n` as integers of `MAXBIT` bits, of shape (n, dimension)."""
        index = taeda.arange(first, first + n)
        code = index ^ (index >> 1)  # Gray code: one bit changes from point to point
        points = self.shift.expand(n, -1).clone()
        for k in range((first + n).bit_length()):
            points ^= (code >> k & 1).unsqueeze(1) * self.sobolstate[:, k]
        return points

    def draw(
        self, n: int = 1, out: Tensor | None = None, dtype: taeda.dtype | None = None
    ) -> Tensor:
        """Return the next points, of shape (n, dimension).

        Args:
            n: how many.
            out: a tensor to write them to.
            dtype: float32 or float64; the default dtype unless given.
        """
        dtype = taeda.get_default_dtype() if dtype is None else dtype
        if dtype not in (taeda.float32, taeda.float64):
            raise NotImplementedError(f"SobolEngine.draw: {dtype} is neither float32 nor float64")
        points = self._numbers(self.num_generated, n)
        self.num_generated += n
        self.quasi = self._numbers(max(self.num_generated - 1, 0), 1)[0]
        result = points.to(dtype) * 2.0**-self.MAXBIT
        if out is None:
            return result
        return out.resize_(result.shape).copy_(result)

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: taeda.dtype | None = None
    ) -> Tensor:
        """Return the next ``2**m`` points.

        Raises:
            ValueError: the points until then would not be a power of 2, without which they are not
                balanced; ``draw`` gives them all the same.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"SobolEngine.draw_base2: {self.num_generated} points have been generated, and "
                f"{total} is not a power of 2; use draw"
            )
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point, and return the engine."""
        return self.fast_forward(-self.num_generated)

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out ``n`` points, and return the engine."""
        self.num_generated += n
        self.quasi = self._numbers(max(self.num_generated - 1, 0), 1)[0]
        return self

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(words)})"
