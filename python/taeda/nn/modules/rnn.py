"""Recurrent layers over whole sequences: the Elman network, LSTM and GRU."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.module import Module
from taeda.nn.modules.rnn_cells import (
    CELLS,
    GRUCell,
    LSTMCell,
    RNNCell,
    RNNCellBase,
    reset_as_2026,
    run_sequence,
)
from taeda.nn.parameter import Parameter
from taeda.nn.utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


class RNNBase(Module):
    """The base class of RNN, LSTM and GRU.

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
                f"{mode}: dropout should be a number in range [0, 1] representing the "
                "probability of an "
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
                raise TypeError(
                    f"{mode}: {name} should be of type bool, got: {type(flag).__name__}"
                )
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(size, int):
                raise TypeError(f"{mode}: {name} should be of type int, got: {type(size).__name__}")
            if size <= 0:
                raise ValueError(f"{mode}: {name} must be greater than zero, got {size}")
        if not isinstance(num_layers, int):
            raise TypeError(
                f"{mode}: num_layers should be of type int, got: {type(num_layers).__name__}"
            )
        if num_layers <= 0:
            raise ValueError(f"{mode}: num_layers must be greater than zero, got {num_layers}")
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"{mode}: proj_size should be a positive integer, smaller than "
                "hidden_size, or zero to "
                f"disable projections, got {proj_size}"
            )
        if mode not in CELLS:
            raise ValueError(f"RNNBase: Unrecognized RNN mode: {mode}")
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
        gates = CELLS[mode][1] * hidden_size
        directions = 2 if bidirectional else 1
        self._all_weights: list[list[str]] = []  # names, a list for each layer and direction
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
                self._all_weights.append([name + suffix for name in shapes])
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 2 if self.bidirectional else 1]

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        if init.scheme_of(self) != "torch":
            return reset_as_2026(self, self.mode == "LSTM")
        limit = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -limit, limit)

    def flatten_parameters(self) -> None:
        """Do nothing: the weights are used where they are. For code that calls it."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Tensor | None]:
        """What the attributes named by `_flat_weights_names` hold now."""
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Tensor | None]) -> None:
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if getattr(self, name, None) is not weight:
                setattr(self, name, weight)

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise unless an input, packed where there are `batch_sizes`, has the right form."""
        name, weight = type(self).__name__, self._flat_weights[0]
        assert weight is not None
        if input.dtype != weight.dtype:
            raise ValueError(
                f"{name}: RNN input dtype ({input.dtype}) does not match weight dtype "
                f"({weight.dtype}). Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        if batch_sizes is None and input.dim() not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if batch_sizes is not None and input.dim() != 2:
            raise RuntimeError(f"{name}: packed input must have 2 dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"{name}: input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the state h for an input, packed where there are `batch_sizes`."""
        batch = input.size(0 if self.batch_first else 1)
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        rows = self.num_layers * (2 if self.bidirectional else 1)
        return rows, batch, self.proj_size or self.hidden_size

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise a RuntimeError, with both shapes in `msg`, unless a state has the expected one."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(
                f"{type(self).__name__}: {msg.format(tuple(expected_hidden_size), list(hx.shape))}"
            )

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise unless an input and a state, batched, have the right form."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """A state with its sequences in another order; None leaves it."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _first_state(self, hx: Any, batch: int, dim: int, input: Tensor) -> list[Tensor]:
        """The given h, and c of an LSTM, or zeros, of shape (layers * directions, N, size)."""
        rows = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            sizes.append(self.hidden_size)
        if hx is None:
            return [input.new_zeros((rows, batch, size)) for size in sizes]
        state = list(hx) if self.mode == "LSTM" else [hx]
        name = type(self).__name__
        if len(state) != len(sizes):
            raise ValueError(f"{name}: expected hx to be (h, c), got {len(state)} tensors")
        for i, (value, size) in enumerate(zip(state, sizes, strict=True)):
            which = f"hidden[{i}]" if self.mode == "LSTM" else "hidden"
            if value.dim() != dim:
                kind = "batched 3-D" if dim == 3 else "unbatched 2-D"
                raise RuntimeError(
                    f"{name}: For {kind} input, hx should also be {dim}-D but {which} is a "
                    f"{value.dim()}-D tensor"
                )
            if dim == 2:
                state[i] = value = value.unsqueeze(1)
            text = f"{name}: Expected {which} size {{}}, got {{}}"
            self.check_hidden_size(value, (rows, batch, size), text)
        return state

    def _run(
        self, input: Tensor, sizes: list[int], state: list[Tensor]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """All layers, over `sizes[t]` rows for each step t; return the outputs and last states."""
        cell = CELLS[self.mode][0]

        # By attribute: weight_norm, prune and others put a plain tensor in a parameter's place.
        def get(name: str) -> Any:
            return getattr(self, name, None)

        firsts = [part.unbind(0) for part in state]
        last: list[tuple[Tensor, ...]] = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self._suffixes(layer):
                first = [part[len(last)] for part in firsts]
                gates = F.linear(input, get("weight_ih" + suffix), get("bias_ih" + suffix))
                output, *final = run_sequence(
                    gates, first[0], first[1] if len(first) == 2 else None,
                    get("weight_hh" + suffix), get("bias_hh" + suffix), get("weight_hr" + suffix),
                    sizes, cell, suffix.endswith("_reverse"), keeps_dtype=self.mode == "GRU",
                )  # fmt: skip
                outputs.append(output)
                last.append(tuple(final[: len(first)]))
            input = outputs[0] if len(outputs) == 1 else taeda.cat(outputs, -1)
            if self.dropout and layer + 1 < self.num_layers:
                input = F.dropout(input, self.dropout, self.training)
        return input, tuple(taeda.stack(parts) for parts in zip(*last, strict=True))

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[Any, Any]:
        data, batch_sizes, order, back = input
        self.check_input(data, batch_sizes)
        sizes = batch_sizes.tolist()
        state = self._first_state(hx, sizes[0], 3, data)
        if hx is not None:
            state = [RNNBase.permute_hidden(self, part, order) for part in state]
        output, final = self._run(data, sizes, state)
        final = tuple(RNNBase.permute_hidden(self, part, back) for part in final)
        return PackedSequence(output, batch_sizes, order, back), final

    def _forward_padded(self, input: Tensor, hx: Any) -> tuple[Any, Any]:
        self.check_input(input, None)
        batched, dim = input.dim() == 3, input.dim()
        if not batched:
            input = input.unsqueeze(1)
        elif self.batch_first:
            input = input.transpose(0, 1)
        steps, batch = input.shape[:2]
        if steps == 0:
            raise RuntimeError(
                f"{type(self).__name__}: Expected sequence length to be larger than 0 in RNN"
            )
        state = self._first_state(hx, batch, dim, input)
        rows = input.reshape(steps * batch, input.size(2))
        output, final = self._run(rows, [batch] * steps, state)
        output = output.reshape(steps, batch, output.size(1))
        if not batched:
            return output.squeeze(1), tuple(part.squeeze(1) for part in final)
        return (output.transpose(0, 1) if self.batch_first else output), final

    def forward(self, input: Any, hx: Any = None) -> Any:
        run = self._forward_packed if isinstance(input, PackedSequence) else self._forward_padded
        output, state = run(input, hx)
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

    Called with an input (L, N, input_size), (L, input_size) or packed (`nn.utils.rnn`), and a state
    (layers * directions, N, H), by default zeros, it returns all outputs of the last layer and the
    last state.
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
                f"RNN: Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
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

    Called with an input (L, N, input_size), (L, input_size) or packed (`nn.utils.rnn`), and two
    states (h, c), of shape (layers * directions, N, H), by default zeros, it returns all outputs of
    the last layer and the last states.

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

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The shape of the state c for an input, packed where there are `batch_sizes`."""
        rows, batch, _ = self.get_expected_hidden_size(input, batch_sizes)
        return rows, batch, self.hidden_size

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raise unless an input and the states (h, c), batched, have the right form."""
        self.check_input(input, batch_sizes)
        sizes = (self.get_expected_hidden_size, self.get_expected_cell_size)
        for i, size in enumerate(sizes):
            text = f"Expected hidden[{i}] size {{}}, got {{}}"
            self.check_hidden_size(hidden[i], size(input, batch_sizes), text)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The states (h, c) with their sequences in another order; None leaves them."""
        return tuple(super(LSTM, self).permute_hidden(part, permutation) for part in hx)


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
