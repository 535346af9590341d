"""How fast the policy network alone could go: its FLOPs a step, and this machine's matrix product rate."""

import argparse
import json
import statistics
import time

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

GEMM_SIZE = 1024
BATCH = 80  # 16 environments × 5 steps; FLOPs a sample do not depend on it


def policy_network(actions: int) -> nn.Sequential:
    """The network of Mnih et al. (2015) with the policy's logits and the value as one last layer."""
    return nn.Sequential(
        *(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU()),  # (B, 32, 20, 20)
        *(nn.Conv2d(32, 64, 4, stride=2), nn.ReLU()),  # (B, 64, 9, 9)
        *(nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten()),  # (B, 3136)
        *(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions + 1)),  # (B, actions + 1)
    )


def flops_per_sample(network: nn.Module, frames: Tensor, *, backward: bool) -> float:
    """One pass over `frames` (B, 4, 84, 84), per sample; a multiply-add is two operations."""
    with FlopCounterMode(display=False) as counter:
        output = network(frames)
        if backward:
            output.sum().backward()
    return float(counter.get_total_flops()) / len(frames)


def gemm_rate(seconds: float) -> float:
    """FLOP/s of float32 1024³ matrix products on all cores: the median over the window."""
    left, right = torch.rand(2, GEMM_SIZE, GEMM_SIZE).unbind()
    durations = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        left @ right
        durations.append(time.perf_counter() - start)
    return 2 * GEMM_SIZE**3 / statistics.median(durations)


def main() -> None:
    """Measure once and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actions", type=int, default=18)
    parser.add_argument("--seconds", type=float, required=True, help="how long the product is repeated")
    options = parser.parse_args()
    network, frames = policy_network(options.actions), torch.rand(BATCH, 4, 84, 84)
    facts = {
        "act_flops": flops_per_sample(network, frames, backward=False),
        "update_flops": flops_per_sample(network, frames, backward=True),
        "gemm_flops_per_second": gemm_rate(options.seconds),
        "torch_threads": torch.get_num_threads(),
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
