"""taeda.library: operations from outside the tree behave like those inside it."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np
import pytest

import taeda
from taeda import Tensor, library, nn
from taeda.autograd import gradcheck, gradgradcheck
from taeda.overrides import DisableTorchFunctionSubclass


@library.custom_op("tests::softsign", mutates_args=())
def softsign(x: Tensor, sharpness: float = 1.0) -> Tensor:
    """x / (1 + |x|), computed by NumPy."""
    values = x.numpy() * sharpness
    return taeda.from_numpy(values / (1 + np.abs(values)))


@softsign.register_fake
def _(x, sharpness):
    return taeda.empty_like(x)


def keep(ctx, inputs, output):
    x, ctx.sharpness = inputs
    ctx.save_for_backward(x)


def softsign_backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return ctx.sharpness * grad / (1 + (ctx.sharpness * x).abs()) ** 2, None


softsign.register_autograd(softsign_backward, setup_context=keep)


def double(*shape: int) -> Tensor:
    return taeda.randn(*shape, dtype=taeda.float64, requires_grad=True)


def test_value_and_call_forms():
    x = taeda.tensor([1.0, -3.0])
    assert softsign(x).tolist() == [0.5, -0.75]
    assert taeda.ops.tests.softsign(x, sharpness=0.0).tolist() == [0.0, 0.0]
    assert taeda.ops.tests.softsign.default(x=x).tolist() == [0.5, -0.75]
    assert dir(taeda.ops.tests).count("softsign") == 1


def test_gradients():
    taeda.manual_seed(0)
    assert gradcheck(lambda x: softsign(x, 0.7), double(3, 2))
    assert gradgradcheck(lambda x: softsign(x, 0.7), double(3, 2))


def test_graph():
    x = double(2)
    y = softsign(x)
    assert y.grad_fn.name() == "GeneratedBackwardFor_tests_softsign_defaultBackward"
    with taeda.no_grad():
        assert not softsign(x).requires_grad
    assert not softsign(x.detach()).requires_grad
    x.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_in_a_module():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x):
            return softsign(self.linear(x), 2.0)

    net = Net()
    optimizer = taeda.optim.SGD(net.parameters(), lr=0.5)
    x, target = taeda.randn(16, 3), taeda.full((16, 2), 0.25)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_tensors_without_data():
    y = softsign(taeda.empty(2, 3, device="meta", dtype=taeda.float64))
    assert y.is_meta and y.shape == (2, 3) and y.dtype is taeda.float64
    z = softsign(taeda.empty(2, device="meta", requires_grad=True))
    assert z.requires_grad


def test_torch_function_sees_the_operation():
    seen = []

    class Logged(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            with DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    y = softsign(taeda.ones(2).as_subclass(Logged))
    assert seen[0] is taeda.ops.tests.softsign
    assert y.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: softsign(1), r"tests::softsign\(\): argument 'x' \(position 1\) must be Tensor"),
        (lambda: softsign(), "missing 1 required"),
        (lambda: softsign(taeda.ones(1), "a"), "argument 'sharpness'"),
        (lambda: softsign(taeda.ones(1), slope=2), "unexpected keyword argument 'slope'"),
    ],
)
def test_arguments_are_checked(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_what_the_implementation_raises_comes_through():
    @library.custom_op("tests::raises", mutates_args=())
    def raises(x: Tensor) -> Tensor:
        raise KeyError("reason")

    with pytest.raises(KeyError, match="reason"):
        raises(taeda.ones(1))
    with pytest.raises(KeyError, match="reason"):
        raises(taeda.ones(1 << 17, requires_grad=True))


def test_results_are_checked():
    @library.custom_op("tests::returns", mutates_args=())
    def returns(x: Tensor, what: str) -> Tensor:
        return {"itself": x, "view": x[:1], "number": 3}.get(what)

    x = taeda.ones(2)
    for what in ("itself", "view"):
        with pytest.raises(RuntimeError, match="share memory"):
            returns(x, what)
    for what in ("number", "nothing"):
        with pytest.raises(TypeError, match="must return Tensor"):
            returns(x, what)


def test_several_results_and_lists():
    @library.custom_op("tests::scale_all", mutates_args=())
    def scale_all(
        tensors: Sequence[Tensor], factor: float, bias: Tensor | None = None
    ) -> list[Tensor]:
        return [t * factor if bias is None else t * factor + bias for t in tensors]

    def setup(ctx, inputs, output):
        assert isinstance(inputs[0], list) and isinstance(output, list)
        ctx.factor, ctx.biased = inputs[1], inputs[2] is not None
        assert ctx.needs_input_grad == ([True, False], False, ctx.biased)

    def backward(ctx, grads):
        bias = sum(grads) if ctx.biased else None
        return [g * ctx.factor for g in grads], None, bias

    scale_all.register_autograd(backward, setup_context=setup)
    a, b, c = double(2), double(2).detach(), double(2)
    assert gradcheck(lambda a: scale_all([a, b], 3.0)[0], a)
    assert gradcheck(lambda a, c: sum(scale_all([a, b], 3.0, c)), (a, c))

    @library.custom_op("tests::sin_cos", mutates_args=())
    def sin_cos(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.sin(), x.cos()

    sin_cos.register_autograd(
        lambda ctx, g, h: g * ctx.saved_tensors[1] - h * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*output),
    )
    assert gradcheck(sin_cos, double(3))
    assert gradgradcheck(sin_cos, double(3))


def test_keyword_only_arguments():
    @library.custom_op("tests::times", mutates_args=())
    def times(x: Tensor, *, k: float = 2.0) -> Tensor:
        return x * k

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.k = keyword_only_inputs["k"]

    times.register_autograd(lambda ctx, g: g * ctx.k, setup_context=setup)
    assert gradcheck(lambda x: times(x, k=3.0), double(2))
    with pytest.raises(TypeError, match="1 positional argument"):
        times(taeda.ones(1), 2.0)


def test_changing_arguments_in_place():
    @library.custom_op("tests::swap", mutates_args={"a", "b"})
    def swap(a: Tensor, b: Tensor) -> None:
        kept = a.numpy().copy()
        a.numpy()[...] = b.numpy()
        b.numpy()[...] = kept

    a, b = taeda.zeros(2), taeda.ones(2)
    versions = a._version, b._version
    assert swap(a, b) is None
    assert a.tolist() == [1, 1] and b.tolist() == [0, 0]
    assert (a._version, b._version) == (versions[0] + 1, versions[1] + 1)
    with pytest.raises(RuntimeError, match="changed in place"):
        swap(double(2), double(2).detach())
    with pytest.raises(RuntimeError, match="in place"):
        swap.register_autograd(lambda ctx: None)
    with taeda.inference_mode():
        c = taeda.ones(2)
    with pytest.raises(RuntimeError, match="inference tensor"):
        swap(c, a)


def test_wrong_derivatives():
    @library.custom_op("tests::product", mutates_args=())
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x * y

    with pytest.raises(RuntimeError, match=r"no derivative.*register_autograd"):
        product(double(2), double(2)).sum().backward()
    product.register_autograd(lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="must return 2 gradients"):
        product(double(2), double(2)).sum().backward()


def test_kernels_by_device():
    @library.custom_op("tests::elsewhere", mutates_args=(), device_types="cuda")
    def elsewhere(x: Tensor) -> Tensor:
        return x.clone()

    x = taeda.ones(1)
    with pytest.raises(NotImplementedError, match=r"on 'cpu' \(there is: cuda\)"):
        elsewhere(x)
    with pytest.raises(RuntimeError, match="register_fake"):
        elsewhere(x.to("meta"))
    elsewhere.register_kernel("cpu", lambda x: x + 1)
    assert elsewhere(x).item() == 2
    with pytest.raises(RuntimeError, match="device"):
        elsewhere.register_kernel("abacus", lambda x: x)


def test_redefinition_replaces():
    for factor in (2, 3):
        operation = library.custom_op("tests::again", lambda x: x * factor, mutates_args=(), schema="(Tensor x) -> Tensor")  # fmt: skip
        assert taeda.ops.tests.again(taeda.ones(1)).item() == factor == operation(taeda.ones(1))


class TestLibrary:
    def test_define_and_impl(self):
        lib = library.Library("tests_lib", "DEF")
        schema = 'affine(Tensor x, Tensor? w=None, int[] dims=[0, 1], *, Scalar k=2, bool f=False, str s="a") -> Tensor'
        assert lib.define(schema) == "affine"
        with pytest.raises(NotImplementedError, match="no implementation"):
            taeda.ops.tests_lib.affine(taeda.ones(1))
        calls = []

        def cpu(x, w, dims, *, k, f, s):
            calls.append((dims, k, f, s))
            return x * k if w is None else x * w + k

        lib.impl("affine", cpu, "CPU")
        affine = taeda.ops.tests_lib.affine
        assert affine(taeda.ones(1)).item() == 2
        assert affine(taeda.ones(1), taeda.full((1,), 4.0), [1], k=0.5, s="b").item() == 4.5
        assert calls == [((0, 1), 2, False, "a"), ((1,), 0.5, False, "b")]
        with pytest.raises(RuntimeError, match="has an implementation"):
            lib.impl("affine", cpu, "CPU")
        with pytest.raises(RuntimeError, match="defined already"):
            lib.define(schema)
        with pytest.raises(ValueError, match="dispatch key 'XLA'"):
            lib.impl("affine", cpu, "XLA")
        with pytest.raises(RuntimeError, match="use kind 'FRAGMENT'"):
            library.Library("tests_lib", "DEF")

    def test_composite_is_recorded(self):
        lib = library.Library("tests_composite", "FRAGMENT")
        lib.define("square_plus(Tensor x, float b) -> Tensor")
        lib.impl("square_plus", lambda x, b: x * x + b, "CompositeImplicitAutograd")
        operation = taeda.ops.tests_composite.square_plus
        assert gradcheck(lambda x: operation(x, 1.0), double(3))
        assert operation(double(2), 1.0).grad_fn.name() == "AddBackward0"
        assert operation(taeda.empty(2, device="meta"), 1.0).shape == (2,)

    def test_autograd_key(self):
        lib = library.Library("tests_autograd", "FRAGMENT")
        lib.define("cube(Tensor x) -> Tensor")
        lib.impl("cube", lambda x: x.detach() ** 3, "CPU")

        class Cube(taeda.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return taeda.ops.tests_autograd.cube(x)

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return 3 * x**2 * grad

        lib.impl("cube", Cube.apply, "Autograd")
        assert gradcheck(taeda.ops.tests_autograd.cube, double(3))

    def test_ends_with_the_library(self):
        lib = library.Library("tests_end", "DEF")
        lib.define("one(Tensor x) -> Tensor")
        assert taeda.ops.tests_end.one
        del lib
        gc.collect()
        with pytest.raises(AttributeError, match="'tests_end' object has no attribute 'one'"):
            _ = taeda.ops.tests_end.one
        library.Library("tests_end", "DEF").define("one(Tensor x) -> Tensor")

    def test_functions_instead_of_methods(self):
        library.define("tests_free::twice", "(Tensor x) -> Tensor")

        @library.impl("tests_free::twice", "cpu")
        def twice(x):
            return 2 * x

        library.register_autograd("tests_free::twice", lambda ctx, g: 2 * g)
        assert gradcheck(taeda.ops.tests_free.twice, double(2))
        with pytest.raises(RuntimeError, match="no operation 'tests_free::thrice'"):
            library.register_autograd("tests_free::thrice", twice)
        with pytest.raises(TypeError, match="an operation or its name"):
            library.register_fake(3, twice)

    @pytest.mark.parametrize(
        ("schema", "message"),
        [
            ("(Tensor x)", "expected"),
            ("(Tensor) -> Tensor", "no argument"),
            ("(Matrix x) -> Tensor", "unknown type 'Matrix'"),
            ("(bool[] x) -> Tensor", r"unknown type 'bool\[\]'"),
            ("(Tensor(a) x) -> Tensor(a)", "view"),
            ("(Tensor x) -> Banana", "unsupported result"),
        ],
    )
    def test_bad_schemas(self, schema, message):
        with pytest.raises(RuntimeError, match=message):
            library.define("tests_bad::schema", schema)


class TestInferSchema:
    def test_types(self):
        def f(
            x: Tensor,
            n: int,
            s: float | None = None,
            t: Tensor | None = None,
            d: Sequence[int] | None = None,
            *,
            flag: bool = True,
            name: str = "a",
            dtype: taeda.dtype | None = None,
        ) -> tuple[Tensor, Tensor]: ...

        expected = (
            "(Tensor x, SymInt n, float? s=None, Tensor? t=None, SymInt[]? d=None, *, "
            'bool flag=True, str name="a", ScalarType? dtype=None) -> (Tensor, Tensor)'
        )
        assert library.infer_schema(f, mutates_args=()) == expected
        marked = library.infer_schema(f, mutates_args={"x"})
        assert marked.startswith("(Tensor(a0!) x, ")

    @pytest.mark.parametrize(
        ("annotations", "message"),
        [
            ({"return": Tensor}, "must have a type annotation"),
            ({"x": Tensor}, "No return type"),
            ({"x": dict, "return": Tensor}, "unsupported type"),
            ({"x": Tensor, "return": dict}, "return type"),
            ({"x": "Nowhere", "return": Tensor}, "cannot be evaluated"),
        ],
    )
    def test_errors(self, annotations, message):
        def f(x): ...

        f.__annotations__ = annotations
        with pytest.raises(ValueError, match=message):
            library.infer_schema(f, mutates_args=())

    def test_mutated_names_must_exist(self):
        def f(x: Tensor, n: int) -> None: ...

        with pytest.raises(ValueError, match="no parameters"):
            library.infer_schema(f, mutates_args={"y"})
        with pytest.raises(ValueError, match="is no Tensor"):
            library.infer_schema(f, mutates_args={"n"})


def test_an_autocast_kernel_is_called_under_autocast_alone():
    lib = library.Library("test_autocast_key", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")

    def under_autocast(x: Tensor) -> Tensor:
        with taeda.autocast("cpu", enabled=False):
            return taeda.ops.test_autocast_key.twice(x.float()).to(x.dtype) + 1

    lib.impl("twice", under_autocast, "AutocastCPU")
    lib.impl("twice", len, "AutocastCUDA")
    x = taeda.ones(1, dtype=taeda.bfloat16)
    assert taeda.ops.test_autocast_key.twice(x).item() == 2
    with taeda.autocast("cpu"):
        assert taeda.ops.test_autocast_key.twice(x).item() == 3
    with pytest.raises(RuntimeError, match="has an implementation for 'AutocastCPU'"):
        lib.impl("twice", len, "AutocastCPU")
