"""What ``import torch`` gives of modules that are PyTorch's own affair, most of them private.

Packages reach into some of them, mostly to ask whether a compiler or a trace is at work. Those names
are here whose answer is true of taeda; all others are missing.
"""

from __future__ import annotations

__all__ = ["MODULES"]

# The module under taeda that stands for one under torch.
MODULES = {
    "torch.__config__": "taeda.__config__",
    "torch.__future__": "taeda.__future__",
    "torch._C": "taeda.compat.private.core",
    "torch._C._functorch": "taeda.compat.private.core_functorch",
    "torch._functorch": "taeda.compat.private.functorch",
    "torch._functorch.vmap": "taeda.func._vmap",
    "torch._C._distributed_rpc": "taeda.compat.private.core_rpc",
    "torch._C._nn": "taeda.compat.private.core_nn",
    "torch._custom_ops": "taeda.compat.private.custom_ops",
    "torch._dynamo": "taeda.compat.private.dynamo",
    "torch._tensor_str": "taeda.compat.private.tensor_str",
    "torch._dynamo._trace_wrapped_higher_order_op": "taeda.compat.private.dynamo.index_mode",
    "torch._dynamo.config": "taeda.compat.private.dynamo.config",
    "torch._dynamo.eval_frame": "taeda.compat.private.dynamo.eval_frame",
    "torch._dynamo.utils": "taeda.compat.private.dynamo.utils",
    "torch._guards": "taeda.compat.private.guards",
    "torch._subclasses": "taeda.compat.private.fake",
    "torch._subclasses.fake_tensor": "taeda.compat.private.fake",
    "torch.distributed.device_mesh": "taeda.distributed.device_mesh",
    "torch.distributed._composable": "taeda.distributed.fsdp",
    "torch.distributed._composable.fsdp": "taeda.distributed.fsdp",
    "torch.distributed._functional_collectives": "taeda.distributed._functional_collectives",
    "torch.distributed._tensor": "taeda.distributed.tensor",
    "torch.distributed.tensor._utils": "taeda.distributed.tensor._utils",
    "torch.fx.experimental": "taeda.compat.private.proxy",
    "torch.fx.experimental.proxy_tensor": "taeda.compat.private.proxy",
    "torch._higher_order_ops": "taeda.compat.private.associative_scan",
    "torch._higher_order_ops.associative_scan": "taeda.compat.private.associative_scan",
    "torch._ops": "taeda.compat.private.overloads",
    "torch.ops": "taeda.compat.private.ops",
    "torch._utils": "taeda.compat.private.utils",
    "torch.nn.utils._named_member_accessor": "taeda.compat.private.named_members",
    "torch.utils._contextlib": "taeda.compat.private.contextlib",
    "torch.utils._mode_utils": "taeda.compat.private.mode_utils",
    "torch.utils._python_dispatch": "taeda.compat.private.python_dispatch",
    "torch.utils._foreach_utils": "taeda.compat.private.foreach_utils",
    "torch.utils.data._utils": "taeda.compat.private.data_utils",
    "torch.utils.data._utils.collate": "taeda.utils.data.collate",
    "torch.utils.data._utils.worker": "taeda.compat.private.data_worker",
    "torch.utils.data._utils.pin_memory": "taeda.utils.data.pin_memory",
    **{f"torch.onnx.symbolic_opset{n}": "taeda.compat.private.onnx_symbolic" for n in range(7, 21)},
}
