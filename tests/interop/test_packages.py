"""taeda beside the packages that people use it with; each test needs its package."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import taeda
from taeda.utils.data import DataLoader, Dataset


def run(program, folder):
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    command = [sys.executable, "-m", "taeda.torch", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


# NumPy


def test_numpy_functions_take_tensors():
    x = taeda.tensor([1.0, 2.0])
    assert type(np.sin(x)) is taeda.Tensor and type(np.add(x, np.ones(2))) is taeda.Tensor
    assert type(x + np.ones(2)) is taeda.Tensor and type(np.float64(2) * x) is taeda.Tensor
    assert type(np.concatenate([x, x])) is np.ndarray
    assert np.asarray(x, dtype=np.int32).tolist() == [1, 2]
    assert np.from_dlpack(x).tolist() == [1.0, 2.0]
    array = np.zeros(2)
    array[:] = x
    assert array.tolist() == [1.0, 2.0]
    assert np.arange(5)[taeda.tensor(3)] == 3
    with pytest.raises(RuntimeError, match="requires grad"):
        np.asarray(taeda.ones(1, requires_grad=True))


def test_equality_with_arrays():
    x = taeda.tensor([1.0, 2.0])
    for other in (np.ones(2), np.ones(2, np.float32), np.array([1, 5]), np.array([True, False])):
        assert (x == other).tolist() == (other == x).tolist() == [True, False]
    assert (x == np.array(2.0)).tolist() == [False, True]
    assert (x == np.array(["a", "b"])) is False
    with pytest.raises(RuntimeError, match="size"):
        x == np.ones(3)


# pandas


def test_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    x = taeda.arange(6.0).reshape(3, 2)
    frame = pandas.DataFrame(x, columns=["a", "b"])
    assert frame["b"].tolist() == [1.0, 3.0, 5.0] and frame.dtypes.iloc[0] == np.float32
    frame["c"] = taeda.tensor([7, 8, 9])
    assert frame["c"].tolist() == [7, 8, 9]
    assert pandas.Series(taeda.tensor([1, 2])).sum() == 3
    assert frame.iloc[taeda.tensor(1).item()]["a"] == 2.0
    assert frame[["a", "b"]].mul(taeda.tensor([1.0, 10.0])).iloc[2].tolist() == [4.0, 50.0]
    back = taeda.tensor(frame[["a", "b"]].to_numpy())
    assert taeda.equal(back, x)
    assert taeda.tensor(frame["c"].values).tolist() == [7, 8, 9]
    assert taeda.tensor(frame["c"]).tolist() == [7, 8, 9]

    class Rows(Dataset):
        def __len__(self):
            return len(frame)

        def __getitem__(self, i):
            row = frame.iloc[i]
            return taeda.tensor(row[["a", "b"]].values.astype("float32")), int(row["c"])

    (batch,) = DataLoader(Rows(), batch_size=3)
    assert taeda.equal(batch[0], x) and batch[1].tolist() == [7, 8, 9]


# scikit-learn


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LinearRegression, LogisticRegression
    from sklearn.metrics import accuracy_score, mean_squared_error
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    taeda.manual_seed(0)
    x = taeda.randn(60, 3)
    y = x @ taeda.tensor([1.0, -2.0, 3.0]) + 0.5
    model = LinearRegression().fit(x, y)
    assert model.coef_ == pytest.approx([1.0, -2.0, 3.0], abs=1e-4)
    assert mean_squared_error(y, taeda.from_numpy(model.predict(x))) < 1e-8
    labels = (y > 0.5).long()
    train, test, train_labels, test_labels = train_test_split(x, labels, random_state=0)
    classifier = LogisticRegression().fit(train, train_labels)
    assert accuracy_score(test_labels, classifier.predict(test)) > 0.8
    scaled = taeda.tensor(StandardScaler().fit_transform(x))
    assert scaled.mean().abs().item() < 1e-6


# matplotlib


def test_matplotlib(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    x = taeda.linspace(0, 1, 20)
    figure, axes = pyplot.subplots(2, 3)
    (line,) = axes[0, 0].plot(x, taeda.sin(x))
    assert np.asarray(line.get_ydata()) == pytest.approx(np.sin(np.linspace(0, 1, 20)), abs=1e-6)
    axes[0, 1].scatter(x, x**2, c=x)
    counts, _, _ = axes[0, 2].hist(taeda.tensor([1.0, 1.0, 2.0]), bins=2)
    assert counts.tolist() == [2, 1]
    axes[1, 0].imshow(taeda.rand(4, 4, 3))
    axes[1, 1].bar(taeda.arange(3), taeda.tensor([1, 2, 3]))
    axes[1, 2].fill_between(x, x - 1, x + 1)
    axes[1, 2].axhline(taeda.tensor(0.5))
    figure.savefig(tmp_path / "figure.png")
    pyplot.close(figure)
    assert (tmp_path / "figure.png").stat().st_size > 5000


# einops


def test_einops_without_the_drop_in():
    einops = pytest.importorskip("einops")
    from taeda.compat.einops import register

    register()
    register()
    x = taeda.arange(24.0).reshape(2, 3, 4).requires_grad_()
    array = x.detach().numpy()
    for pattern, sizes in (("a b c -> c (a b)", {}), ("a b (c d) -> d a b c", {"d": 2})):
        got = einops.rearrange(x, pattern, **sizes)
        assert np.array_equal(got.detach().numpy(), einops.rearrange(array, pattern, **sizes))
    for how in ("min", "max", "sum", "mean", "prod"):
        got = einops.reduce(x, "a b c -> b", how).detach().numpy()
        np.testing.assert_allclose(got, einops.reduce(array, "a b c -> b", how), rtol=1e-5)
    assert einops.reduce(x > 3, "a b c -> b", "any").tolist() == [True] * 3
    assert einops.repeat(x, "a b c -> a r b (c 2)", r=3).shape == (2, 3, 3, 8)
    assert einops.rearrange([x, x], "n a b c -> a n b c").shape == (2, 2, 3, 4)
    assert taeda.equal(einops.einsum(x, x, "a b c, a b d -> b c d").sum(0), x.mT.matmul(x).sum(0))
    packed, shapes = einops.pack([x, x[:, 0]], "a * c")
    assert [t.shape for t in einops.unpack(packed, shapes, "a * c")] == [(2, 3, 4), (2, 4)]
    assert einops.asnumpy(x).shape == (2, 3, 4) and einops.parse_shape(x, "a _ c") == {
        "a": 2,
        "c": 4,
    }
    einops.reduce(x, "a b c -> ", "sum").backward()
    assert x.grad.sum() == 24


def test_einops_under_the_drop_in(tmp_path):
    pytest.importorskip("einops")
    printed = run(
        """
        import torch
        from einops import einsum, pack, rearrange, reduce, repeat
        from einops.layers.torch import Rearrange
        x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
        print(type(rearrange(x, "b c (h w) -> b (c h) w", h=2)) is torch.Tensor)
        print(tuple(rearrange(x, "b c d -> (b d) c").shape), tuple(repeat(x, "b c d -> b c d 2").shape))
        print(reduce(x, "b c d -> b", "mean").tolist(), reduce(x, "b c d -> c", "max").tolist())
        print(tuple(einsum(x, x, "b c d, b e d -> b c e").shape))
        packed, shapes = pack([x, x], "b * d")
        print(tuple(packed.shape))
        layer = torch.nn.Sequential(Rearrange("b c d -> b (c d)"), torch.nn.Linear(12, 1))
        layer(x).sum().backward()
        print(tuple(x.grad.shape))
        """,
        tmp_path,
    )
    assert printed.splitlines() == [
        "True",
        "(8, 3) (2, 3, 4, 2)",
        "[5.5, 17.5] [15.0, 19.0, 23.0]",
        "(2, 3, 3)",
        "(2, 6, 4)",
        "(2, 3, 4)",
    ]


# TensorBoard


def read_events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sizes = {"scalars": 0, "images": 0, "histograms": 0, "tensors": 0}
    events = EventAccumulator(str(folder), size_guidance=sizes)
    events.Reload()
    return events


@pytest.mark.filterwarnings("ignore")
def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from taeda.utils.tensorboard import SummaryWriter

    pixels = taeda.rand(3, 5, 7)
    values = taeda.tensor([-1.0, 0.0, 0.5, 0.5, 2.0])
    with SummaryWriter(tmp_path, max_queue=2) as writer:
        assert writer.get_logdir() == str(tmp_path)
        for step in range(5):
            writer.add_scalar("loss", taeda.tensor(1.0 / (step + 1), requires_grad=True), step)
        writer.add_scalar("number", 3, 0, walltime=12.5)
        writer.add_histogram("weights", values, 1)
        writer.add_histogram("few", values, 1, bins="auto", max_bins=2)
        writer.add_image("picture", pixels, 2)
        writer.add_images("pictures", taeda.rand(10, 1, 4, 4), 2)
        writer.add_text("note", "**hello**", 3)
        writer.add_scalars("both", {"a": 1.0, "b": np.float32(2)}, 4)
        with pytest.raises(ValueError, match="one number"):
            writer.add_scalar("loss", taeda.ones(2))
        with pytest.raises(ValueError, match="no elements"):
            writer.add_histogram("none", [])
        with pytest.raises(ValueError, match="channels"):
            writer.add_image("picture", taeda.rand(2, 5, 7))
        with pytest.raises(ValueError, match="dimensions"):
            writer.add_image("picture", taeda.rand(5, 7))
        from taeda.utils.tensorboard.summary import hparams, scalar, text

        own = writer._get_file_writer()
        for summary in (*hparams({"lr": 0.1}, {"acc": 0}), scalar("direct", 2.5), text("t", "x")):
            own.add_summary(summary, 7)
    events = read_events(tmp_path)
    assert {"_hparams_/experiment", "_hparams_/session_end_info"} <= set(events.summary_metadata)
    assert [(e.step, e.value) for e in events.Scalars("direct")] == [(7, 2.5)]
    assert events.Tensors("t/text_summary")[0].tensor_proto.string_val[0] == b"x"
    assert [e.value for e in events.Scalars("loss")] == pytest.approx(
        [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    )
    assert [e.step for e in events.Scalars("loss")] == [0, 1, 2, 3, 4]
    assert events.Scalars("number")[0].wall_time == 12.5
    histogram = events.Histograms("weights")[0].histogram_value
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (-1, 2, 5, 2)
    assert sum(histogram.bucket) == 5 and histogram.sum_squares == 5.5
    few = events.Histograms("few")[0].histogram_value
    assert sum(few.bucket) == 5 and len(few.bucket) <= 2
    image = events.Images("picture")[0]
    assert (image.height, image.width) == (5, 7)
    pillow = pytest.importorskip("PIL.Image")
    import io

    decoded = np.asarray(pillow.open(io.BytesIO(image.encoded_image_string)))
    expected = (pixels.permute(1, 2, 0).double().numpy() * 255).astype("uint8")
    assert np.array_equal(decoded, expected)
    assert events.Images("pictures")[0].width == 32 and events.Images("pictures")[0].height == 8
    assert events.Tensors("note/text_summary")[0].tensor_proto.string_val[0] == b"**hello**"
    assert read_events(tmp_path / "both_b").Scalars("both")[0].value == 2.0


def test_plugins_of_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from google.protobuf import text_format
    from tensorboard.plugins.hparams import metadata as hparams
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
    from tensorboard.util import tensor_util

    from taeda.utils.tensorboard import SummaryWriter

    labels, guesses = taeda.tensor([1, 0, 1, 1]), taeda.tensor([0.9, 0.8, 0.6, 0.1])
    points = taeda.arange(6.0).view(3, 2)
    with SummaryWriter(tmp_path) as writer:
        writer.add_hparams(
            {"lr": 0.1, "name": "x", "on": True}, {"loss": 0.5}, {"lr": [0.1, 1.0]}, "run", 3
        )
        writer.add_pr_curve("curve", labels, guesses, 1, num_thresholds=11)
        writer.add_tensor("tensor", points, 1)
        writer.add_audio("sound", taeda.sin(taeda.arange(100) / 5.0), 1, sample_rate=8000)
        writer.add_custom_scalars(
            {"losses": {"both": ["Multiline", ["a", "b"]], "band": ["Margin", ["a", "b", "c"]]}}
        )
        writer.add_mesh(
            "mesh", points.new_ones(1, 4, 3), faces=taeda.zeros(1, 2, 3, dtype=taeda.int64)
        )
        writer.add_histogram_raw("raw", 0.0, 2.0, 3, 3.0, 5.0, [1.0, 2.0], [1, 2], 1)
        writer.add_embedding(points, ["a", "b\tc", "d"], taeda.rand(3, 3, 4, 5), 2, "points/of 2")
        writer.add_embedding(points, [[1, 2]] * 3, metadata_header=["x", "y"])
        for call, message in (
            (lambda: writer.add_embedding(points, ["a"], tag="n"), "1 labels for 3 points"),
            (lambda: writer.add_embedding(points[0], tag="n"), "2 dimensions"),
            (lambda: writer.add_pr_curve("c", labels[:2], guesses), "2 labels but 4 predictions"),
            (lambda: writer.add_custom_scalars({"c": {"t": ["Pie", []]}}), "Pie"),
            (lambda: writer.add_custom_scalars_marginchart(["a"]), "3 tags"),
            (lambda: writer.add_mesh("m", points), "batch, count, 3"),
            (lambda: writer.add_audio("s", points), "one row"),
            (lambda: writer.add_histogram_raw("r", 0, 1, 1, 1, 1, [1], []), "1 limits, 0 counts"),
        ):
            with pytest.raises(ValueError, match=message):
                call()
        with pytest.raises(TypeError, match="'lr' must be"):
            writer.add_hparams({"lr": [1]}, {})
        with pytest.raises(TypeError, match="hparam_domain_discrete names"):
            writer.add_hparams({"lr": 1}, {}, {"other": [1]})

    run = read_events(tmp_path / "run")
    assert run.Scalars("loss")[0].value == 0.5 and run.Scalars("loss")[0].step == 3
    content = run.summary_metadata["_hparams_/session_start_info"].plugin_data.content
    given = hparams.parse_session_start_info_plugin_data(content).hparams
    assert given["lr"].number_value == 0.1 and given["name"].string_value == "x"
    events = read_events(tmp_path)

    def values(tag):
        return tensor_util.make_ndarray(events.Tensors(tag)[0].tensor_proto)

    true, false, not_false, missed, precision, recall = values("curve")
    assert (true[0], false[0], not_false[0], missed[0]) == (3, 1, 0, 0)
    assert (true[7], false[7], not_false[7], missed[7]) == (1, 1, 0, 2)
    assert precision[7] == 0.5 and recall[7] == pytest.approx(1 / 3)
    assert np.array_equal(values("tensor"), points.numpy())
    assert events.Audio("sound")[0].length_frames == 100
    assert list(events.Histograms("raw")[0].histogram_value.bucket) == [1, 2]
    assert (
        b"Multiline" not in events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0]
    )
    assert values("mesh_VERTEX").shape == (1, 4, 3) and values("mesh_FACE").dtype == np.int32
    config = ProjectorConfig()
    text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), config)
    first, second = config.embeddings
    assert first.tensor_name == "points/of 2:00002" and list(first.sprite.single_image_dim) == [
        5,
        4,
    ]
    assert (tmp_path / first.metadata_path).read_text() == "a\nb c\nd\n"
    assert (tmp_path / first.tensor_path).read_text().splitlines()[1] == "2.0\t3.0"
    assert (tmp_path / second.metadata_path).read_text().splitlines()[0] == "x\ty"

    # A folder that was used before.
    replaced = pytest.warns(UserWarning, match="'points/of 2' of step 2")
    with SummaryWriter(str(tmp_path)) as writer, replaced:
        writer.add_embedding(points + 1, global_step=2, tag="points/of 2")
    config = ProjectorConfig()
    text_format.Parse((tmp_path / "projector_config.pbtxt").read_text(), config)
    kept, new = config.embeddings
    assert (kept, new.tensor_name) == (second, "points/of 2:00002")
    assert (tmp_path / new.tensor_path).read_text().splitlines()[1] == "3.0\t4.0"


def test_graphs_for_tensorboard(tmp_path, capsys):
    pytest.importorskip("tensorboard")
    from taeda import nn
    from taeda.utils._tensorboard_files import graph_of
    from taeda.utils.tensorboard import SummaryWriter

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout())
            self.head = nn.Linear(4, 2)

        def forward(self, x, y):
            return self.head(self.body(x) * 2 + y).softmax(-1), y

    model = Model()
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, (taeda.ones(5, 3), taeda.zeros(4)))
        with pytest.raises(TypeError, match="input_to_model"):
            writer.add_graph(model)
        writer.add_graph(nn.Linear(2, 2), taeda.ones(2), verbose=True)
    assert "Linear" in capsys.readouterr().out
    assert model.training and model.body[2].training and not model.body._forward_hooks
    assert {node.name for node in read_events(tmp_path).Graph().node} > {"input", "output"}
    graph = graph_of(model, (taeda.ones(5, 3), taeda.zeros(4)))
    nodes = {node.name: node for node in graph.node}
    linear = nodes["Model/Sequential[body]/Linear[0]/linear"]
    assert list(linear.input) == ["input", "Model/body/0/weight", "Model/body/0/bias"]
    sizes = linear.attr["_output_shapes"].list.shape[0].dim
    assert [d.size for d in sizes] == [5, 4]
    assert nodes["Model/Sequential[body]/ReLU[1]/relu"].input[0] == linear.name
    assert nodes["output"].input[0] == "Model/softmax" and nodes["output_1"].input[0] == "input_1"
    assert all(name in nodes for node in graph.node for name in node.input)


@pytest.mark.filterwarnings("ignore")
def test_figures_for_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    from taeda.utils.tensorboard import SummaryWriter

    figure = pyplot.figure(figsize=(2, 1), dpi=50)
    figure.add_subplot().plot(taeda.arange(3), taeda.arange(3))
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("curve", figure)
    image = read_events(tmp_path).Images("curve")[0]
    assert (image.width, image.height) == (100, 50)
    assert not pyplot.fignum_exists(figure.number)


def test_tensorboard_under_the_drop_in(tmp_path):
    pytest.importorskip("tensorboard")
    printed = run(
        """
        import torch
        from torch.utils.tensorboard import SummaryWriter
        writer = SummaryWriter("logs", comment="x")
        writer.add_scalar("a", torch.tensor(2.0), 1)
        writer.close()
        print(writer.log_dir)
        """,
        tmp_path,
    )
    assert printed.strip() == "logs"
    assert read_events(tmp_path / "logs").Scalars("a")[0].value == 2.0
