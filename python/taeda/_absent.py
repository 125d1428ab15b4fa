"""Functions of devices that this build lacks: they answer for none, or say that there is none."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

__all__ = ["classes", "functions"]

# What is true where there is no device: the function's name, what it answers, and what that is.
ANSWERS: dict[str, tuple[Callable[[], Any], str]] = {
    "get_arch_list": (list, "The architectures that this build has kernels for: none"),
    "get_gencode_flags": (str, "The compiler's flags of this build: none"),
    "get_rng_state_all": (list, "The states of all devices' generators: none"),
    "host_memory_stats": (OrderedDict, "Numbers of the allocator of pinned memory: none"),
    "host_memory_stats_as_nested_dict": (dict, "The same as a tree: nothing"),
    "is_bf16_supported": (bool, "Whether a device computes in bfloat16: no"),
    "is_current_stream_capturing": (bool, "Whether work is being recorded: no"),
    "is_tf32_supported": (bool, "Whether a device computes in TF32: no"),
    "max_memory_allocated": (int, "The most bytes that tensors have taken on a device: 0"),
    "max_memory_cached": (int, "`max_memory_reserved` under an old name: 0"),
    "max_memory_reserved": (int, "The most bytes that the allocator has held on a device: 0"),
    "memory_cached": (int, "`memory_reserved` under an old name: 0"),
    "memory_snapshot": (list, "The allocator's blocks: none"),
    "memory_stats": (OrderedDict, "Numbers of a device's allocator: none"),
    "memory_stats_as_nested_dict": (dict, "The same as a tree: nothing"),
    "ipc_collect": (lambda: None, "Free memory that other processes have let go of: there is none"),
    "record_memory_history": (lambda: None, "Note what memory is taken: none is"),
    "reset_accumulated_host_memory_stats": (lambda: None, "Start counting anew: there is nothing"),
    "reset_accumulated_memory_stats": (lambda: None, "Start counting anew: there is nothing"),
    "reset_max_memory_allocated": (lambda: None, "Start counting anew: there is nothing"),
    "reset_max_memory_cached": (lambda: None, "Start counting anew: there is nothing"),
    "reset_peak_host_memory_stats": (lambda: None, "Start counting anew: there is nothing"),
    "reset_peak_memory_stats": (lambda: None, "Start counting anew: there is nothing"),
}
# What needs a device.
REFUSED: dict[str, str] = {
    "caching_allocator_alloc": "Take memory of a device",
    "caching_allocator_delete": "Give memory of a device back",
    "can_device_access_peer": "Whether a device can read another one's memory",
    "clock_rate": "A device's clock rate",
    "cudart": "The runtime library",
    "current_blas_handle": "The handle of the library for matrix products",
    "current_device": "The index of the current device",
    "current_solver_handle": "The handle of the library for linear systems",
    "current_stream": "The current stream of a device",
    "default_stream": "The default stream of a device",
    "device_memory_used": "Bytes in use on a device",
    "empty_cache": "Give unused memory back",
    "empty_host_cache": "Give unused pinned memory back",
    "get_allocator_backend": "The name of the allocator",
    "get_device_capability": "What a device is capable of",
    "get_device_properties": "The properties of a device",
    "get_memory_info": "Free and total memory of a device",
    "get_per_process_memory_fraction": "The share of memory that this process may take",
    "get_rng_state": "The state of a device's generator",
    "get_stream_from_external": "A stream that another library has made",
    "get_sync_debug_mode": "Whether waiting for a device is reported",
    "graph_pool_handle": "A name for graphs' memory",
    "init": "Initialise the device",
    "initial_seed": "The seed of the current device's generator",
    "list_gpu_processes": "The processes that use a device",
    "make_graphed_callables": "Functions whose work is recorded",
    "max_memory_allocated": "The most bytes that tensors have taken",
    "max_memory_reserved": "The most bytes that the allocator has held",
    "mem_get_info": "Free and total memory of a device",
    "memory_allocated": "Bytes that tensors take",
    "memory_reserved": "Bytes that the allocator holds",
    "memory_stats": "Numbers of a device's allocator",
    "memory_summary": "Numbers of a device's allocator as text",
    "memory_usage": "The share of time in which a device's memory is read or written",
    "power_draw": "The power that a device takes",
    "reset_accumulated_memory_stats": "Start counting anew",
    "reset_peak_memory_stats": "Start counting anew",
    "set_device": "Make a device the current one",
    "set_per_process_memory_fraction": "Limit the share of memory that this process may take",
    "set_rng_state": "Set the state of a device's generator",
    "set_stream": "Make a stream the current one",
    "set_sync_debug_mode": "Say whether waiting for a device is reported",
    "snapshot": "The allocator's blocks",
    "synchronize": "Wait for a device",
    "temperature": "A device's temperature",
    "utilization": "The share of time in which a device computes",
}


def functions(
    module: str, answered: str, refused: str, error: type[Exception], why: str
) -> dict[str, Any]:
    """Functions by name.

    Args:
        module: whose they are, such as ``"cuda"``.
        answered: names of those in `ANSWERS`; they check nothing of what they are given.
        refused: names of those in `REFUSED`.
        error: what those raise.
        why: the end of its message.
    """
    made = {name: _answering(*ANSWERS[name]) for name in answered.split()}
    for name in refused.split():
        made[name] = _refusing(f"{module}.{name}", REFUSED[name], error, why)
    for name, function in made.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = f"taeda.{module}"
    return made


def _answering(answer: Callable[[], Any], doc: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return answer()

    function.__doc__ = doc + "."
    return function


def _refusing(name: str, doc: str, error: type[Exception], why: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise error(f"{name}: {why}")

    function.__doc__ = f"{doc}; {error.__name__}, as there is none."
    return function


def classes(module: str, names: str, why: str) -> dict[str, Any]:
    """Classes by name, of which there are no instances: making one raises RuntimeError."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"{module}.{type(self).__name__}: {why}")

    return {
        name: type(
            name,
            (),
            {
                "__init__": refuse,
                "__module__": f"taeda.{module}",
                "__doc__": "RuntimeError where one is made: there is no device.",
            },
        )
        for name in names.split()
    }
