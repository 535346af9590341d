import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch

from benchmarks import bonuses, footprint, lean, machine, speed
from benchmarks.measure import BenchmarkError, Settings, read_points, run, steady_rate
from benchmarks.network import flops_per_sample, policy_network
from benchmarks.rows import GAME, PLAIN_ROWS, ROWS, Peer, Row
from coex.cli import _parser
from coex.commands.train import _run_config

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


def test_table_shows_medians_ratios_and_share_of_the_bound() -> None:
    rates = {"a2c": [400.0, 390.0, 410.0], "SB3": [200.0, 190.0, 210.0], "lean, ALE": [400.0, 400.0, 400.0]}
    policies = {"SB3": {"default": 1.0, "passive": 2.0}, "lean, ALE": {"default": 2.0, "passive": 1.0}}
    row = speed.summarise(ROWS[0], rates, policies) | {"bounds": speed.bounds(LIMITS, epochs=1)}
    assert [peer.get("wait_policy") for peer in row["peers"]] == ["passive", "default", None]
    heading, line = (re.split(r" {3,}", line) for line in speed.render_rows([row]).splitlines())
    assert heading == ["row", "ours, steps/s", "SB3", "lean, ALE", "lean, EnvPool", "of the bound"]
    assert line == [
        "a2c",
        "400 (390–410)",
        "200 (190–210), 2.00×",
        "400 (400–400), 1.00×",
        "no envpool here",
        "80%",
    ]
    assert "95% of bare" in speed.render_limits(LIMITS, [row])
    faster = row | {"row": "a2c in bfloat16", "precision": "bfloat16"}
    assert "80%" not in speed.render_rows([faster])
    assert "a2c in" not in speed.render_limits(LIMITS, [faster])


def test_rows_with_the_same_peers_share_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """To and fro, and without what is not installed."""
    runs: list[str] = []

    def time(rate: float, runner: Row | Peer, *_: object) -> float:
        runs.append(runner.name if isinstance(runner, Row) else runner.label)
        return rate

    monkeypatch.setattr(Peer, "is_installed", property(lambda peer: peer.package is None))
    monkeypatch.setattr(speed, "probe", lambda peer, settings: {"default": 1.0})
    monkeypatch.setattr(speed, "time_ours", partial(time, 4.0))
    monkeypatch.setattr(speed, "time_peer", partial(time, 2.0))
    a2c, coex = speed.measure_rows(PLAIN_ROWS[:2], Settings(rounds=2))
    once = ["a2c", "a2c+coex", "SB3", "lean, ALE"]
    assert runs == once + once[::-1]
    assert [peer.get("ratio") for peer in coex["peers"]] == [2.0, 2.0, None]
    assert a2c["ours_steps_per_second"] == [4.0, 4.0]


def test_a_failing_run_says_why() -> None:
    with pytest.raises(BenchmarkError, match="exit code 3:\nno such game"):
        run(["bash", "-c", "echo no such game >&2; exit 3"])
    with pytest.raises(BenchmarkError, match="make setup"):
        run(["/nowhere/coex"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_names_runs_that_can_be_configured(row: Row) -> None:
    """All sides collect and learn from the same amount."""
    precision = ("--set", f"learner.precision={row.precision}")
    options = _parser().parse_args(["train", GAME, "--method", row.method, *row.options, *precision])
    config = _run_config(options)
    assert (config.env.frame_skip, config.env.sticky, config.env.max_noops) == (4, 0, 30)
    assert config.learner.precision == ("bfloat16" if "bfloat16" in row.name else "float32")
    assert getattr(config.learner, "max_kl", 0) == 0  # no pass is left out
    epochs, minibatches = (getattr(config.learner, name, 1) for name in ("num_epochs", "num_minibatches"))  # A2C: 1
    for peer in row.peers:
        theirs = lean.Settings(**peer.arguments)
        assert config.num_envs == peer.environments
        assert config.learner.num_steps == theirs.n_steps
        assert epochs == theirs.n_epochs == row.epochs
        assert config.num_envs * config.learner.num_steps == minibatches * theirs.batch_size


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


def test_a_bonus_is_rated_by_the_plain_run_of_its_own_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {("a2c", 0): 100.0, ("a2c", 1): 50.0, ("a2c+cts", 0): 90.0, ("a2c+cts", 1): 45.0}
    monkeypatch.setattr(bonuses, "measure_method", lambda method, steps, seed: (rates[method, seed], 2_000_000))
    plain, cts = bonuses.measure(["cts"], 10, 2)
    assert (plain["ratio"], cts["ratio"]) == (1.0, pytest.approx(0.9))
    assert "2 MB" in bonuses.render([plain, cts])
