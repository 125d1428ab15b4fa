"""What devices' modules say where there is no such device, beside PyTorch's build for the CPU."""

from __future__ import annotations

import importlib
import inspect

import pytest

import taeda
from taeda import _absent
from tests.names.both import shown

SAME = """
L.cuda.memory_stats(), L.cuda.memory_stats_as_nested_dict(), L.cuda.host_memory_stats()
L.cuda.is_tf32_supported(), L.cuda.get_gencode_flags(), L.cuda.max_memory_cached(), L.cuda.has_half
L.cuda.set_per_process_memory_fraction(0.5)
L.cuda.current_blas_handle()
L.cuda.get_sync_debug_mode()
L.cuda.set_sync_debug_mode("warn")
L.cuda.cudart()
L.cuda.MemPool()
L.cuda.nvtx.range_push("a")
L.cuda.nvtx.mark("a")
L.cuda.nvtx.range("a {}", 3).__enter__()
L.cuda.profiler.start()
L.cuda.profiler.profile().__enter__()
L.cuda.device("cpu")
L.xpu.memory_stats(), L.xpu.max_memory_allocated(), L.xpu.get_arch_list(), L.xpu.default_generators
L.xpu.get_rng_state_all(), L.xpu.is_tf32_supported(), L.xpu.memory_snapshot()
L.xpu.set_rng_state_all([])
L.xpu.get_device_properties()
L.xpu.get_rng_state()
L.xpu.current_stream()
L.xpu.Stream()
L.xpu.StreamContext(None).__enter__(), L.xpu.stream(None).__enter__()
L.xpu.init()
L.mtia.is_available(), L.mtia.device_count(), L.mtia.is_initialized(), L.mtia.memory_allocated()
L.mtia.memory_stats() == {}, L.mtia.get_rng_state_all(), L.mtia.manual_seed(1), L.mtia.seed_all()
L.mtia.record_memory_history(), L.mtia.reset_peak_memory_stats(), L.mtia.set_rng_state_all([])
L.mtia.current_device()
L.mtia.get_rng_state()
L.mtia.initial_seed()
L.mtia.synchronize()
L.mtia.snapshot()
L.mtia.MTIAGraph()
L.accelerator.empty_cache()
L.accelerator.memory_allocated()
L.accelerator.memory_stats()
L.accelerator.current_device_idx()
L.accelerator.set_device_idx(0)
L.accelerator.Graph()
L.accelerator.device_index(None).__enter__()
L.mps.get_rng_state()
L.mps.set_per_process_memory_fraction(0.5)
L.backends.cuda.is_flash_attention_available(), L.backends.cuda.is_ck_sdpa_available()
q = L.ones(1, 1, 2, 8); p = L.backends.cuda.SDPAParams(q, q, q, None, 0.0, False, False); p.is_causal, L.backends.cuda.can_use_efficient_attention(p)
L.backends.cuda.can_use_flash_attention(3)
b = L.backends.cuda; b.allow_fp16_bf16_reduction_math_sdp(True); s = b.fp16_bf16_reduction_math_sdp_allowed(); b.allow_fp16_bf16_reduction_math_sdp(False); s, b.fp16_bf16_reduction_math_sdp_allowed()
L.backends.cuda.allow_fp16_bf16_reduction_math_sdp(1)
b = L.backends.mha; s = b.get_fastpath_enabled(); b.set_fastpath_enabled(False); t = b.get_fastpath_enabled(); b.set_fastpath_enabled(True); s, t
L.backends.nnpack.set_flags(1)
L.backends.cusparselt.is_available(), L.backends.cusparselt.version()
"""


@pytest.mark.parametrize("text", SAME.strip().splitlines())
def test_as_in_pytorch(text):
    torch = pytest.importorskip("torch")
    assert shown(taeda, text) == shown(torch, text)


GIVEN = {"new_states": [], "seed": 0}  # for parameters that have no default


@pytest.mark.parametrize("name", _absent.DEVICES)
def test_every_function_answers_or_refuses(name):
    module = importlib.import_module(f"taeda.{name}")
    for key, value in _absent.functions(name).items():
        ours = getattr(module, key)
        assert key in module.__all__ and ours.__doc__ == value.__doc__
        assert ours.__module__ == f"taeda.{name}" and ours.__name__ == key
        parameters = inspect.signature(ours).parameters.values()
        args = [GIVEN.get(p.name) for p in parameters if p.default is p.empty]
        if "Error" in ours.__doc__:
            with pytest.raises((AssertionError, RuntimeError), match=f"{name}.{key}: "):
                ours(*args)
        else:
            assert not ours(*args)
    for key in _absent.DEVICES[name].classes.split():
        with pytest.raises(RuntimeError, match=f"{name}.{key}"):
            getattr(module, key)()


@pytest.mark.parametrize("name", _absent.DEVICES)
def test_parameters_are_those_of_pytorch(name):
    torch = pytest.importorskip("torch")
    theirs = importlib.import_module(f"{torch.__name__}.{name}")
    for key, ours in _absent.functions(name).items():
        function = getattr(theirs, key)
        parameters = inspect.signature(ours).parameters.values()
        expected = inspect.signature(function).parameters.values()
        defaults = [p.default for p in expected]
        assert [p.name for p in parameters] == [p.name for p in expected], key
        assert [p.default for p in parameters] == defaults or "device_idx" in key, key


def test_modules_are_imported_by_name():
    for name in ("taeda.xpu", "taeda.mps", "taeda.mtia", "taeda.accelerator", "taeda.backends.mps"):
        module = importlib.import_module(name)
        assert module.__name__ == name and module.is_available() is False
    from taeda.mps import device_count

    assert device_count() == 0 and device_count.__module__ == "taeda.mps"
    with pytest.raises(RuntimeError, match="set_rng_state_all"):
        taeda.mtia.set_rng_state_all([taeda.zeros(1)])
    for call in (taeda.xpu.is_bf16_supported, taeda.accelerator.current_accelerator):
        with pytest.raises(TypeError, match="must be a bool"):
            call(3)


def test_switches_that_choose_nothing():
    nnpack = taeda.backends.nnpack
    assert nnpack.set_flags(True) == (False,)
    with nnpack.flags(False):
        assert nnpack.set_flags(False) == (False,)
    assert nnpack.set_flags(False) == (True,)
    with pytest.raises(RuntimeError, match="has no xpu"), taeda.xpu.device(0):
        pass
    with pytest.raises(RuntimeError, match="no accelerator"), taeda.accelerator.device_index(0):
        pass
