"""Devices that this build lacks: their functions answer for none, or say that there is none.

`DEVICES` says what each device's module has; the modules fill themselves from it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ANSWERS", "DEVICES", "REFUSED", "Device", "functions", "members"]

# What is true where there is no device: a function's name; its parameters; what it returns; and
# what that is.
ANSWERS: dict[str, tuple[str, str, str]] = {
    "current_accelerator": ("check_available=False", "none(check_available)", "The device: None"),
    "device_count": ("", "0", "The number of devices: 0"),
    "empty_cache": ("", "None", "Give unused memory of all devices back: there is none"),
    "get_arch_list": ("", "[]", "The architectures that this build has kernels for: none"),
    "get_gencode_flags": ("", "''", "The compiler's flags of this build: none"),
    "get_rng_state_all": ("", "[]", "The states of all devices' generators: none"),
    "host_memory_stats": ("", "OrderedDict()", "Numbers of the allocator of pinned memory: none"),
    "host_memory_stats_as_nested_dict": ("", "{}", "The same as a tree: nothing"),
    "ipc_collect": ("", "None", "Free memory that other processes have let go of: there is none"),
    "is_available": ("", "False", "Whether there is such a device: no"),
    "is_bf16_supported": ("including_emulation=True", "no(including_emulation)", "Whether a device "
                          "computes in bfloat16, natively or not: no"),
    "is_current_stream_capturing": ("", "False", "Whether work is being recorded: no"),
    "is_initialized": ("", "False", "Whether a device is in use: no"),
    "is_tf32_supported": ("", "False", "Whether a device computes in TF32: no"),
    "manual_seed": ("seed", "integer(seed)", "Seed the current device's generator: there is none"),
    "manual_seed_all": ("seed", "integer(seed)", "Seed all devices' generators: there are none"),
    "max_memory_allocated": ("device=None", "0", "The most bytes that tensors have taken: 0"),
    "max_memory_cached": ("device=None", "0", "`max_memory_reserved` under an old name: 0"),
    "max_memory_reserved": ("device=None", "0", "The most bytes that the allocator has held: 0"),
    "memory_allocated": ("device=None", "0", "The bytes in tensors on a device: 0"),
    "memory_cached": ("device=None", "0", "`memory_reserved` under an old name: 0"),
    "memory_reserved": ("device=None", "0", "The bytes that the allocator holds: 0"),
    "memory_snapshot": ("mempool_id=None", "[]", "The allocator's blocks: none"),
    "memory_stats": ("device=None", "OrderedDict()", "Numbers of a device's allocator: none"),
    "memory_stats_as_nested_dict": ("device=None", "{}", "The same as a tree: nothing"),
    "record_memory_history": ("enabled='all', stacks='python', max_entries=0", "None",
                              "Note what memory is taken: none is"),
    "reset_accumulated_host_memory_stats": ("", "None", "Start counting anew: there is nothing"),
    "reset_accumulated_memory_stats": ("device=None", "None", "Start counting anew: no memory"),
    "reset_max_memory_allocated": ("device=None", "None", "Start counting anew: no memory"),
    "reset_max_memory_cached": ("device=None", "None", "Start counting anew: no memory"),
    "reset_peak_host_memory_stats": ("", "None", "Start counting anew: there is nothing"),
    "reset_peak_memory_stats": ("device=None", "None", "Start counting anew: there is nothing"),
    "seed": ("", "None", "Seed the current device's generator at random: there is none"),
    "seed_all": ("", "None", "Seed all devices' generators at random: there are none"),
    "set_rng_state_all": ("new_states", "states(new_states)", "Set the states of all devices' "
                          "generators; an error where one is given"),
}  # fmt: skip
# What needs a device: a function's name, its parameters, and what it would do.
REFUSED: dict[str, tuple[str, str]] = {
    "caching_allocator_alloc": ("size, device=None, stream=None", "Take memory of a device"),
    "caching_allocator_delete": ("mem_ptr", "Give memory of a device back"),
    "can_device_access_peer": ("device, peer_device", "Whether a device can read another's memory"),
    "clock_rate": ("device=None", "A device's clock rate"),
    "cudart": ("", "The runtime library"),
    "current_allocated_memory": ("", "The bytes in tensors"),
    "current_blas_handle": ("", "The handle of the library for matrix products"),
    "current_device": ("", "The index of the current device"),
    "current_device_idx": ("", "`current_device_index` under an old name"),
    "current_device_index": ("", "The index of the current device"),
    "current_solver_handle": ("", "The handle of the library for linear systems"),
    "current_stream": ("device=None", "The current stream of a device"),
    "default_stream": ("device=None", "The default stream of a device"),
    "device_memory_used": ("device=None", "Bytes in use on a device"),
    "driver_allocated_memory": ("", "The bytes that the driver has taken"),
    "empty_cache": ("", "Give unused memory back"),
    "empty_host_cache": ("", "Give unused pinned memory back"),
    "get_allocator_backend": ("", "The name of the allocator"),
    "get_device_capability": ("device=None", "What a device is capable of"),
    "get_device_name": ("device=None", "A device's name"),
    "get_device_properties": ("device=None", "The properties of a device"),
    "get_memory_info": ("device_index=None", "Free and total memory of a device"),
    "get_per_process_memory_fraction": ("device=None", "The share of memory that this process has"),
    "get_rng_state": ("device='{module}'", "The state of a device's generator"),
    "get_stream_from_external": ("data_ptr, device=None", "A stream made by another library"),
    "get_sync_debug_mode": ("", "Whether waiting for a device is reported"),
    "graph_pool_handle": ("", "A name for graphs' memory"),
    "init": ("", "Initialise the device"),
    "initial_seed": ("", "The seed of the current device's generator"),
    "list_gpu_processes": ("device=None", "The processes that use a device"),
    "make_graphed_callables": ("callables, sample_args, num_warmup_iters=3, "
                               "allow_unused_input=False, pool=None", "Record functions' work"),
    "max_memory_allocated": ("device_index=None", "The most bytes that tensors have taken"),
    "max_memory_reserved": ("device_index=None", "The most bytes that the allocator has held"),
    "mem_get_info": ("device=None", "Free and total memory of a device"),
    "memory_allocated": ("device_index=None", "Bytes that tensors take"),
    "memory_reserved": ("device_index=None", "Bytes that the allocator holds"),
    "memory_stats": ("device_index=None", "Numbers of a device's allocator"),
    "memory_summary": ("device=None, abbreviated=False", "Numbers of the allocator as text"),
    "memory_usage": ("device=None", "The share of time in which memory is read or written"),
    "power_draw": ("device=None", "The power that a device takes"),
    "recommended_max_memory": ("", "The bytes that should be taken at most"),
    "reset_accumulated_memory_stats": ("device_index=None", "Start counting anew"),
    "reset_peak_memory_stats": ("device_index=None", "Start counting anew"),
    "set_device": ("device", "Make a device the current one"),
    "set_device_idx": ("device", "`set_device_index` under an old name"),
    "set_device_index": ("device", "Make a device the current one"),
    "set_per_process_memory_fraction": ("fraction, device=None", "Limit this process's memory"),
    "set_rng_state": ("new_state, device='{module}'", "Set the state of a device's generator"),
    "set_stream": ("stream", "Make a stream the current one"),
    "set_sync_debug_mode": ("debug_mode", "Say whether waiting for a device is reported"),
    "snapshot": ("", "The allocator's blocks"),
    "synchronize": ("device=None", "Wait for a device"),
    "temperature": ("device=None", "A device's temperature"),
    "use_mem_pool": ("pool, device=None", "Take memory from a pool"),
    "utilization": ("device=None", "The share of time in which a device computes"),
}  # fmt: skip


class Absent(NamedTuple):
    """What the module of a device has. A name may be followed by parameters other than usual."""

    error: type[Exception]  # raised by what needs a device
    why: str
    answered: str
    refused: str
    classes: str  # of which no instance can be made
    contexts: str = ""


_QUERIES = "is_available is_initialized device_count manual_seed manual_seed_all seed seed_all "
_RESET = "max_memory_allocated memory_allocated memory_stats reset_peak_memory_stats "
_ALL_STATES = "get_rng_state_all set_rng_state_all "
_OF_A_DEVICE = "current_device current_stream get_device_capability get_device_properties "
_OF_A_DEVICE += "get_rng_state graph_pool_handle initial_seed set_rng_state set_stream "
_OF_A_DEVICE += "synchronize "
_FEATURES = "get_arch_list get_gencode_flags is_bf16_supported is_current_stream_capturing "
_FEATURES += "is_tf32_supported memory_stats_as_nested_dict reset_accumulated_memory_stats "
_METERS = "can_device_access_peer{peer} clock_rate device_memory_used get_stream_from_external "
_METERS += "get_per_process_memory_fraction make_graphed_callables memory_usage power_draw "
_METERS += (
    "get_device_name init mem_get_info set_per_process_memory_fraction temperature utilization "
)

DEVICES = {
    "accelerator": Absent(
        RuntimeError,
        "there is no accelerator in this build of taeda",
        "is_available device_count current_accelerator",
        "current_device_index current_device_idx set_device_index set_device_idx current_stream "
        "synchronize empty_cache empty_host_cache get_device_capability get_memory_info "
        "max_memory_allocated max_memory_reserved memory_allocated memory_reserved memory_stats "
        "reset_accumulated_memory_stats reset_peak_memory_stats set_stream",
        "Graph",
        "device_index",
    ),
    "cuda": Absent(
        AssertionError,
        "taeda is not compiled with CUDA; there is no device",
        _QUERIES + _ALL_STATES + _FEATURES + "empty_cache host_memory_stats "
        "host_memory_stats_as_nested_dict ipc_collect max_memory_cached memory_cached "
        "memory_snapshot(mempool_id=None,include_traces=True) memory_stats "
        "reset_accumulated_host_memory_stats reset_max_memory_allocated reset_max_memory_cached "
        "reset_peak_host_memory_stats",
        _OF_A_DEVICE + _METERS.format(peer="") + "caching_allocator_alloc caching_allocator_delete "
        "cudart current_blas_handle current_solver_handle default_stream get_allocator_backend "
        "get_sync_debug_mode list_gpu_processes memory_summary set_sync_debug_mode "
        "use_mem_pool",
        "ExternalStream MemPool",
    ),
    "mps": Absent(
        RuntimeError,
        "there is no MPS backend in this build of taeda",
        "is_available device_count manual_seed seed",
        "current_allocated_memory driver_allocated_memory empty_cache get_rng_state "
        "recommended_max_memory set_per_process_memory_fraction(fraction) set_rng_state "
        "synchronize()",
        "Event",
    ),
    "mtia": Absent(
        RuntimeError,
        "this build of taeda has no MTIA backend",
        _QUERIES + _RESET + _ALL_STATES + "record_memory_history",
        _OF_A_DEVICE + "default_stream empty_cache set_device snapshot",
        "MTIAGraph",
        "device",
    ),
    "xpu": Absent(
        AssertionError,
        "taeda has not been built with XPU",
        _QUERIES + _RESET + _ALL_STATES + _FEATURES + "empty_cache max_memory_reserved "
        "memory_reserved memory_snapshot",
        _OF_A_DEVICE + "set_device " + _METERS.format(peer="(device,peer)"),
        "Event MemPool Stream XPUGraph graph",
        "device device_of",
    ),
}


def members(module: str) -> dict[str, Any]:
    """What a device's module has by its row of the table."""
    return {**functions(module), **_classes(module), **_contexts(module)}


