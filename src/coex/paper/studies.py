"""All of them, in the paper's order, and what it does not have."""

import difflib

from coex.errors import UsageError
from coex.paper import (
    adm_ablation,
    adm_ablation_agent,
    adm_distance,
    cluster_samples,
    curves_a2c,
    curves_ppo,
    curves_psi,
    field,
    minigrid,
    ram_bound,
    room_ari,
    table1,
    table2,
    table_ppo,
    table_psi,
)
from coex.paper.study import Study

_MODULES = (
    table1, table2, table_ppo, table_psi, curves_a2c, adm_distance, room_ari, curves_ppo, ram_bound,
    cluster_samples, adm_ablation, adm_ablation_agent, curves_psi,
)  # fmt: skip
_OURS = (curves_a2c.ALL_METHODS, minigrid.STUDY, minigrid.PPO_STUDY, *field.STUDIES)
STUDIES = {study.name: study for study in (*(module.STUDY for module in _MODULES), *_OURS)}


def find_study(name: str) -> Study:
    if name not in STUDIES:
        close = difflib.get_close_matches(name.lower(), STUDIES, n=3, cutoff=0.4) or list(STUDIES)
        raise UsageError(f"the paper has no {name!r} here; closest: {', '.join(close)} ('coex paper' lists all)")
    return STUDIES[name]
