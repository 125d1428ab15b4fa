"""Classes with __torch_dispatch__ as users write them, of taeda or, by classes_of, of PyTorch."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import taeda


def _make(lib: Any) -> dict[str, Any]:
    tree_map = lib.utils._pytree.tree_map
    aten = lib.ops.aten
    tensor: Any = lib.Tensor

    def like(cls: Any, t: Any, requires_grad: bool = False, size: Any = None) -> Any:
        return tensor._make_wrapper_subclass(
            cls,
            t.size(),
            strides=t.stride(),
            storage_offset=t.storage_offset(),
            dtype=t.dtype,
            layout=t.layout,
            device=t.device,
            requires_grad=requires_grad,
        )

    class Logging(tensor):  # type: ignore[misc]
        """Notes every call, and computes with the tensor that it holds."""

        log: list[Any] = []
        __torch_function__ = lib._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls: Any, elem: Any, requires_grad: bool = False) -> Any:
            self = like(cls, elem, requires_grad)
            self.elem = elem
            return self

        def __repr__(self) -> str:
            return f"{type(self).__name__}({self.elem})"

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            cls.log.append((func, types, args, kwargs))

            def unwrap(e: Any) -> Any:
                return e.elem if isinstance(e, Logging) else e

            def wrap(e: Any) -> Any:
                return cls(e) if isinstance(e, tensor) else e

            result = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
            return tree_map(wrap, result)

    class Two(tensor):  # type: ignore[misc]
        """A pair of tensors that everything is done to."""

        __torch_function__ = lib._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls: Any, a: Any, b: Any, requires_grad: bool = False) -> Any:
            return like(cls, a, requires_grad)

        def __init__(self, a: Any, b: Any, requires_grad: bool = False) -> None:
            self.a, self.b = a, b

        def __repr__(self) -> str:
            return f"Two({self.a}, {self.b})"

        def __tensor_flatten__(self) -> Any:
            return ["a", "b"], None

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            def part(name: str) -> Any:
                def of(x: Any) -> Any:
                    return getattr(x, name) if isinstance(x, Two) else x

                return func(*tree_map(of, args), **tree_map(of, kwargs or {}))

            first, second = part("a"), part("b")
            if isinstance(first, (list, tuple)):
                pairs = [cls(a, b) for a, b in zip(first, second, strict=True)]
                return type(first)(pairs) if type(first) in (list, tuple) else tuple(pairs)
            return cls(first, second) if isinstance(first, tensor) else first

    class Scaled(tensor):  # type: ignore[misc]
        """Numbers of 8 bits times a scale; what it has no rule for sees the product."""

        __torch_function__ = lib._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls: Any, values: Any, scale: Any) -> Any:
            self = tensor._make_wrapper_subclass(
                cls, values.size(), strides=values.stride(), dtype=scale.dtype, device=values.device
            )
            self.values, self.scale = values, scale
            return self

        @classmethod
        def of(cls, t: Any) -> Any:
            scale = t.abs().max() / 127
            return cls((t / scale).round().to(lib.int8), scale)

        def __repr__(self) -> str:
            return f"Scaled({self.values}, {self.scale})"

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func in (
                aten.detach.default,
                aten.t.default,
                aten.transpose.int,
                aten.clone.default,
            ):
                own, *rest = args
                return cls(func(own.values, *rest, **(kwargs or {})), own.scale)

            def product(x: Any) -> Any:
                return x.values.to(x.scale.dtype) * x.scale if isinstance(x, Scaled) else x

            return func(*tree_map(product, args), **tree_map(product, kwargs or {}))

    class Masked(tensor):  # type: ignore[misc]
        """Elements of which some are missing."""

        __torch_function__ = lib._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls: Any, data: Any, mask: Any) -> Any:
            self = like(cls, data)
            self.data_part, self.mask = data, mask
            return self

        def __repr__(self) -> str:
            return f"Masked({self.data_part}, {self.mask})"

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is aten.sum.default:
                return lib.where(args[0].mask, args[0].data_part, 0.0).sum()
            if func not in (aten.add.Tensor, aten.mul.Tensor):
                return NotImplemented
            masks = [a.mask for a in args if isinstance(a, Masked)]
            mask = masks[0]
            for other in masks[1:]:
                mask = mask & other
            data = [a.data_part if isinstance(a, Masked) else a for a in args]
            return cls(func(*data, **(kwargs or {})), mask)

    class Counting(Logging):
        """Counts the multiplications and additions of matrix products."""

        flops = 0

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is aten.mm.default:
                a, b = args
                Counting.flops += 2 * a.shape[0] * a.shape[1] * b.shape[1]
            return super().__torch_dispatch__(func, types, args, kwargs)

    made = {c.__name__: c for c in (Logging, Two, Scaled, Masked, Counting)}
    for name, c in made.items():  # so that pickle finds them
        c.__module__, c.__qualname__ = __name__, name
    return made


Logging: Any
Two: Any
Scaled: Any
Masked: Any
Counting: Any
_own: ModuleType = sys.modules[__name__]
for _name, _class in _make(taeda).items():
    setattr(_own, _name, _class)


def classes_of(lib: Any) -> Any:
    """The same classes of another library."""
    return SimpleNamespace(**_make(lib))
