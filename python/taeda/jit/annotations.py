"""Types that only annotate parameters: TorchScript reads them."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

__all__ = ["Any", "Dict", "List", "Optional", "Tuple", "Union"]


class BroadcastingListCls:
    """``BroadcastingList2[int]`` annotates a list of two ints, or one int for both."""

    def __getitem__(self, types: Any) -> None:
        """What TorchScript finds there has no meaning to Python."""


BroadcastingList1 = BroadcastingListCls()
BroadcastingList2 = BroadcastingListCls()
BroadcastingList3 = BroadcastingListCls()
BroadcastingList4 = BroadcastingListCls()
BroadcastingList5 = BroadcastingListCls()
BroadcastingList6 = BroadcastingListCls()