def functions(module: str) -> dict[str, Any]:
    """The functions of a device's module."""
    row = DEVICES[module]
    made = {}
    for heads, refused in ((row.answered, False), (row.refused, True)):
        for head in heads.split():
            name, bracket, given = head.partition("(")
            if refused:
                usual, doc = REFUSED[name]
                result = f"refuse({name!r})"
                doc += f"; {_error(module, name).__name__}, as there is none"
            else:
                usual, result, doc = ANSWERS[name]
            parameters = given.removesuffix(")") if bracket else usual.format(module=module)
            made[name] = _function(module, name, parameters, result, doc + ".")
    return made


def _error(module: str, name: str) -> type[Exception]:
    # PyTorch's functions for generators look for the device in another way than those of MTIA.
    asked = module == "mtia" and name in ("get_rng_state", "initial_seed")
    return AssertionError if asked else DEVICES[module].error


def _function(module: str, name: str, parameters: str, result: str, doc: str) -> Any:
    def refuse(what: str) -> NoReturn:
        raise _error(module, what)(f"{module}.{what}: {DEVICES[module].why}")

    def none(value: Any) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"{module}.{name}: {parameters.partition('=')[0]} must be a bool")

    def no(value: Any) -> bool:
        none(value)
        return False

    def integer(value: Any) -> None:
        int(value)

    def states(given: Iterable[Any]) -> None:
        if list(given):
            refuse(name)

    known = (refuse, none, no, integer, states, OrderedDict)
    scope: dict[str, Any] = {one.__name__: one for one in known}
    function = eval(f"lambda {parameters}: {result}", scope)
    function.__name__ = function.__qualname__ = name
    function.__module__ = f"taeda.{module}"
    function.__doc__ = doc
    return function


