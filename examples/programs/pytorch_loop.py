"""A bag of word embeddings, trained by a loop in plain PyTorch. The validation set chooses the epoch."""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn

Data = Tuple[Tensor, Tensor]

LENGTH = 24
"""Words of each text: longer ones are cut, shorter ones are filled up with 0."""


def read(path: Path) -> List[Dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def encoded(rows: List[Dict[str, str]], words: Dict[str, int], labels: List[str]) -> Data:
    """Numbers of words, shape `(num_texts, LENGTH)`, and of labels, shape `(num_texts,)`."""
    numbers = [[words.get(word, 1) for word in row["text"].lower().split()][:LENGTH] for row in rows]
    padded = [row + [0] * (LENGTH - len(row)) for row in numbers]
    return torch.tensor(padded), torch.tensor([labels.index(row["label"]) for row in rows])


def accuracy(model: nn.Module, data: Data) -> float:
    with torch.no_grad():
        return float((model(data[0]).argmax(-1) == data[1]).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("train", "validation", "test"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=15)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    rows = read(args.train)
    counts = Counter(word for row in rows for word in row["text"].lower().split())
    words = {word: number for number, word in enumerate(sorted(counts), start=2)}
    labels = sorted({row["label"] for row in rows})
    train, validation, test = (encoded(read(path), words, labels) for path in (args.train, args.validation, args.test))

    embedding = nn.EmbeddingBag(len(words) + 2, args.dim, padding_idx=0)
    model = nn.Sequential(embedding, nn.Dropout(0.3), nn.Linear(args.dim, len(labels)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    best = (-1.0, 0.0)
    for _ in range(args.epochs):
        model.train()
        for batch in torch.randperm(len(train[0])).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(train[0][batch]), train[1][batch]).backward()
            optimizer.step()
        model.eval()
        reached = accuracy(model, validation)
        if reached > best[0]:
            best = (reached, accuracy(model, test))
    print(json.dumps({"best_validation_accuracy": best[0], "accuracy": best[1]}))


if __name__ == "__main__":
    main()
