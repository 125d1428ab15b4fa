"""Timers by a clock of the test's own, and what measurements and tables say of given times."""

import math

import pytest

import taeda
from taeda.utils.benchmark import Compare, Measurement, TaskSpec, Timer, select_unit


class Clock:
    """Each reading is later by what the statement has added, in seconds."""

    def __init__(self):
        self.now = 0.0
        self.runs = 0

    def __call__(self):
        return self.now

    def work(self, seconds=1e-3):
        self.now += seconds
        self.runs += 1


def timed(clock, **options):
    return Timer("clock.work()", timer=clock, globals={"clock": clock}, **options)


def test_timeit():
    clock = Clock()
    m = timed(clock, label="a", sub_label="b", description="c", env="d").timeit(50)
    assert m.number_per_run == 50 and len(m.raw_times) == 1
    assert m.median == m.mean == pytest.approx(1e-3)
    assert clock.runs == 52  # two to warm up
    assert (m.label, m.sub_label, m.description, m.env, m.num_threads) == ("a", "b", "c", "d", 1)
    assert m.stmt == "clock.work()" and m.title == "a: b" and m.as_row_name == "b"


def test_statements_see_the_library_under_both_names():
    names = {}
    Timer("names['sum'] = torch.ones(3).sum() + taeda.ones(1)", globals={"names": names}).timeit(1)
    assert names["sum"].tolist() == [4]
    assert Timer("x", setup="x = 3").timeit(1).setup == "x = 3"
    assert (
        Timer("""
        for i in range(2):
            y = i
    """)
        .timeit(1)
        .stmt.startswith("for i")
    )


def test_threads_are_those_that_were_asked_for():
    before, seen = taeda.get_num_threads(), []
    timer = Timer("seen.append(taeda.get_num_threads())", globals={"seen": seen}, num_threads=2)
    timer.timeit(1)
    assert set(seen) == {2} and taeda.get_num_threads() == before
    with pytest.raises(ZeroDivisionError):
        Timer("1 / 0", num_threads=2).timeit(1)
    assert taeda.get_num_threads() == before


def test_blocked_autorange():
    clock, blocks = Clock(), []
    timer = timed(clock)
    m = timer.blocked_autorange(lambda number, seconds: blocks.append((number, seconds)), 0.5)
    assert sum(m.raw_times) >= 0.5
    assert blocks == [(m.number_per_run, time) for time in m.raw_times]
    assert m.median == pytest.approx(1e-3) and m.iqr == pytest.approx(0, abs=1e-12)


def test_adaptive_autorange_stops_when_times_settle():
    class Settling(Clock):
        def work(self):
            super().work(1e-2 if self.runs < 4 else 1e-3)

    m = timed(Settling()).adaptive_autorange(0.1, min_run_time=0.01, max_run_time=5.0)
    assert m.meets_confidence(0.1) and sum(m.raw_times) < 1
    noisy = Clock()
    noisy.work = lambda: Clock.work(noisy, 1e-3 * (1 + noisy.runs % 2))
    m = timed(noisy).adaptive_autorange(0.01, max_run_time=0.1)
    assert sum(m.raw_times) >= 0.1


def test_bad_input():
    with pytest.raises(ValueError, match="stmt must be a str"):
        Timer(3)
    with pytest.raises(SyntaxError):
        Timer("1 +")
    with pytest.raises(NameError):
        Timer("foo").timeit(1)
    with pytest.raises(ValueError, match="number_per_run"):
        Measurement(0, [1.0], TaskSpec("x"))
    with pytest.raises(AttributeError, match="foo"):
        Measurement(1, [1.0], TaskSpec("x")).foo
    with pytest.raises(ValueError, match="expected an instance of Measurement"):
        Compare([3])


def test_statistics():
    m = Measurement(10, [1e-5, 4e-5, 2e-5, 3e-5, 9e-5], TaskSpec("f(x)"))
    assert m.times == pytest.approx([1e-6, 4e-6, 2e-6, 3e-6, 9e-6])
    assert m.median == pytest.approx(3e-6) and m.mean == pytest.approx(3.8e-6)
    assert m.iqr == pytest.approx(2e-6) and m.has_warnings and m.significant_figures == 1
    assert "WARNING" in repr(m) and "Median: 3.00 us" in repr(m) and "f(x)" in repr(m)
    steady = Measurement(1, [1.0, 1.003, 1.0, 1.003, 1.0], TaskSpec("f(x)", label="f"))
    assert not steady.has_warnings and steady.significant_figures == 3
    assert math.isnan(Measurement(1, [], TaskSpec("x")).median)


def test_merge():
    a, b = TaskSpec("a"), TaskSpec("b")
    merged = Measurement.merge(
        [Measurement(2, [4.0], a), Measurement(1, [1.0], b), Measurement(1, [3.0], a)]
    )
    assert [(m.stmt, m.times) for m in merged] == [("a", [2.0, 3.0]), ("b", [1.0])]


@pytest.mark.parametrize(
    ("time", "unit"), [(0, "ns"), (3e-9, "ns"), (2e-6, "us"), (0.5, "ms"), (1.0, "s"), (99, "s")]
)
def test_units(time, unit):
    assert select_unit(time)[0] == unit


def table_of(**options):
    return [
        Measurement(
            1,
            [size * factor * (1 + 0.02 * i) for i in range(5)],
            TaskSpec(
                "f", label="f", sub_label=str(size), description=name, num_threads=n, **options
            ),
        )
        for size in (1, 30)
        for name, factor in (("plain", 2e-3), ("fused", 1e-3))
        for n in (1, 2)
        if (name, n) != ("fused", 2)
    ]


def test_tables():
    lines = str(Compare(table_of())).split("\n")
    assert lines[0].strip("[]-") == " f " and len(lines[0]) == len(lines[1])
    cells = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert cells[1] == ["", "plain", "fused"]
    assert lines[2].startswith("1 threads: ---")
    assert cells[3:5] == [["1", "2.1", "1.0"], ["30", "62.4", "31.2"]]
    assert lines[5].startswith("2 threads: ---")
    assert cells[6:8] == [["1", "2.1", ""], ["30", "62.4", ""]]
    assert "Times are in milliseconds (ms)." in lines


def test_tables_of_several_labels_and_of_more_results(capsys):
    table = Compare(table_of())
    table.extend_results([Measurement(1, [2.0], TaskSpec("g(x)", env="old"))])
    table.print()
    text = capsys.readouterr().out
    assert " f " in text and " g(x) " in text and "(old) g(x)" in text
    assert "Times are in seconds (s)." in text


def test_looks_of_tables():
    table = Compare(table_of())
    table.trim_significant_figures()
    assert "| " in str(table) and " 62 " in str(table) and "62.4" not in str(table)
    noisy = Compare([Measurement(1, [1.0, 2.0, 3.0, 4.0], TaskSpec("f"))])
    noisy.highlight_warnings()
    assert "(! 60%) 2.5" in str(noisy)
    table.colorize(rowwise=True)
    assert "\033[92m" in str(table)
