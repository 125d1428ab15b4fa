"""Lists and dicts in the arguments of nodes: who changed them would not tell the graph."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["immutable_dict", "immutable_list"]


def _refused(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to "
        "modify the kwargs or args of a fx.Node object, instead create a new copy of it and "
        "assign the copy to the node: new_args = ...; node.args = new_args"
    )


class immutable_list(list[Any]):
    """A list that cannot be changed."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refused
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refused

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that cannot be changed."""

    clear = pop = popitem = setdefault = update = _refused
    __delitem__ = __ior__ = __setitem__ = _refused

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)
