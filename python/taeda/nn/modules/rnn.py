"""Recurrent layers: the Elman network, LSTM and GRU, whole or one step at a time."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.module import Module
from taeda.nn.parameter import Parameter

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "GRU": 3, "LSTM": 4}


def _elman(activation: Callable[[Tensor], Tensor]) -> Callable[..., tuple[Tensor, ...]]:
    def step(x: Tensor, state: tuple[Tensor, ...], w: Tensor, b: Tensor | None, r: Any) -> Any:
        return (activation(x + F.linear(state[0], w, b)),)

    return step


def _gru(x: Tensor, state: tuple[Tensor, ...], w: Tensor, b: Tensor | None, r: Any) -> Any:
    (h,) = state
    x_reset, x_update, x_new = x.chunk(3, -1)
    h_reset, h_update, h_new = F.linear(h, w, b).chunk(3, -1)
    reset = (x_reset + h_reset).sigmoid()
    update = (x_update + h_update).sigmoid()
    new = (x_new + reset * h_new).tanh()
    return (new + update * (h - new),)


def _lstm(x: Tensor, state: tuple[Tensor, ...], w: Tensor, b: Tensor | None, r: Any) -> Any:
    h, c = state
    into, forget, new, out = (x + F.linear(h, w, b)).chunk(4, -1)
    c = forget.sigmoid() * c + into.sigmoid() * new.tanh()
    h = out.sigmoid() * c.tanh()
    return (h if r is None else F.linear(h, r), c)


# How each kind makes the next state of: the input's part of the gates, the state, the weight and
# bias of the state, and for an LSTM with projection, the weight of that.
_STEPS = {"RNN_TANH": _elman(F.tanh), "RNN_RELU": _elman(F.relu), "GRU": _gru, "LSTM": _lstm}


class RNNBase(Module):
    """What RNN, LSTM and GRU share.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: the size of each input vector.
        hidden_size: the size H of the state.
        num_layers: how many layers; each takes the outputs of the one before.
        bias: whether there are biases.
        batch_first: inputs and outputs are (N, L, *) instead of (L, N, *).
        dropout: the probability of dropout after each layer but the last.
        bidirectional: whether there is a second network that reads backwards.
        proj_size: for an LSTM, the size that the output is projected to; 0 for none.
        device, dtype: those of the parameters.

    Attributes:
        weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0: the weights of the input
            and of the state, of shapes (gates * H, input) and (gates * H, H), their biases, and
            the projection's weight. Those of the other layers end in their numbers, those of
            networks that read backwards in `_reverse`. All are at first uniform in ±1 / sqrt(H).
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
        if not number or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                f"element being zeroed, got {dropout}"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={num_layers}",
                stacklevel=3,
            )
        for name, flag in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(flag, bool):
                raise TypeError(f"{name} should be of type bool, got: {type(flag).__name__}")
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(size, int):
                raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero, got {size}")
        if num_layers <= 0:
            raise ValueError(f"num_layers must be greater than zero, got {num_layers}")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                "proj_size should be a positive integer, smaller than hidden_size, or zero to "
                f"disable projections, got {proj_size}"
            )
        if mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        state_size = proj_size or hidden_size
        gates = _GATES[mode] * hidden_size
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else state_size * directions
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, inputs),
                    "weight_hh": (gates, state_size),
                }
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    value = Parameter(taeda.empty(shape, device=device, dtype=dtype))
                    self.register_parameter(name + suffix, value)
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 2 if self.bidirectional else 1]

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        limit = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -limit, limit)

    def flatten_parameters(self) -> None:
        """Do nothing: the weights are used where they are. For code that calls it."""

    @property
    def all_weights(self) -> list[list[Parameter | None]]:
        """The parameters, a list for each layer and direction."""
        kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        return [
            [self._parameters[k + suffix] for k in kinds if k + suffix in self._parameters]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def _first_state(self, input: Tensor, hx: Any) -> tuple[Tensor, ...]:
        """The given state, or zeros, of shape (layers * directions, N, size)."""
        rows = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            sizes.append(self.hidden_size)
        shapes = [(rows, input.size(1), size) for size in sizes]
        if hx is None:
            return tuple(input.new_zeros(shape) for shape in shapes)
        state = tuple(hx) if self.mode == "LSTM" else (hx,)
        for value, shape in zip(state, shapes, strict=True):
            if tuple(value.shape) != shape:
                raise RuntimeError(
                    f"{type(self).__name__}: expected hidden size {shape}, got {list(value.shape)}"
                )
        return state

    def _run(self, input: Tensor, hx: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )
        weight = self.weight_ih_l0
        if input.dtype != weight.dtype:
            raise ValueError(
                f"{type(self).__name__}: RNN input dtype ({input.dtype}) does not match weight "
                f"dtype ({weight.dtype}). Convert input: input.to({weight.dtype}), or convert "
                f"model: model.to({input.dtype})"
            )
        batched = input.dim() == 3
        if not batched:
            input = input.unsqueeze(1)
            if hx is not None:
                lstm = self.mode == "LSTM"
                hx = tuple(h.unsqueeze(1) for h in hx) if lstm else hx.unsqueeze(1)
        elif self.batch_first:
            input = input.transpose(0, 1)
        state = self._first_state(input, hx)
        step, last = _STEPS[self.mode], []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self._suffixes(layer):
                row = len(last)
                output, final = self._direction(step, input, tuple(s[row] for s in state), suffix)
                outputs.append(output)
                last.append(final)
            input = outputs[0] if len(outputs) == 1 else taeda.cat(outputs, -1)
            if self.dropout and layer + 1 < self.num_layers:
                input = F.dropout(input, self.dropout, self.training)
        final_state = tuple(taeda.stack(parts) for parts in zip(*last, strict=True))
        if not batched:
            return input.squeeze(1), tuple(part.squeeze(1) for part in final_state)
        return (input.transpose(0, 1) if self.batch_first else input), final_state

    def _direction(
        self, step: Callable[..., Any], input: Tensor, state: tuple[Tensor, ...], suffix: str
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Read a whole sequence (L, N, *) one way; return all outputs and the last state."""
        get = self._parameters.get
        # The inputs' part of the gates needs no state, so it is one product for all steps.
        parts = F.linear(input, get("weight_ih" + suffix), get("bias_ih" + suffix)).unbind(0)
        recurrent = (get("weight_hh" + suffix), get("bias_hh" + suffix), get("weight_hr" + suffix))
        backwards = suffix.endswith("_reverse")
        outputs = []
        for part in reversed(parts) if backwards else parts:
            state = step(part, state, *recurrent)
            outputs.append(state[0])
        if backwards:
            outputs.reverse()
        return taeda.stack(outputs), state

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        output, state = self._run(input, hx)
        return output, state if self.mode == "LSTM" else state[0]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text


class RNN(RNNBase):
    """tanh, or ReLU, of weighted inputs and state (Elman, 1990).

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device,
            dtype: as for `RNNBase`.
        nonlinearity: "tanh" or "relu".

    Called with an input (L, N, input_size), or (L, input_size), and a state (layers * directions,
    N, H), by default zeros, it returns all outputs of the last layer and the last state.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        self.nonlinearity = nonlinearity
        super().__init__(
            "RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, bias, batch_first,
            dropout, bidirectional, 0, device, dtype,
        )  # fmt: skip


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997).

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
            device, dtype: as for `RNNBase`.

    Called with an input (L, N, input_size), or (L, input_size), and two states (h, c), of shape
    (layers * directions, N, H), by default zeros, it returns all outputs of the last layer and the
    last states.

    >>> lstm = taeda.nn.LSTM(3, 4)
    >>> output, (h, c) = lstm(taeda.zeros(5, 2, 3))
    >>> tuple(output.shape), tuple(h.shape)
    ((5, 2, 4), (1, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            proj_size, device, dtype,
        )  # fmt: skip


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014).

    The arguments are those of `LSTM`, without `proj_size`. It has one state, as `RNN` has.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
            0, device, dtype,
        )  # fmt: skip


