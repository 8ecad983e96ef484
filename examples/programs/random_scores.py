"""Stands for a model: its scores are drawn from the seeds of the split and of the run.

python examples/programs/random_scores.py GAIN SPLIT_SEED SEED DIRECTORY
"""

import json
import random
import sys
from pathlib import Path

gain, split_seed, seed, directory = sys.argv[1:]
score = 0.8 + float(gain) + random.Random(int(split_seed)).gauss(0, 0.02) + random.Random(int(seed)).gauss(0, 0.01)
metrics = {"f1": round(score, 4), "validation_f1": round(score + 0.01, 4)}
(Path(directory) / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
