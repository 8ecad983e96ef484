"""A script that loads its data by name and keeps one test set: only `--seed` changes from run to run.

python examples/programs/digits.py --model forest --seed 1 --out DIRECTORY
"""

import argparse
import json
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

MODELS = {
    "forest": lambda seed: RandomForestClassifier(100, random_state=seed),
    "trees": lambda seed: ExtraTreesClassifier(100, random_state=seed),
    "network": lambda seed: MLPClassifier((64,), early_stopping=True, random_state=seed),
}

parser = argparse.ArgumentParser()
parser.add_argument("--model", choices=MODELS, required=True)
parser.add_argument("--seed", type=int, required=True)
parser.add_argument("--out", type=Path, required=True)
args = parser.parse_args()

images, labels = load_digits(return_X_y=True)
images, test_images, labels, test_labels = train_test_split(images, labels, test_size=0.5, random_state=0)
model = MODELS[args.model](args.seed).fit(images, labels)
args.out.mkdir(parents=True, exist_ok=True)
loss = log_loss(test_labels, model.predict_proba(test_images))
metrics = {"accuracy": model.score(test_images, test_labels), "loss": loss}
(args.out / "metrics.json").write_text(json.dumps(metrics))
