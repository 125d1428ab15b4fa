"""Importing this adds the device ``example`` to taeda.

>>> import taeda, taeda_example_device
>>> x = taeda.ones(2, 3, device="example")
"""

from importlib.util import find_spec

import taeda

taeda.register_device("example", find_spec("taeda_example_device.library").origin)
taeda.set_fallback("cpu")  # for operations that device.cpp has no kernel for
