"""Names that PyTorch has in the module of Module."""

from taeda.nn._module.hooks import (
    on_buffer as _global_buffer_registration_hooks,
)
from taeda.nn._module.hooks import (
    on_module as _global_module_registration_hooks,
)
from taeda.nn._module.hooks import (
    on_parameter as _global_parameter_registration_hooks,
)
from taeda.nn._module.hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from taeda.nn._module.saving import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX
from taeda.nn._module.saving import IncompatibleKeys as _IncompatibleKeys
from taeda.nn.module import Module

__all__ = [
    "Module",
    "_EXTRA_STATE_KEY_SUFFIX",
    "_IncompatibleKeys",
    "_global_buffer_registration_hooks",
    "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]
