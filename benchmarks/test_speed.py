import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch

from benchmarks import footprint, machine, speed
from benchmarks.measure import BenchmarkError, read_points, run, steady_rate
from benchmarks.network import flops_per_sample, policy_network
from benchmarks.rows import GAME, ROWS, Row
from coex.commands.train import _parser, _run_config

METRICS = """\
{"step": 80, "seconds": 9.0, "entropy": 2.89}
{"step": 1000, "seconds": 10.0, "entropy": 2.88}
{"step": 3000, "seconds": 12.0, "entropy": 2.87}
{"step": 5000, "seconds": 15.0, "entropy": 2.86}
{"step": 70"""
LIMITS = {
    "emulation_steps_per_second": {
        "bare_one_core": 600.0,
        "bare_all_cores": 1000.0,
        "vector_without_views": 950.0,
        "vector_policy_view": 900.0,
    },
    "network": {"act_flops": 10e6, "update_flops": 30e6, "gemm_flops_per_second": 40e9},
}


def test_rate_leaves_out_the_warm_up_and_a_torn_line(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(METRICS)
    assert steady_rate(read_points(metrics), warmup_steps=1000) == (5000 - 1000) / (15 - 10)


def test_rate_needs_two_points() -> None:
    with pytest.raises(BenchmarkError, match="run more steps"):
        steady_rate([(1000, 1.0), (5000, 2.0)], warmup_steps=2000)


def test_bound_is_emulation_and_network_in_turn() -> None:
    bounds = speed.bounds(LIMITS, epochs=1)
    assert bounds["network"] == pytest.approx(40e9 / 40e6)
    assert bounds["emulation_and_network"] == pytest.approx(500)
    assert speed.bounds(LIMITS, epochs=3)["flops_per_step"] == 10e6 + 3 * 30e6


def test_flops_of_the_network_match_a_count_by_hand() -> None:
    forward = 2 * (
        20 * 20 * 32 * (4 * 8 * 8) + 9 * 9 * 64 * (32 * 4 * 4) + 7 * 7 * 64 * (64 * 3 * 3) + 3136 * 512 + 512 * 19
    )
    first_layer = 2 * 20 * 20 * 32 * (4 * 8 * 8)
    network, frames = policy_network(actions=18), torch.rand(2, 4, 84, 84)
    assert flops_per_sample(network, frames, backward=False) == forward
    # Gradients cost as much again for the weights and for the inputs; frames need none.
    assert flops_per_sample(network, frames, backward=True) == 3 * forward - first_layer


def test_table_shows_medians_ratio_and_share_of_the_bound() -> None:
    row = {
        "row": "a2c",
        "peer": {"label": "SB3 A2C"},
        "ours_steps_per_second": [400.0, 390.0, 410.0],
        "peer_steps_per_second": [200.0, 190.0, 210.0],
        "ours_median": 400.0,
        "ratio": 2.0,
        "bounds": speed.bounds(LIMITS, epochs=1),
    }
    line = speed.render_rows([row]).splitlines()[1]
    assert line.split() == ["a2c", "400", "(390–410)", "SB3", "A2C", "200", "(190–210)", "2.00", "80%"]
    assert "95% of bare" in speed.render_limits(LIMITS, [row])


def test_a_failing_run_says_why() -> None:
    with pytest.raises(BenchmarkError, match="exit code 3:\nno such game"):
        run(["bash", "-c", "echo no such game >&2; exit 3"])
    with pytest.raises(BenchmarkError, match="make setup"):
        run(["/nowhere/coex"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_names_a_run_that_can_be_configured(row: Row) -> None:
    """Both sides collect and learn from the same amount."""
    options = _parser().parse_args(["train", GAME, "--method", row.method, *row.options])
    config = _run_config(options)
    peer = row.peer.arguments
    assert config.num_envs == row.peer.environments
    assert config.learner.num_steps == peer["n_steps"]
    assert (config.env.sticky, config.env.max_noops) == (0, 30)
    if row.peer.algorithm == "PPO":
        assert config.learner.num_epochs == row.epochs == peer["n_epochs"]
        assert config.num_envs * config.learner.num_steps == config.learner.num_minibatches * peer["batch_size"]


def test_memory_counts_the_whole_family() -> None:
    alone = footprint.family_memory(psutil.Process())
    child = subprocess.Popen([sys.executable, "-c", "x = bytearray(200_000_000); print(flush=True); input()"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()
    together = footprint.family_memory(psutil.Process())
    child.communicate(b"\n")
    assert 150e6 < together - alone < 400e6


def test_processor_name(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\n")
    assert machine.cpu_model(cpuinfo) == "Some CPU @ 3 GHz"
