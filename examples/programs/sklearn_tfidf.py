"""TF-IDF and logistic regression with scikit-learn. The validation set chooses the strength of the regularisation."""

import argparse
import json
from pathlib import Path
from typing import List, Tuple

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline

STRENGTHS = (0.1, 1.0, 10.0)


def read(path: Path) -> Tuple[List[str], List[str]]:
    """Texts and labels."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row["text"] for row in rows], [row["label"] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("train", "validation", "test", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--ngrams", type=int, default=1)
    args = parser.parse_args()

    train, validation, test = read(args.train), read(args.validation), read(args.test)
    fitted = []
    for strength in STRENGTHS:
        model = make_pipeline(
            TfidfVectorizer(ngram_range=(1, args.ngrams)),
            LogisticRegression(C=strength, solver="saga", max_iter=200, tol=0.01, random_state=args.seed),
        )
        model.fit(*train)
        fitted.append((accuracy_score(validation[1], model.predict(validation[0])), strength, model))
    best_accuracy, _, best = max(fitted, key=lambda found: found[:2])
    predicted = best.predict(test[0])
    metrics = {
        "best_validation_accuracy": best_accuracy,
        "accuracy": accuracy_score(test[1], predicted),
        "macro_f1": f1_score(test[1], predicted, average="macro"),
    }
    args.output.write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
