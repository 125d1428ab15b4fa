"""Extensions in C++: compiled by load, load_inline, setuptools and CMake, and ops defined in them."""

import fcntl
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import taeda
from taeda.autograd import gradcheck, gradgradcheck
from taeda.utils import cpp_extension

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "docs" / "examples" / "extension"

pytestmark = pytest.mark.skipif(
    not cpp_extension.check_compiler_is_found(), reason="there is no C++ compiler"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where everything is compiled, once for all workers of pytest-xdist."""
    base = tmp_path_factory.getbasetemp()
    where = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "extensions"
    where.mkdir(exist_ok=True)
    return where


@pytest.fixture(scope="module")
def plain(folder):
    module = cpp_extension.load("plain", [str(HERE / "plain.cpp")], build_directory=str(folder))
    return module, taeda.ops.plain


@pytest.fixture(scope="module")
def example(folder):
    """The example of the docs, built as its README says."""
    pytest.importorskip("nanobind")
    if shutil.which("cmake") is None:
        pytest.skip("no CMake")
    where = folder / "cmake"
    package = Path(taeda.__file__).parents[1]
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    python = f"-DPython_EXECUTABLE={sys.executable}"
    configure = ["cmake", "-S", str(EXAMPLE), "-B", str(where), python]
    configure += ["-DCMAKE_BUILD_TYPE=Debug"]
    with open(folder / "cmake.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (configure, ["cmake", "--build", str(where), "--parallel", "2"]):
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, done.stdout + done.stderr
    [file] = where.glob("smooth_example*.so")
    spec = importlib.util.spec_from_file_location("smooth_example", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- the example --------------------------------------------------------------------------------


def close(a, b):
    assert a.shape == b.shape and taeda.allclose(a, b, rtol=1e-5, atol=1e-6)


def smoothed(x, decay):
    """Exponential smoothing by ops."""
    if x.numel() == 0:
        return x
    rows, last = [], taeda.zeros_like(x[..., 0])
    for t in range(x.shape[-1]):
        last = (1 - decay) * x[..., t] + decay * last
        rows.append(last)
    return taeda.stack(rows, -1)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 0), (0, 3), (2, 3, 7)])
def test_example_values(example, shape):
    x = taeda.randn(*shape, dtype=taeda.float64)
    for given in (x, x.transpose(0, -1), x[..., ::2]):
        close(example.smooth(given, 0.3), smoothed(given, 0.3))
    single = example.smooth(x.float())
    close(single, smoothed(x.float(), 0.9))


def test_example_is_differentiable_twice(example):
    x = taeda.randn(3, 5, dtype=taeda.float64, requires_grad=True)
    for function in (example.smooth, lambda x: example.smooth(x, decay=0.25), example.roughness):
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))
    assert gradcheck(example.smooth, (x.detach().T.requires_grad_(),))


def test_example_behaves_as_a_built_in_operation(example):
    x = taeda.ones(4, requires_grad=True)
    y = example.smooth(x, 0.5)
    assert y.tolist() == [0.5, 0.75, 0.875, 0.9375]
    assert y.grad_fn.name() == "SmoothBackward0"
    assert taeda.ops.smooth_example.smooth(x).requires_grad
    assert "smooth" in dir(taeda.ops.smooth_example)
    with taeda.no_grad():
        assert not example.smooth(x).requires_grad
    with taeda.inference_mode():
        assert example.smooth(x).is_inference()
    meta = example.smooth(taeda.empty(2, 3, device="meta"))
    assert meta.device.type == "meta" and meta.shape == (2, 3)
    assert "Exponential smoothing" in example.smooth.__doc__
    with pytest.raises(TypeError, match="float32 or float64"):
        example.smooth(taeda.ones(3, dtype=taeda.int64))
    with pytest.raises(ValueError, match="decay must be"):
        example.smooth(x, decay=2.0)
    with pytest.raises(TypeError, match=r"smooth\(\)"):
        example.smooth("x")
    with pytest.raises(RuntimeError, match="must have a dimension"):
        example.roughness(taeda.tensor(1.0))


def test_example_sees_subclasses(example):
    class Loud(taeda.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    loud = taeda.ones(3).as_subclass(Loud)
    with pytest.raises(KeyError, match="smooth"):
        example.smooth(loud)


def test_example_refuses_sparse_tensors(example):
    sparse = taeda.eye(3).to_sparse()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        example.roughness(sparse)
    with pytest.raises(NotImplementedError, match="sparse"):
        example.smooth(sparse)
    assert example.roughness(taeda.nn.Parameter(taeda.ones(3))).item() > 0


# ---- ops of every kind --------------------------------------------------------------------------


def test_arguments_of_all_types(plain):
    _, ops = plain
    x = taeda.zeros(2)
    assert ops.sum_of(x, 1).tolist() == [1, 1]
    full = ops.sum_of(
        x, 1.5, 2, 0.25, True, "four", [1, 2], [0.5], dtype=taeda.float64, device="cpu"
    )
    assert full.dtype == taeda.float64 and full.tolist() == [12.25, 12.25]
    assert ops.sum_of(x, s=taeda.tensor(2), text="é").tolist() == [4, 4]  # UTF-8
    with pytest.raises(TypeError):
        ops.sum_of(x, 1, 2.5)
    with pytest.raises(TypeError):
        ops.sum_of(x)


def test_lists_and_several_results(plain):
    _, ops = plain
    x, y = (taeda.randn(3, dtype=taeda.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(lambda *xs: ops.total(list(xs)), (x, y))
    assert gradcheck(ops.parts, (x,)) and gradgradcheck(ops.parts, (x,))
    double, exponential = ops.parts(x)
    close(double, 2 * x)
    exponential.sum().backward()
    close(x.grad, x.exp().detach())


def test_composite_operation_records_what_it_calls(plain):
    _, ops = plain
    x = taeda.randn(2, 3, dtype=taeda.float64, requires_grad=True)
    assert ops.softer(x).grad_fn.name() == "SoftmaxBackward0"
    assert gradgradcheck(ops.softer, (x,))


def test_changes_in_place_are_seen(plain):
    _, ops = plain
    x = taeda.ones(3)
    before = x._version
    assert ops.fill_(x, 2.0) is None
    assert x.tolist() == [2, 2, 2] and x._version > before
    leaf = taeda.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        ops.fill_(leaf, 2.0)
    y = leaf * 1
    z = y.exp() * y
    ops.fill_(y, 0.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_results_that_are_arguments_or_views(plain):
    _, ops = plain
    x = taeda.ones(2, 2, requires_grad=True)
    y = ops.same(x)
    assert y is not x and x.is_leaf
    with pytest.raises(
        NotImplementedError, match="derivative for 'plain::same' is not implemented"
    ):
        y.sum().backward()
    assert ops.first_row(taeda.eye(2)).tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="derivative for 'plain::first_row'"):
        ops.first_row(x).sum().backward()
    assert ops.biggest(taeda.arange(5.0)) == 4.0


def test_memory_of_the_extension(plain):
    _, ops = plain
    for _ in range(100):
        assert ops.blob().sum().item() == 10
    gc.collect()


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("type", TypeError, "a type"),
        ("index", IndexError, "an index"),
        ("memory", MemoryError, "out of memory"),
        ("number", RuntimeError, "unknown type"),
        ("threads", ValueError, "a thread"),
        ("undefined", TypeError, r"add\(\): .* fit none of its forms"),
        ("dtype", TypeError, "dtype is another"),
        ("arguments", TypeError, r"softmax\(\): .* fit none of its forms"),
        ("missing", RuntimeError, "has no operation 'no_such_op'"),
        ("size", RuntimeError, "negative"),
        ("nothing", TypeError, "did not return Tensor"),
        ("other", RuntimeError, "a runtime error"),
    ],
)
def test_exceptions_keep_their_type(plain, kind, error, message):
    _, ops = plain
    with pytest.raises(error, match=message):
        ops.fail(taeda.ones(1), kind)


def test_exceptions_of_python_pass_through(plain):
    _, ops = plain
    with pytest.raises(RuntimeError, match="has no operation"):
        ops.calls_python(taeda.ones(1))

    @taeda.library.custom_op("plain_python::fail", mutates_args=())
    def fail(x: taeda.Tensor) -> taeda.Tensor:
        raise ZeroDivisionError("from Python")

    with pytest.raises(ZeroDivisionError, match="from Python") as caught:
        ops.calls_python(taeda.ones(1))
    assert any(entry.name == "fail" for entry in caught.traceback)


def test_mistakes_in_derivatives_are_errors(plain):
    _, ops = plain
    x = taeda.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="argument 0 was not saved"):
        ops.unsaved(x).sum().backward()
    with pytest.raises(IndexError, match="no argument 5"):
        ops.beyond(x).sum().backward()
    with pytest.raises(RuntimeError, match="MisshapenBackward0"):
        ops.misshapen(x).sum().backward()


def test_wrong_definitions_are_refused(plain):
    refused = plain[0].refused
    assert len(refused) == 6
    assert "namespace::name" in refused[0]
    assert "another type" in refused[1]
    assert "has 2 arguments, its function 1" in refused[2]
    assert not hasattr(taeda.ops.plain, "bad")


# ---- ways to compile ----------------------------------------------------------------------------


def test_load_inline(folder):
    pytest.importorskip("pybind11")
    source = """
    Tensor total(const std::vector<Tensor>& xs, double by) {
      Tensor sum = xs.at(0);
      for (size_t i = 1; i < xs.size(); ++i) sum = sum + xs[i];
      return sum * by;
    }
    std::optional<Tensor> pick(const Tensor& x, int64_t i) {
      if (i < 0) return std::nullopt;
      return op<"select">(x, 0, i);
    }
    """
    where = folder / "inline"
    where.mkdir(exist_ok=True)
    module = cpp_extension.load_inline(
        "inline_sums", source, {"total": "A sum.", "pick": ""}, build_directory=str(where)
    )
    x = taeda.arange(3.0, requires_grad=True)
    module.total([x, x], 3.0).sum().backward()
    assert x.grad.tolist() == [6, 6, 6]
    assert "A sum." in module.total.__doc__ and "taeda.Tensor" in module.total.__doc__
    assert module.pick(x, 1).item() == 1 and module.pick(x, -1) is None
    with pytest.raises(IndexError, match="out of range"):
        module.pick(x, 9)
    with pytest.raises(TypeError, match="incompatible"):
        module.pick("x", 0)
    again = cpp_extension.load_inline(
        "inline_sums", source, {"total": "A sum.", "pick": ""}, build_directory=str(where)
    )
    assert again is module


def test_load_compiles_again_what_has_changed(tmp_path):
    header, source = tmp_path / "number.h", tmp_path / "numbered.cpp"
    header.write_text("#define NUMBER 1\n")
    source.write_text(
        '#include <Python.h>\n#include "number.h"\n'
        "static PyModuleDef d{PyModuleDef_HEAD_INIT, TAEDA_NAME, nullptr, -1, nullptr, nullptr, "
        "nullptr, nullptr, nullptr};\n"
        "PyMODINIT_FUNC PyInit_numbered() { PyObject* m = PyModule_Create(&d); "
        'PyModule_AddIntConstant(m, "number", NUMBER + EXTRA); return m; }\n'
    )

    def numbered(extra):
        flags = [f"-DEXTRA={extra}", '-DTAEDA_NAME="numbered"']
        return cpp_extension.load("numbered", str(source), flags, build_directory=str(tmp_path))

    first = numbered(0)
    assert first.number == 1 and numbered(0) is first
    assert numbered(5).number == 6
    header.write_text("#define NUMBER 20\n")
    assert numbered(5).number == 25
    header.write_text("#error broken\n")
    with pytest.raises(RuntimeError, match="broken"):
        numbered(5)


def test_bad_calls(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="identifier"):
        cpp_extension.load("not a name", ["x.cpp"])
    with pytest.raises(ValueError, match="no sources"):
        cpp_extension.load("name", [])
    with pytest.raises(ValueError, match=r"a\.cu is CUDA"):
        cpp_extension.load("mine", ["a.cpp", "a.cu"])
    with pytest.raises(FileNotFoundError, match=r"x\.cpp"):
        cpp_extension.load("name", ["x.cpp"], build_directory=str(tmp_path))
    (tmp_path / "x.cpp").write_text("")
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert not cpp_extension.check_compiler_is_found()
    with pytest.raises(RuntimeError, match="no-such-compiler"):
        cpp_extension.load("name", [str(tmp_path / "x.cpp")], build_directory=str(tmp_path))


def test_setuptools(tmp_path):
    pytest.importorskip("setuptools")
    shutil.copy(HERE / "plain.cpp", tmp_path)
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\n"
        "from taeda.utils.cpp_extension import BuildExtension, CppExtension\n"
        "setup(name='plain', ext_modules=[CppExtension('plain', ['plain.cpp'])],\n"
        "      cmdclass={'build_ext': BuildExtension.with_options(debug=False)})\n"
    )
    package = str(Path(taeda.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": package, "CFLAGS": "-O0"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    code = "import plain, taeda; print(taeda.ops.plain.biggest(taeda.arange(3.)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "2.0\n", done.stderr


def test_headers_and_cmake_files_are_in_the_package():
    [include] = cpp_extension.include_paths()
    for name in ("abi.h", "taeda.h", "pybind11.h", "nanobind.h", "extension.h"):
        assert (Path(include) / "taeda" / name).is_file()
    assert (Path(cpp_extension.cmake_path()) / "taedaConfig.cmake").is_file()
    out = subprocess.run(
        [sys.executable, "-m", "taeda.utils.cpp_extension", "--cmake-dir"],
        env={**os.environ, "PYTHONPATH": str(Path(taeda.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert out.strip() == cpp_extension.cmake_path()
