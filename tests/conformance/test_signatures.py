"""Every operation, called in all the ways that PyTorch's signatures allow."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the conformance suite compares with PyTorch")
pytest.importorskip("expecttest", reason="PyTorch's op database needs expecttest")

from tests.conformance.bridge import Untranslatable, to_taeda  # noqa: E402
from tests.conformance.entries import (  # noqa: E402
    DTYPES,
    ENTRIES,
    FORMS,
    KEYS,
    assert_same,
    describe,
    function_of,
    samples,
)
from tests.conformance.expected import (  # noqa: E402
    DIFFERS,
    NOT_RUN,
    RANDOM,
    SIGNATURES,
    UNINITIALISED,
)
from tests.conformance.gauge import CANONICAL  # noqa: E402
from tests.conformance.signatures import calls, old_calls  # noqa: E402

MAX_SAMPLES = 4


def wanted(op: Any) -> bool:
    key = KEYS[id(op)]
    return (
        key not in RANDOM
        and key not in UNINITIALISED
        and key not in FORMS
        and key not in DIFFERS
        and not any(isinstance(k, tuple) and k[0] == key for k in NOT_RUN)
        and any(d in op.supported_dtypes("cpu") for d in DTYPES)
    )


def outcome(call: Any) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except Exception as error:
        return None, error


def theirs_of(op: Any, call: Any) -> Any:
    if not call.method:
        return lambda: op.op(*call.args, **call.kwargs)
    name = op.method_variant.__name__
    return lambda: getattr(call.args[0], name)(*call.args[1:], **call.kwargs)


def ours_of(op: Any, call: Any, args: list, kwargs: dict) -> Any:
    if not call.method:
        return lambda: function_of(op)(*args, **kwargs)
    return lambda: getattr(args[0], op.method_variant.__name__)(*args[1:], **kwargs)


def differences(op: Any) -> tuple[int, dict[str, str]]:
    """How many calls were made, and for each form that differs, how."""
    dtype = next(d for d in DTYPES if d in op.supported_dtypes("cpu"))
    canonical = CANONICAL.get(op.name, lambda result: result)
    has_method = getattr(op.method_variant, "__name__", "<").isidentifier()
    count, found = 0, {}
    for sample in samples(op, dtype, most=MAX_SAMPLES):
        for call in (*calls(op, sample), *old_calls(op, sample)):
            if call.form in found or (call.method and not has_method):
                continue
            try:
                args, kwargs = to_taeda([list(call.args), dict(call.kwargs)])
            except Untranslatable:
                continue
            count += 1
            theirs, refused = outcome(theirs_of(op, call))
            ours, error = outcome(ours_of(op, call, args, kwargs))
            where = f"{op.name}({describe(sample)}) as {call.form}"
            if refused is not None:
                if error is None:
                    found[call.form] = f"{where}: accepted, PyTorch: {refused}"
            elif error is not None:
                found[call.form] = f"{where}: {type(error).__name__}: {error}"
            else:
                try:
                    assert_same(canonical(ours), canonical(theirs), where)
                except AssertionError as difference:
                    found[call.form] = str(difference)
    return count, found


@pytest.mark.parametrize("op", [pytest.param(op, id=KEYS[id(op)]) for op in ENTRIES if wanted(op)])
@pytest.mark.filterwarnings("ignore")
def test_signatures(op: Any) -> None:
    key = KEYS[id(op)]
    _, found = differences(op)
    unknown = {
        form: text
        for form, text in found.items()
        if key not in SIGNATURES and (key, form) not in SIGNATURES
    }
    assert not unknown, "\n".join(unknown.values())
    known = [k for k in SIGNATURES if k == key or (isinstance(k, tuple) and k[0] == key)]
    for k in known:
        agrees = not found if k == key else k[1] not in found
        assert not agrees, f"{k} is listed as a difference, but agrees"
