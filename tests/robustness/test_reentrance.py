"""Python code that taeda calls changes what taeda is using: each in a process of its own."""

import pytest

import taeda
from tests.robustness.test_crashes import run

HEAD = """
from taeda.autograd.graph import GradientEdge, saved_tensors_hooks
from taeda.overrides import TorchFunctionMode
from taeda.utils._python_dispatch import TorchDispatchMode

def fill_memory():  # what was freed gets another content
    return [bytes(size) for size in (32, 48, 64, 96, 128, 200, 400) for _ in range(500)]

class During(TorchDispatchMode):  # calls f() once, when an op of this name is called
    def __init__(self, name, f):
        super().__init__()
        self.name, self.f = name, f
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.f and self.name in str(func):
            f, self.f = self.f, None
            f()
            gc.collect()
            fill_memory()
        return func(*args, **(kwargs or {}))

x = taeda.ones(3, requires_grad=True)
"""


def printed_by(code):
    status, out, err = run(HEAD + code)
    assert status == 0, (status, out, err[-2000:])
    return out


# ---- __torch_function__ -------------------------------------------------------------------------


def test_results_that_hold_themselves():
    code = """
class Sub(taeda.Tensor): pass
own = []
own.append(own)
try:
    Sub.__torch_function__(lambda: own, (), ())
except RecursionError as error:
    print(error)
print(Sub.__torch_function__(lambda: [x, (x, [x])], (), ()))
"""
    first, second = printed_by(code).splitlines()
    assert "while the results of __torch_function__ are converted" in first
    assert second.count("Sub(") == 3


@pytest.mark.parametrize("change", ["extend([1] * 1000)", "clear()"])
def test_results_that_change_while_they_are_converted(change):
    code = f"""
results = []
class Changing(taeda.Tensor):
    def as_subclass(self, cls):
        results.{change}
        return x
class Sub(taeda.Tensor): pass
results += [x.as_subclass(Changing), x, x]
print(len(Sub.__torch_function__(lambda: results, (), ())))
"""
    assert printed_by(code) == ("1003" if change.startswith("extend") else "1")


def test_arguments_that_are_dropped_while_their_classes_are_asked():
    code = """
arguments = []
def drop(answer=NotImplemented):
    arguments.clear()
    gc.collect()
    fill_memory()
    return answer
class First:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return drop()
class Second(First): pass
class Mode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return drop()
class Meta(type):
    def __getattribute__(cls, name):
        return drop(type.__getattribute__(cls, name))
class Third(First, metaclass=Meta): pass
def call(classes):
    arguments[:] = [c() for c in classes]
    try:
        taeda.cat(arguments)
    except TypeError as error:
        print(type(error).__name__)
call([First, Second])
with Mode():
    call([First, Second])
call([Third, Third, First])
"""
    assert printed_by(code).split() == ["TypeError"] * 3


# ---- backward -----------------------------------------------------------------------------------


def test_outputs_that_a_node_does_not_have():
    code = """
y = x.sum()
for nr in (1, 7, 10**9):
    edge = GradientEdge(y.grad_fn, nr)
    for use in (
        lambda: taeda.autograd.grad((edge,), (x,), (taeda.ones(()),)),
        lambda: taeda.autograd.backward((edge,), (taeda.ones(()),)),
        lambda: taeda.autograd.grad(y, (edge,), retain_graph=True),
        lambda: y.backward(inputs=[edge], retain_graph=True),
    ):
        try:
            use()
        except IndexError as error:
            print(error)
"""
    lines = printed_by(code).splitlines()
    assert len(lines) == 12 and "SumBackward0 has no output 1000000000" in lines[-1]


def test_as_many_gradients_as_tensors():
    code = """
for call in (
    lambda: taeda._C._run_backward((x.sum(), x.sum()), (), False, False, None),
    lambda: taeda._C._run_grad((x.sum(), x.sum()), (None,), False, False, (x,)),
):
    try:
        call()
    except RuntimeError as error:
        print(error)
"""
    assert printed_by(code).splitlines() == [
        "backward(): got 2 tensors and 0 gradients",
        "grad(): got 2 tensors and 1 gradients",
    ]


def test_a_hook_that_registers_hooks():
    code = """
parts = taeda.ones(300, requires_grad=True).unbind()
calls = []
def register(g):
    handle.remove()
    for part in parts[1:]:
        part.register_hook(calls.append)
    fill_memory()
handle = parts[0].register_hook(register)
total = taeda.stack(parts).sum()
total.backward(retain_graph=True)
print(len(calls))
total.backward()
print(len(calls))
"""
    assert printed_by(code) == "0\n299"


