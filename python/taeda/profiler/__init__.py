"""Where the time of a program goes: each operation with its beginning and end.

A profiler is a layer behind the door that every operation passes. It is there only while a
`profile` block runs in the thread, and costs nothing otherwise.

>>> import taeda
>>> from taeda.profiler import profile, record_function
>>> with profile() as prof:
...     with record_function("product"):
...         y = taeda.ones(8, 8) @ taeda.ones(8, 8)
>>> [e.count for e in prof.key_averages() if e.key == "product"]
[1]
"""

from taeda.profiler._events import EventList, FunctionEvent, FunctionEventAvg
from taeda.profiler._profile import (
    ProfilerAction,
    ProfilerActivity,
    kineto_available,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