class RNNCellBase(Module):
    """What the cells share.

    Args:
        input_size, hidden_size: the sizes of the input and of the state.
        bias: whether there are biases.
        num_chunks: how many gates there are.
        device, dtype: those of the parameters.
    """

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
        limit = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -limit, limit)

    def _step(self, mode: str, input: Tensor, hx: Any) -> tuple[Tensor, ...]:
        if input.dim() not in (1, 2):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.dim()}D instead"
            )
        batched = input.dim() == 2
        input = input if batched else input.unsqueeze(0)
        if hx is None:
            zeros = input.new_zeros((input.size(0), self.hidden_size))
            state: tuple[Tensor, ...] = (zeros, zeros) if mode == "LSTM" else (zeros,)
        else:
            state = tuple(hx) if mode == "LSTM" else (hx,)
            for value in state:
                if value.dim() not in (1, 2):
                    raise ValueError(
                        f"{type(self).__name__}: Expected hidden to be 1D or 2D, got "
                        f"{value.dim()}D instead"
                    )
            state = state if batched else tuple(value.unsqueeze(0) for value in state)
        part = F.linear(input, self.weight_ih, self.bias_ih)
        state = _STEPS[mode](part, state, self.weight_hh, self.bias_hh, None)
        return state if batched else tuple(value.squeeze(0) for value in state)

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
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
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
