"""Packages for training that are written for PyTorch, run unchanged; each test needs its package."""

from __future__ import annotations

import pytest

from .test_packages import run


def test_transformers(tmp_path):
    pytest.importorskip("transformers")
    program = """
        import torch
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(0)
        config = GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=32,
                            bos_token_id=1, eos_token_id=2)
        model = GPT2LMHeadModel(config)
        ids = torch.arange(16).reshape(2, 8) + 3
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0] / 1.2, losses
        model.eval()
        options = dict(max_new_tokens=4, min_new_tokens=4, attention_mask=torch.ones_like(ids))
        greedy = model.generate(ids, do_sample=False, **options)
        assert greedy.shape == (2, 12) and model.generate(ids, do_sample=True, **options).shape == (2, 12)
        assert model.generate(ids, num_beams=3, do_sample=False, **options).shape == (2, 12)
        model.save_pretrained("saved")
        again = GPT2LMHeadModel.from_pretrained("saved").eval()
        assert torch.equal(again.generate(ids, do_sample=False, **options), greedy)
        print("done")
    """
    assert run(program, tmp_path).endswith("done\n")


def test_peft(tmp_path):
    pytest.importorskip("peft")
    program = """
        import torch
        from peft import LoraConfig, PeftModel, get_peft_model
        from transformers import LlamaConfig, LlamaForCausalLM

        def base():
            torch.manual_seed(0)
            return LlamaForCausalLM(LlamaConfig(
                vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32))

        ids = torch.arange(16).reshape(2, 8) + 3
        model = get_peft_model(base(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
        trained, total = model.get_nb_trainable_parameters()
        assert 0 < trained < total / 10
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        model.save_pretrained("adapter")
        again = PeftModel.from_pretrained(base(), "adapter")
        want = model(input_ids=ids).logits
        torch.testing.assert_close(again(input_ids=ids).logits, want)
        torch.testing.assert_close(model.merge_and_unload()(input_ids=ids).logits, want)
        print("done")
    """
    assert run(program, tmp_path).endswith("done\n")


def test_accelerate(tmp_path):
    pytest.importorskip("accelerate")
    program = """
        import torch
        from accelerate import Accelerator, init_empty_weights
        from torch import nn

        torch.manual_seed(0)
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        model = nn.Linear(4, 1)
        data = torch.utils.data.TensorDataset(torch.randn(16, 4), torch.ones(16, 1))
        loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        losses = []
        for _ in range(3):
            for x, y in loader:
                with accelerator.accumulate(model):
                    loss = nn.functional.mse_loss(model(x), y)
                    accelerator.backward(loss)
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(loss.item())
        assert losses[-1] < losses[0]
        accelerator.save_state("state")
        accelerator.load_state("state")
        with init_empty_weights():
            empty = nn.Linear(3, 3)
        assert empty.weight.device.type == "meta"
        print("done")
    """
    assert run(program, tmp_path).endswith("done\n")


def test_lightning(tmp_path):
    pytest.importorskip("lightning")
    program = """
        import lightning
        import torch
        from torch import nn

        class Model(lightning.LightningModule):
            def __init__(self, width=8):
                super().__init__()
                self.save_hyperparameters()
                self.net = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 1))

            def training_step(self, batch, index):
                loss = nn.functional.mse_loss(self.net(batch[0]), batch[1])
                self.log("loss", loss)
                return loss

            def validation_step(self, batch, index):
                self.log("val", nn.functional.mse_loss(self.net(batch[0]), batch[1]))

            def configure_optimizers(self):
                optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
                return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]

        lightning.seed_everything(0)
        data = torch.utils.data.TensorDataset(torch.randn(32, 4), torch.ones(32, 1))
        loader = torch.utils.data.DataLoader(data, batch_size=8)
        model = Model()
        before = nn.functional.mse_loss(model.net(data[:][0]), data[:][1]).item()
        keep = lightning.pytorch.callbacks.ModelCheckpoint(dirpath="kept", monitor="val")
        trainer = lightning.Trainer(max_epochs=3, accelerator="cpu", callbacks=[keep],
                                    logger=lightning.pytorch.loggers.CSVLogger("logs"),
                                    log_every_n_steps=1, enable_progress_bar=False)
        trainer.fit(model, loader, loader)
        assert trainer.callback_metrics["val"].item() < before
        again = Model.load_from_checkpoint(keep.best_model_path)
        assert again.hparams.width == 8
        print("done")
    """
    assert run(program, tmp_path).endswith("done\n")


def test_torchrl_collectors(tmp_path):
    pytest.importorskip("torchrl")
    pytest.importorskip("gymnasium")
    program = """
        import torch
        from torchrl.collectors import Collector
        from torchrl.envs import GymEnv
        from torchrl.modules import RandomPolicy

        env = GymEnv("CartPole-v1")
        collector = Collector(env, RandomPolicy(env.action_spec), frames_per_batch=16, total_frames=32)
        for data in collector:
            assert tuple(data.batch_size) == (16,) and data["next", "reward"].sum() == 16
        collector.shutdown()
        print("done")
    """
    assert run(program, tmp_path).endswith("done\n")