def _classes(module: str) -> dict[str, Any]:
    """Classes of which there are no instances: making one raises RuntimeError."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"{module}.{type(self).__name__}: {DEVICES[module].why}")

    doc = "RuntimeError where one is made: there is no device."
    return {
        name: _class(module, name, (), {"__init__": refuse, "__doc__": doc})
        for name in DEVICES[module].classes.split()
    }


def _contexts(module: str) -> dict[str, Any]:
    """The classes that choose a device for a ``with`` block."""
    made: dict[str, Any] = {}
    for name in DEVICES[module].contexts.split():
        base: type = {"device": Device, "device_of": DeviceOf}.get(name, DeviceIndex)
        bases = (base, made["device"]) if name == "device_of" else (base,)
        made[name] = _class(module, name, bases, {"_kind": module, "__doc__": base.__doc__})
    return made


def _class(module: str, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
    return type(name, bases, {"__module__": f"taeda.{module}", **body})


class DeviceIndex:
    """The index of the device that a ``with`` block works on; None leaves it as it is."""

    _kind = ""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            why = DEVICES[self._kind].why
            raise RuntimeError(f"{self._kind}.{type(self).__name__}({self.idx}): {why}")

    def __exit__(self, *exc_info: object) -> None:
        return None


class Device:
    """The device that a ``with`` block works on; None or a negative index leave it as it is."""

    _kind = ""

    def __init__(self, device: Any) -> None:
        from taeda import device as Device

        self.idx = -1
        if isinstance(device, (str, Device)):
            given = Device(device)
            if given.type != self._kind:
                raise ValueError(
                    f"{self._kind}.device: expected a {self._kind} device, got {given}"
                )
            self.idx = -1 if given.index is None else given.index
        elif device is not None:
            self.idx = int(device)

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError(
                f"{self._kind}.device({self.idx}): there is no device: "
                f"this build has no {self._kind}"
            )

    def __exit__(self, *exc_info: object) -> None:
        return None


class DeviceOf(Device):
    """The device of a tensor, for a ``with`` block; no change for one on the CPU."""

    def __init__(self, obj: Any) -> None:
        on_it = getattr(obj, f"is_{self._kind}")
        super().__init__(obj.get_device() if on_it else -1)
