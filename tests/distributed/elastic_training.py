"""A training that learns from each sample once, also where processes are killed.

``torch`` is taeda here: ``python -m taeda.torch elastic_training.py FOLDER KILLS``, started by the
launcher. In the first KILLS attempts one process kills itself.
"""

import json
import os
import random
import signal
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.elastic import ElasticBatchSampler
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP


@record
def main(folder, kills):
    dist.init_process_group("gloo")
    rank, size, attempt = (
        dist.get_rank(),
        dist.get_world_size(),
        int(os.environ["TORCHELASTIC_RESTART_COUNT"]),
    )
    torch.manual_seed(0)
    x = torch.randn(240, 4)
    model = DDP(torch.nn.Linear(4, 1), units=12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sampler = ElasticBatchSampler(x, 24, seed=5)
    state = {
        "model": model,
        "optimizer": dcp.state_dict.get_optimizer_state_dict(model, optimizer),
        "sampler": sampler,
        "seen": [],
    }
    if os.path.exists(folder + "/checkpoint/metadata.json"):
        dcp.load(state, checkpoint_id=folder + "/checkpoint")
        dcp.state_dict.set_optimizer_state_dict(model, optimizer, state["optimizer"])
    fate = random.Random(1000 * attempt + 7)
    victim, moment = fate.randrange(size), fate.randrange(1, 8)
    for epoch in range(sampler.epoch, 2):
        sampler.set_epoch(epoch)
        for batch in sampler:
            moment -= 1
            if attempt < kills and moment == 0 and rank == victim:
                os.kill(os.getpid(), signal.SIGKILL)
            optimizer.zero_grad()
            model(x[batch]).square().mean().backward()
            optimizer.step()
            everyones = [None] * size
            dist.all_gather_object(everyones, batch)
            sampler.advance()
            state["seen"] = state["seen"] + [epoch * 1000 + i for part in everyones for i in part]
            state["optimizer"] = dcp.state_dict.get_optimizer_state_dict(model, optimizer)
            dcp.save(state, checkpoint_id=folder + "/checkpoint")
    if rank == 0:
        bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        with open(folder + "/result.json", "w") as file:
            json.dump(
                {"seen": state["seen"], "weights": bits.hex(), "size": size, "attempt": attempt},
                file,
            )
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
