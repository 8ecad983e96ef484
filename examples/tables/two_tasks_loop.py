"""Chooses the classifier that is the best on the average of two data sets: the table of scores names the next runs.

Needs this package and scikit-learn. Put your own training into `train`; the rest stays as it is.

    python examples/tables/two_tasks_loop.py scores.csv
"""

import csv
import sys
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from fiesta_allennlp import next_runs

CANDIDATES = {
    "tree": lambda seed: DecisionTreeClassifier(random_state=seed),
    "bayes": lambda seed: GaussianNB(),
    "svm": lambda seed: make_pipeline(StandardScaler(), SVC()),
}
TASKS = {"wine": load_wine, "cancer": load_breast_cancer}


def train(candidate: str, task: str, split: str, seed: str) -> float:
    """Train a classifier on one split of a data set, and return its accuracy on the rest."""
    features, labels = TASKS[task](return_X_y=True)
    parts = train_test_split(features, labels, test_size=0.3, random_state=int(split))
    model = CANDIDATES[candidate](int(seed)).fit(parts[0], parts[2])
    return float(model.score(parts[1], parts[3]))


def main(table: Path) -> None:
    if not table.exists():  # the first rows name the tasks
        first = [("tree", task, "0", "1") for task in TASKS]
        with table.open("w", newline="") as file:
            csv.writer(file).writerows([("candidate", "task", "split", "seed", "score")])
            csv.writer(file).writerows((*run, train(*run)) for run in first)
    while runs := next_runs(table, candidates=list(CANDIDATES), workers=2).runs:
        named = [(run.candidate, run.task, run.split, run.seed) for run in runs]
        with table.open("a", newline="") as file:
            csv.writer(file).writerows((*run, train(*run)) for run in named)
    answer = next_runs(table)
    print(answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
