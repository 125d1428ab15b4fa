"""One step of a recurrent layer, and what whole sequences share with it."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda._C import Tensor, ops
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.module import Module
from taeda.nn.parameter import Parameter

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]

# For each kind of cell its number in the op, and its number of gates.
CELLS = {"RNN_TANH": (0, 1), "RNN_RELU": (1, 1), "LSTM": (2, 4), "GRU": (3, 3)}


def reset_as_2026(module: Any, lstm: bool) -> None:
    """Each gate's matrix for the input by its fan-in, that for the state orthogonal; biases 0.

    The bias of an LSTM's forget gate is 1, so that it remembers at first.
    """
    size = module.hidden_size
    for name, parameter in module.named_parameters():
        if name.startswith("weight_hh"):
            for gate in parameter.detach().split(size):
                init.orthogonal_(gate)
        elif name.startswith("weight"):
            init.lecun_normal_(parameter)
        else:
            init.zeros_(parameter)
            if lstm and name.startswith("bias_ih"):
                init.ones_(parameter.detach()[size : 2 * size])


def run_sequence(gates: Tensor, h: Tensor, *rest: Any, keeps_dtype: bool) -> Any:
    """One direction of one layer. `keeps_dtype`: in the state's dtype, also under autocast."""
    from taeda.amp import autocast
    from taeda.amp.autocast_mode import enabled_for

    if not (keeps_dtype and enabled_for(h) == "cpu"):
        return ops._rnn_sequence(gates, h, *rest)
    with autocast("cpu", enabled=False):
        given: list[Any] = [x.to(h.dtype) if isinstance(x, Tensor) else x for x in rest]
        return ops._rnn_sequence(gates.to(h.dtype), h, *given)


class RNNCellBase(Module):
    """The base class of the cells.

    Args:
        input_size, hidden_size: the sizes of the input and of the state.
        bias: whether there are biases.
        num_chunks: how many gates there are.
        device, dtype: those of the parameters.
    """

    bias_ih: Tensor | None
    bias_hh: Tensor | None
    nonlinearity: str

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size

        def empty(*shape: int) -> Parameter:
            return Parameter(taeda.empty(shape, device=device, dtype=dtype))

        self.weight_ih = empty(gates, input_size)
        self.weight_hh = empty(gates, hidden_size)
        self.register_parameter("bias_ih", empty(gates) if bias else None)
        self.register_parameter("bias_hh", empty(gates) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        if init.scheme_of(self) != "torch":
            return reset_as_2026(self, isinstance(self, LSTMCell))
        limit = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -limit, limit)

    def _step(self, mode: str, input: Tensor, hx: Any) -> tuple[Tensor, ...]:
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"{name}: input has inconsistent input_size: got {input.size(-1)} expected "
                f"{self.input_size}"
            )
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = input.new_zeros((input.size(0), self.hidden_size))
            state = [zeros, zeros] if mode == "LSTM" else [zeros]
        else:
            state = list(hx) if mode == "LSTM" else [hx]
            for i, value in enumerate(state):
                if value.dim() not in (1, 2):
                    raise ValueError(
                        f"{name}: Expected hidden to be 1D or 2D, got {value.dim()}D instead"
                    )
                # Only an unbatched input has an unbatched state.
                state[i] = value = value if batched else value.unsqueeze(0)
                if value.size(1) != self.hidden_size:
                    raise RuntimeError(
                        f"{name}: hidden{i} has inconsistent hidden_size: got {value.size(1)}, "
                        f"expected {self.hidden_size}"
                    )
                if value.size(0) != input.size(0):
                    raise RuntimeError(
                        f"{name}: Input batch size {input.size(0)} doesn't match hidden{i} batch "
                        f"size {value.size(0)}"
                    )
        gates = F.linear(input, self.weight_ih, self.bias_ih)
        results = run_sequence(
            gates, state[0], state[1] if mode == "LSTM" else None, self.weight_hh, self.bias_hh,
            None, [input.size(0)], CELLS[mode][0], False, keeps_dtype=mode in ("LSTM", "GRU"),
        )  # fmt: skip
        final = results[1 : 1 + len(state)]
        return tuple(final) if batched else tuple(value.squeeze(0) for value in final)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of an `RNN`.

    Args:
        input_size, hidden_size: the sizes of the input and of the state.
        bias: whether there are biases.
        nonlinearity: "tanh" or "relu".
        device, dtype: those of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"{type(self).__name__}: Unknown nonlinearity: {self.nonlinearity}")
        return self._step("RNN_" + self.nonlinearity.upper(), input, hx)[0]


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: returns the next (h, c).

    Args:
        input_size, hidden_size: the sizes of the input and of the states.
        bias: whether there are biases.
        device, dtype: those of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        return self._step("LSTM", input, hx)


class GRUCell(RNNCellBase):
    """One step of a `GRU`; the arguments are those of `LSTMCell`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("GRU", input, hx)[0]
