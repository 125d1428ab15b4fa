"""What devices' modules say where there is no such device, beside PyTorch's build for the CPU."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("cuda", AssertionError),
        ("xpu", AssertionError),
        ("mtia", None),
        ("accelerator", RuntimeError),
        ("mps", RuntimeError),
    ],
)
def test_every_function_answers_or_refuses(name, error):
    module = getattr(taeda, name)
    for key, value in module._REST.items():
        assert key in module.__all__ and getattr(module, key) is value
        if isinstance(value, type):
            with pytest.raises(RuntimeError, match=f"{name}.{key}"):
                value()
        elif (
            key in _absent.ANSWERS
            and "AssertionError" not in value.__doc__
            and "RuntimeError" not in value.__doc__
        ):
            assert value() == _absent.ANSWERS[key][0]()
        else:
            with pytest.raises(error or (AssertionError, RuntimeError), match=f"{name}.{key}"):
                value()


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
