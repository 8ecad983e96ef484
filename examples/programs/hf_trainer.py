"""A Hugging Face `Trainer` on a tiny BERT, made here with its tokenizer, so that nothing is downloaded."""

import argparse
import json
from pathlib import Path
from typing import Any, Dict, List

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)


def read(path: Path) -> List[Dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def made_tokenizer(texts: List[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of the words of these texts."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=["[PAD]", "[UNK]"]))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]")


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("train", "validation", "test", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    set_seed(args.seed)

    rows = read(args.train)
    tokenizer = made_tokenizer([row["text"] for row in rows])
    labels = sorted({row["label"] for row in rows})

    def encoded(path: Path) -> List[Dict[str, Any]]:
        return [
            {**tokenizer(row["text"], return_token_type_ids=False), "labels": labels.index(row["label"])}
            for row in read(path)
        ]

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=len(labels),
    )
    arguments = TrainingArguments(
        output_dir=str(args.output / "model"),
        num_train_epochs=args.epochs,
        learning_rate=5e-3,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=128,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=args.seed,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=encoded(args.train),
        eval_dataset=encoded(args.validation),
        tokenizer=tokenizer,
        compute_metrics=lambda found: {"accuracy": float(np.mean(found.predictions.argmax(-1) == found.label_ids))},
    )
    trainer.train()
    test_metrics = trainer.evaluate(encoded(args.test), metric_key_prefix="test")
    metrics = {
        **trainer.evaluate(metric_key_prefix="best_validation"),
        **{name.removeprefix("test_"): value for name, value in test_metrics.items()},
    }
    trainer.save_model()
    (args.output / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")


if __name__ == "__main__":
    main()
