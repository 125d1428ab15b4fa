"""Vision packages written for PyTorch, unchanged; each test needs its package.

Each program runs on taeda, and on PyTorch where the package works with the one that is installed.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import textwrap

import pytest


def numbers(program, folder, *command):
    path = folder / "program.py"
    path.write_text("import json\n" + textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, "-W", "ignore", *command, str(path)],
        capture_output=True,
        text=True,
        cwd=folder,
    )


def check(package, program, folder, tolerance=1e-4):
    """The program's last line is a list of numbers, the same from both libraries."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    ours = numbers(program, folder, "-m", "taeda.torch")
    assert ours.returncode == 0, ours.stderr
    found = json.loads(ours.stdout.splitlines()[-1])
    if importlib.util.find_spec("torch") is not None:
        theirs = numbers(program, folder)
        if theirs.returncode == 0:
            expected = json.loads(theirs.stdout.splitlines()[-1])
            assert found == pytest.approx(expected, rel=tolerance, abs=tolerance)
    return found


def test_timm(tmp_path):
    losses = check(
        "timm",
        """
        import timm, torch
        torch.manual_seed(0)
        small = dict(img_size=32, patch_size=8, embed_dim=32, depth=1, num_heads=2)
        losses = []
        for name, options in [("resnet10t", {}), ("vit_tiny_patch16_224", small)]:
            model = timm.create_model(name, num_classes=3, **options)
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
            x, y = torch.randn(8, 3, 32, 32), torch.arange(8) % 3
            for _ in range(3):
                loss = torch.nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        print(json.dumps(losses))
        """,
        tmp_path,
        tolerance=5e-3,
    )
    assert losses[2] < losses[0] and losses[5] < losses[3]


def test_torchvision(tmp_path):
    found = check(
        "torchvision",
        """
        import torch, torchvision
        from torchvision import ops
        from torchvision.transforms import v2
        torch.manual_seed(0)
        image = torch.randint(0, 256, (3, 20, 24), dtype=torch.uint8)
        change = v2.Compose([
            v2.Resize(16, antialias=True),
            v2.RandomHorizontalFlip(1.0),
            v2.ColorJitter(0.2, 0.2, 0.2, 0.1),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5] * 3, [0.2] * 3),
        ])
        x = change(image)
        boxes = torch.tensor([[0.0, 0, 4, 4], [2, 2, 6, 6]])
        model = torchvision.models.mobilenet_v3_small(num_classes=2).eval()
        found = [x.mean().item(), x.std().item(), ops.box_iou(boxes, boxes)[0, 1].item()]
        print(json.dumps(found + model(x[None]).flatten().tolist()))
        """,
        tmp_path,
    )
    assert len(found) == 5 and found[2] == pytest.approx(4 / 28)


def test_torchmetrics(tmp_path):
    check(
        "torchmetrics",
        """
        import torch, torchmetrics
        from torchmetrics import classification, image
        torch.manual_seed(0)
        metrics = torchmetrics.MetricCollection([
            classification.MulticlassAccuracy(4),
            classification.MulticlassF1Score(4),
            classification.MulticlassAUROC(4),
            classification.MulticlassCalibrationError(4),
        ])
        for _ in range(2):
            metrics.update(torch.randn(30, 4).softmax(1), torch.randint(0, 4, (30,)))
        ssim = image.StructuralSimilarityIndexMeasure(data_range=1.0)
        x = torch.rand(1, 1, 24, 24)
        found = [value.item() for value in metrics.compute().values()]
        found += [ssim(x, (x + 0.1 * torch.rand(1, 1, 24, 24)).clamp(0, 1)).item()]
        found += [torchmetrics.SpearmanCorrCoef()(torch.rand(9), torch.rand(9)).item()]
        print(json.dumps(found))
        """,
        tmp_path,
    )


def test_captum(tmp_path):
    found = check(
        "captum",
        """
        import torch
        from captum import attr
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
        )
        x, nothing = torch.randn(1, 4), torch.zeros(1, 4)
        difference = (model(x) - model(nothing))[0, 1].item()
        whole = attr.IntegratedGradients(model).attribute(x, nothing, target=1, n_steps=200)
        parts = attr.ShapleyValueSampling(model).attribute(x, nothing, target=1)
        layer = attr.LayerConductance(model, model[0]).attribute(x, nothing, target=1)
        found = [difference, whole.sum().item(), parts.sum().item(), layer.sum().item()]
        print(json.dumps(found + attr.Saliency(model).attribute(x, target=1)[0].tolist()))
        """,
        tmp_path,
    )
    # What is attributed adds up to what the model says.
    assert found[1:3] == pytest.approx([found[0]] * 2, rel=0.02, abs=0.01)


def test_vit_pytorch(tmp_path):
    check(
        "vit_pytorch",
        """
        import torch
        from vit_pytorch import SimpleViT
        torch.manual_seed(0)
        model = SimpleViT(
            image_size=16, patch_size=4, num_classes=3, dim=24, depth=2, heads=2, mlp_dim=32
        )
        x = torch.randn(2, 3, 16, 16)
        out = model(x)
        out.square().sum().backward()
        norms = [p.grad.norm().item() for p in model.parameters()]
        print(json.dumps(out.flatten().tolist() + norms))
        """,
        tmp_path,
    )