def test_an_unpack_hook_that_releases_the_graph():
    code = """
def unpack(t):
    if made:
        with taeda.enable_grad():
            made.pop().sum().backward()
        gc.collect()
        fill_memory()
    return t
class Function(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x)
        return x * 1
    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]
made = []
for f in (lambda: x * x, lambda: x.exp(), lambda: Function.apply(x)):
    with saved_tensors_hooks(lambda t: t.clone(), unpack):
        y = f()
    made.append(y)
    try:
        y.sum().backward()
        print("done")
    except RuntimeError as error:
        print(str(error)[:41])
with saved_tensors_hooks(lambda t: t.clone(), unpack):
    y = x.exp()
made.append(y)
print(y.grad_fn._saved_result[0].item() == y[0].item())
"""
    *lines, last = printed_by(code).splitlines()
    assert set(lines) <= {"done", "Trying to backward through the graph a se"} and last == "True"


def test_a_mode_that_drops_a_tensor_whose_gradient_is_kept():
    code = """
y = x * 2
y.retain_grad()
z = y.sum()
z.backward(retain_graph=True)
kept = [y]
del y
with During("add", kept.clear):
    z.backward()
print(kept, x.grad.tolist())
"""
    assert printed_by(code) == "[] [4.0, 4.0, 4.0]"


def test_a_mode_that_runs_backward_while_a_gradient_is_added():
    code = """
y, z = (x * 2).sum(), (x * 3).sum()
y.backward(retain_graph=True)
with During("add", z.backward):
    y.backward()
print(x.grad.tolist())
"""
    assert printed_by(code) == "[7.0, 7.0, 7.0]"


def test_contexts_are_made_by_the_class_of_contexts():
    code = """
class Fake:
    _backward_cls = dict
    forward = staticmethod(lambda *a: None)
try:
    taeda._C._function_apply(Fake, (x,), False)
except TypeError as error:
    print(error)
"""
    assert printed_by(code) == "_backward_cls of a Function must make its contexts, not dict"


def test_a_graph_that_begins_at_a_context_before_there_are_results():
    code = """
class Function(taeda.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.register_prehook(lambda g: (None,))
        taeda.autograd.backward((GradientEdge(ctx, 0),), (taeda.ones(3),))
        return x * 1
    @staticmethod
    def backward(ctx, g):
        print(g)
        return g
Function.apply(x)
"""
    assert printed_by(code) == "None"


def test_a_node_that_is_called_its_own_parent():
    code = """
import warnings
warnings.simplefilter("ignore")
with taeda.autograd.set_detect_anomaly(True):
    y = taeda.zeros(3, requires_grad=True).sqrt()
    y.grad_fn.metadata["parent_"] = y.grad_fn
    try:
        (y * 0).sum().backward()
    except RuntimeError as error:
        print(error)
"""
    assert "returned nan values" in printed_by(code)


# ---- what listens to backward -------------------------------------------------------------------


def test_a_watch_whose_gradients_change():
    code = """
parameters = [taeda.ones(4, 4, requires_grad=True) for _ in range(9)]
watch = taeda._C._BackwardWatch(lambda loss: None)
def gradients():
    for p in parameters:
        p.grad = taeda.ones(4, 8)[:, ::2]
    return [taeda._C._GradientWatch(p, 1) for p in parameters]
def drop():
    watch.gradients = []
    for p in parameters:
        p.grad = None
watch.gradients = gradients()
with During("any", drop):
    watch.before_pass()
print(len(watch.gradients))
watch.gradients = gradients()
try:
    watch.gradients = [None]
except TypeError as error:
    print(error)
print(len(watch.gradients))
"""
    assert printed_by(code).splitlines() == ["0", "_BackwardWatch.gradients: None among them", "9"]


def test_a_log_that_stops_while_a_loss_is_read():
    code = """
logs = [taeda._C._StepLog() for _ in range(9)]
for log in logs:
    log.start(x)
loss = x.sum()
del log
with During("item", logs.clear), During("_local_scalar", logs.clear):
    loss.backward()
print(x.grad.tolist())
"""
    assert printed_by(code) == "[1.0, 1.0, 1.0]"


# ---- optimizers ---------------------------------------------------------------------------------


def test_a_state_whose_keys_drop_it():
    code = """
parameters = [taeda.ones(3, requires_grad=True) for _ in range(3)]
state, armed = {}, False
class Key:  # found before the parameter
    def __init__(self, parameter):
        self.parameter = parameter
    def __hash__(self):
        return hash(self.parameter)
    def __eq__(self, other):
        if armed:
            state.clear()
            for p in parameters:
                p.grad = None
            fill_memory()
        return False
def fill():
    global armed
    armed = False
    for p in parameters:
        p.grad = taeda.ones(3)
        state[Key(p)] = None
        state[p] = {"sum": taeda.ones(3)}
    armed = True
fill()
print(taeda._C._step_lists(parameters, state, ("sum",)))
fill()
print(taeda._C._fused_step("_fused_adagrad_", parameters, state, ("sum",), {}), parameters[0].grad)
"""
    assert printed_by(code) == "None\nFalse None"


