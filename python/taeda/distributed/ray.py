"""Training by Ray: `RayTrainer` starts processes, joins them in a group, and starts them anew.

Ray Train places the workers on a cluster's machines, and starts all of them again from the last
checkpoint when one has failed. It needs Ray: ``pip install 'taeda[ray]'``.

    from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig

    def train():  # in each worker; there is a group of all of them
        model = DistributedDataParallel(Net())
        checkpoint = ray.train.get_checkpoint()  # of the attempt before, or None
        ...
        ray.train.report({"loss": loss}, checkpoint=Checkpoint.from_directory(folder))

    RayTrainer(
        train,
        scaling_config=ScalingConfig(num_workers=4),
        run_config=RunConfig(failure_config=FailureConfig(max_failures=3)),
    ).fit()
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import taeda
import taeda.distributed as dist

try:
    import ray
    from ray.train.backend import Backend, BackendConfig
    from ray.train.v2.api.config import ScalingConfig
except ImportError as error:
    raise ModuleNotFoundError(
        "taeda.distributed.ray needs Ray Train: pip install 'taeda[ray]'", name="ray"
    ) from error

# Ray has two implementations, and its environment says which of them `ray.train` is.
if ray.train.ScalingConfig is ScalingConfig:
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
else:
    from ray.train.data_parallel_trainer import DataParallelTrainer

__all__ = ["RayConfig", "RayTrainer"]


@dataclass
class RayConfig(BackendConfig):  # type: ignore[misc]
    """How the workers of a `RayTrainer` communicate.

    Args:
        backend: of `init_process_group`; by default ``"nccl"`` where workers have GPUs, and
            ``"gloo"`` otherwise.
        timeout_s: how many seconds an operation may take.
    """

    backend: str | None = None
    timeout_s: float = 1800

    @property
    def backend_cls(self) -> type[Backend]:
        """What joins the workers."""
        return _Group

    @property
    def train_func_context(self) -> Callable[[], Any]:
        """Inside of which the training runs: with this worker's GPU as the current device."""
        return _device if self.backend != "gloo" else nullcontext

    def to_dict(self) -> dict[str, Any]:
        """The arguments."""
        return {"backend": self.backend, "timeout_s": self.timeout_s}


class RayTrainer(DataParallelTrainer):  # type: ignore[misc]
    """Runs a function in several workers, which are a group of processes.

    Workers find what a launcher's processes do: RANK, LOCAL_RANK, WORLD_SIZE and so on, and
    `init_process_group` has been called. One that dies makes the operations of others raise; Ray
    starts all of them anew, as often as ``FailureConfig(max_failures)`` says, and gives them the
    last checkpoint that was reported (``ray.train.get_checkpoint()``).

    Args:
        train_loop_per_worker: what each worker runs; called with ``train_loop_config`` if it takes
            an argument.
        config: how they communicate.
        options: of Ray's ``DataParallelTrainer``: ``train_loop_config``, ``scaling_config``,
            ``run_config``, ``datasets``, ``dataset_config``.

    ``fit()`` runs it, and returns Ray's ``Result``.
    """

    def __init__(
        self,
        train_loop_per_worker: Callable[..., Any],
        *,
        config: RayConfig | None = None,
        **options: Any,
    ) -> None:
        super().__init__(train_loop_per_worker, backend_config=config or RayConfig(), **options)


class _Group(Backend):  # type: ignore[misc]
    """Joins workers in a group, and takes it apart."""

    def on_start(self, worker_group: Any, backend_config: RayConfig) -> None:
        """Called when all workers are there."""
        backend = backend_config.backend
        if backend is None:
            gpus = worker_group.get_resources_per_worker().get("GPU", 0)
            backend = "nccl" if gpus else "gloo"
        host, port = worker_group.execute_single(0, _free_address)
        size = len(worker_group)
        joining = [
            worker_group.execute_single_async(
                rank, _join, backend, rank, size, host, port, backend_config.timeout_s
            )
            for rank in range(size)
        ]
        ray.get(joining)

    def on_training_start(self, worker_group: Any, backend_config: RayConfig) -> None:
        """Called when workers know where they are."""
        worker_group.execute(_say_where)

    def on_shutdown(self, worker_group: Any, backend_config: RayConfig) -> None:
        """Called at the end, and before workers are started anew."""
        with suppress(ray.exceptions.RayError):  # some may have died
            worker_group.execute(_leave)


def _free_address() -> tuple[str, int]:
    """Where this worker, the first, will keep the store."""
    with socket.socket() as made:
        made.bind(("", 0))
        return ray.util.get_node_ip_address(), made.getsockname()[1]


def _join(backend: str, rank: int, size: int, host: str, port: int, seconds: float) -> None:
    os.environ.update(MASTER_ADDR=host, MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(size))
    with _device():
        dist.init_process_group(backend, timeout=timedelta(seconds=seconds))


def _device() -> Any:
    """The GPU that Ray has given to this worker, which is the only one that it sees."""
    return taeda.cuda.device(0) if ray.get_gpu_ids() else nullcontext()


def _say_where() -> None:
    context = ray.train.get_context()
    os.environ.update(
        LOCAL_RANK=str(context.get_local_rank()),
        LOCAL_WORLD_SIZE=str(context.get_local_world_size()),
        GROUP_RANK=str(context.get_node_rank()),
    )


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
