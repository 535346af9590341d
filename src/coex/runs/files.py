"""The files of a run by name, for those who write them and those who only look."""

CONFIG, METRICS, EPISODES, SUMMARY = "config.json", "metrics.jsonl", "episodes.csv", "summary.json"
LOCK = "lock"  # held by the process that writes the run
WATCHED = "watched"  # touched while somebody looks: only then is `LIVE` written
LIVE = "live.json"  # the agent at play, and where it has been