def test_slots_are_tuples():
    with pytest.raises(TypeError, match="expected slots that are tuples"):
        taeda._C._put_tensors([3], {})


# ---- the garbage collector, and threads ---------------------------------------------------------

COLLECTING = """
def collect_during(call, look):  # runs look() in a collection that call() starts
    def collected(phase, info):
        nonlocal look
        if phase == "start" and look:
            f, look = look, None
            f()
    # No memory of tensors that are gone is taken again, which would start no collection.
    filler = [taeda.ones(1) for _ in range(600)]
    gc.callbacks.append(collected)
    gc.set_threshold(1)
    try:
        return call()
    finally:
        gc.set_threshold(700)
        gc.callbacks.remove(collected)
        del filler
"""


def test_a_tensor_that_a_collection_wraps_meanwhile():
    code = """
seen = []
for what in ("grad", "grad_fn"):
    for _ in range(20):
        x.grad = None
        y = x * 2
        y.sum().backward()
        owner = x if what == "grad" else y
        def look():
            seen[:] = [getattr(owner, what)]
            if what == "grad":
                seen[0].mark = 1
        mine = collect_during(lambda: getattr(owner, what), look)
        assert mine is seen.pop() and mine is getattr(owner, what)
        del mine
        gc.collect()
print("done")
"""
    assert printed_by(COLLECTING + code) == "done"


def test_a_generator_that_a_collection_uses_meanwhile():
    code = """
class Sub(taeda.Generator): pass  # whose objects the collector knows
for g in (taeda.Generator(), Sub()):
    for call in (g.get_state, g.clone_state):
        for _ in range(20):
            collect_during(lambda: [call(), [], []], lambda: g.manual_seed(0))
print(g.initial_seed())
"""
    assert printed_by(COLLECTING + code) == "0"


def test_anomaly_detection_in_several_threads():
    """It runs Python code where a leaf gets its node, which other threads wait for."""
    code = """
import threading
def record(size, count):
    with taeda.autograd.set_detect_anomaly(True):
        for _ in range(count):
            leaf = taeda.ones(size, size, requires_grad=True)
            leaf @ leaf
threads = [threading.Thread(target=record, args=a) for a in ((300, 300), (2, 3000), (2, 3000))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
"""
    assert printed_by(code) == "done"


# ---- modes that give wrong tensors --------------------------------------------------------------

WRONG = """
class Wrong(TorchDispatchMode):  # gives wrong(result) for the op of this name
    def __init__(self, name, wrong):
        super().__init__()
        self.name, self.wrong = name, wrong
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return self.wrong(result) if self.name in str(func) else result

def gradients_with(name, wrong, f):
    try:
        with Wrong(name, wrong):
            y = f()
            y.sum().backward()
        print("done")
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        print(type(error).__name__, str(error)[:99])
"""


def test_a_mode_that_gives_none_among_several():
    code = """
m = taeda.ones(3, 4, requires_grad=True)
for k in range(3):
    gradients_with(
        "layer_norm", lambda r: tuple(None if i == k else t for i, t in enumerate(r)),
        lambda: F.layer_norm(m, (4,), taeda.ones(4, requires_grad=True)),
    )
"""
    assert printed_by(WRONG + code).count("must give a Tensor, not NoneType") == 3


def test_a_mode_that_gives_more_than_there_are():
    code = """
xs = [taeda.ones(2, requires_grad=True) for _ in range(3)]
gradients_with("unbind", lambda r: [*r, *r], lambda: taeda.stack(xs))
"""
    assert "argument 0 has 3 tensors, and no item 3" in printed_by(WRONG + code)


def test_a_mode_that_gives_a_result_of_another_shape():
    code = """
m, w = taeda.ones(5, 4, requires_grad=True), taeda.ones(3, 4, requires_grad=True)
for wrong in (lambda r: r.t(), lambda r: r[:2], lambda r: r.repeat(300, 7), lambda r: r.double(),
              lambda r: r[0], lambda r: r.sum(), lambda r: r[None]):
    gradients_with("mm", wrong, lambda: F.linear(m, w))
    gradients_with("linear", wrong, lambda: F.linear(m, w))
    gradients_with("block_diag", wrong, lambda: taeda.block_diag(m, w))
    gradients_with("cat", wrong, lambda: taeda.cat([m, m], -1))
print("end")
"""
    assert printed_by(WRONG + code).endswith("end")
