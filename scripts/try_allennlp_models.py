"""Runs `fiesta-select` with models of allennlp-models and prints which of them work: the table of
`scripts/benchmarks/allennlp_models.md`.

    python scripts/try_allennlp_models.py --models DIR --fixtures DIR -o WORK
    python scripts/try_allennlp_models.py --models DIR --fixtures DIR -o WORK --only 'bidaf|esim'

`--models` is where `pip install --target` put allennlp-models. `--fixtures` is a checkout of its repository, which has
the folder `test_fixtures`. Each config is compared with itself and one epoch more, on random and on official splits.

A fixture has few instances, and its config names one file for training and validation. So the script writes three
files that repeat these instances: the scores say nothing about a model. A pretrained transformer is replaced by a
random one that the script makes.
"""

import argparse
import json
import os
import re
import shutil
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict

from allennlp.common import Params

from fiesta_allennlp import select
from fiesta_allennlp.core.errors import FiestaError
from fiesta_allennlp.selection.jsonnet import apply_overrides

FIXTURES = "test_fixtures"
TIMES = {"train": 4, "validation": 1, "test": 2}
"""How often each set repeats the instances. No two sets may be equal, because that is refused."""

SPLITS = ("shared", "official")
LIMITS: Dict[str, Any] = {"max_evaluations": 6, "confidence": 0.8}
BART, T5 = "sshleifer/bart-tiny-random", "patrickvonplaten/t5-tiny-random"
TRANSFORMERS = {
    "epwalsh/bert-xsmall-dummy": "bert",
    f"{FIXTURES}/bert-xsmall-dummy": "bert",
    "bert-base-uncased": "bert",
    BART: "bart",
    T5: "t5",
}
"""What takes the place of the transformers in the configs."""

CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'\"()-"
BIDIRECTIONAL = "lm/language_model/experiment_bidirectional_unsampled.jsonnet"


def pairs_for(transformer: str) -> Dict[str, Any]:
    """Pairs of sentences, and a reader of them for a transformer that writes."""
    pieces = {"type": "pretrained_transformer", "model_name": transformer}
    reader = {"type": "seq2seq", "source_tokenizer": pieces, "source_token_indexers": {"tokens": pieces}}
    ends = [f"{side}_add_{end}_token" for side in ("source", "target") for end in ("start", "end")]
    data = f"{FIXTURES}/generation/seq2seq_copy.tsv"
    return {"train_data_path": data, "dataset_reader": {**reader, **dict.fromkeys(ends, False)}}


CHANGES: Dict[str, Dict[str, Any]] = {
    "": {},
    "without TensorBoard": {"trainer.callbacks": []},
    "with pairs for BART": pairs_for(BART),
    "with pairs for T5": {**pairs_for(T5), "model.weights_path": f"{T5}/pytorch_model.bin"},
    "with equal readers": {"validation_dataset_reader.skip_impossible_questions": True},
}
"""What is laid over a config."""


@dataclass(frozen=True)
class Case:
    """A config of one model. `config` is a path below `test_fixtures`; `change` a key of `CHANGES`."""

    model: str
    config: str
    metric: str
    change: str = ""


CASES = (
    Case("bcn", "classification/biattentive_classification_network/experiment.json", "accuracy"),
    Case("bimpm", "pair_classification/bimpm/experiment.json", "accuracy"),
    Case("decomposable_attention", "pair_classification/decomposable_attention/experiment.json", "accuracy"),
    Case("esim", "pair_classification/esim/experiment.json", "accuracy"),
    Case("crf_tagger", "tagging/crf_tagger/experiment.json", "f1-measure-overall"),
    Case("crf_tagger", "tagging/crf_tagger/experiment_conll2000.json", "accuracy"),
    Case("crf_tagger", "tagging/crf_tagger/experiment_ccgbank.json", "accuracy"),
    Case("biaffine_parser", "structured_prediction/biaffine_dependency_parser/experiment.json", "LAS"),
    Case("constituency_parser", "structured_prediction/constituency_parser/experiment.json", "evalb_f1_measure"),
    Case("graph_parser", "structured_prediction/semantic_dependencies/experiment.json", "f1"),
    Case("srl", "structured_prediction/srl/experiment.json", "f1-measure-overall"),
    Case("srl_bert", "structured_prediction/srl/bert_srl.jsonnet", "f1-measure-overall"),
    Case("bidaf", "rc/bidaf/experiment.json", "f1"),
    Case("qanet", "rc/qanet/experiment.json", "f1"),
    Case("naqanet", "rc/naqanet/experiment.json", "f1"),
    Case("dialog_qa", "rc/dialog_qa/experiment.json", "f1"),
    Case("transformer_qa", "rc/transformer_qa/experiment.jsonnet", "per_instance_f1"),
    Case("transformer_qa", "rc/transformer_qa/experiment.jsonnet", "per_instance_f1", "with equal readers"),
    Case("coref", "coref/experiment.json", "coref_f1"),
    Case("language_model", "lm/language_model/experiment_unsampled.jsonnet", "-perplexity", "without TensorBoard"),
    Case("bidirectional-language-model", BIDIRECTIONAL, "-perplexity", "without TensorBoard"),
    Case("masked_language_model", "lm/masked_language_model/experiment.json", "-perplexity"),
    Case("next_token_lm", "lm/next_token_lm/experiment.json", "-perplexity"),
    Case("next_token_lm", "lm/next_token_lm/experiment_transformer.json", "-perplexity"),
    Case("simple_seq2seq", "generation/simple/experiment.json", "BLEU"),
    Case("composed_seq2seq", "generation/composed/experiment.json", "-loss"),
    Case("copynet_seq2seq", "generation/copynet/experiment.json", "BLEU"),
    Case("bart", "generation/bart/experiment.jsonnet", "BLEU", "with pairs for BART"),
    Case("t5", "generation/t5/experiment.jsonnet", "BLEU", "with pairs for T5"),
    Case("transformer_mc", "mc/transformer_mc/experiment.jsonnet", "acc"),
)


def main() -> None:
    arguments = parse()
    output, fixtures, models = (path.resolve() for path in (arguments.output, arguments.fixtures, arguments.models))
    # AllenNLP imports allennlp_models wherever it is installed, and the runs are processes of their own.
    sys.path.insert(0, str(models))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(models), os.environ.get("PYTHONPATH")]))
    os.environ.update(HF_HUB_OFFLINE="1", NLTK_DATA=str(output))  # NLTK reads trees below NLTK_DATA only
    os.chdir(fixtures)  # where the paths of the configs begin
    write_transformers(output / "transformers")
    cases = [case for case in CASES if re.search(arguments.only, f"{case.model} {case.config}")]
    print("| model | config | metric | shared splits | official splits |\n|---|---|---|---|---|", flush=True)
    for case in cases:
        directory = output / re.sub(r"\W+", "_", f"{case.model}_{case.config}_{case.change}")
        write_config(case, fixtures, directory, output / "transformers")
        outcomes = [outcome_of(case, splits, directory) for splits in SPLITS]
        config = f"`{case.config}`" + f", {case.change}" * bool(case.change)
        print(f"| `{case.model}` | {config} | `{case.metric}` | {' | '.join(outcomes)} |", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, metavar="DIR", help="holds the package allennlp_models")
    parser.add_argument("--fixtures", type=Path, required=True, metavar="DIR", help=f"holds the folder {FIXTURES}")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where everything is written")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="models or configs that match this regular expression"
    )
    return parser.parse_args()


def write_config(case: Case, fixtures: Path, directory: Path, transformers: Path) -> None:
    """The case's config in `directory`, with three sets and with a transformer that is there."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    config = Params.from_file(str(fixtures / FIXTURES / case.config)).as_dict(quiet=True)
    config = apply_overrides(config, CHANGES[case.change])
    source = fixtures / config["train_data_path"]
    for part, times in TIMES.items():
        target = directory / f"{part}{source.suffix}"
        repeat(source, target, times)
        config[f"{part}_data_path"] = str(target)
    text = json.dumps(config, indent=2)
    for name, kind in TRANSFORMERS.items():
        text = text.replace(f'"{name}', f'"{transformers / kind}')
    (directory / "config.json").write_text(text, encoding="utf-8")


def repeat(source: Path, target: Path, times: int) -> None:
    """Write a data set `times` times over: a folder of CoNLL files, a JSON file of articles, or a text of lines or
    of blocks."""
    if source.is_dir():
        for file in source.rglob("*_conll"):
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            repeat(file, copy, times)
    elif source.suffix == ".json":
        data = json.loads(source.read_text(encoding="utf-8"))
        if "data" in data:
            again = {**data, "data": data["data"] * times}
        else:
            again = {f"{key}-{number}": value for number in range(times) for key, value in data.items()}
        target.write_text(json.dumps(again), encoding="utf-8")
    else:
        text = source.read_text(encoding="utf-8").strip("\n")
        gap = "\n\n" if "\n\n" in text else "\n"
        target.write_text(f"{text}{gap}" * times, encoding="utf-8")
    labels = source.with_name(f"{source.stem}-labels.lst")
    if labels.exists():
        repeat(labels, target.with_name(f"{target.stem}-labels.lst"), times)


def write_transformers(directory: Path) -> None:
    """A BERT, a BART and a T5 of one layer with random weights and next to no words."""
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    bert, bart, t5 = (directory / kind for kind in ("bert", "bart", "t5"))
    for place in (bert, bart, t5):
        place.mkdir(parents=True, exist_ok=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *CHARACTERS, *(f"##{each}" for each in CHARACTERS)]
    (bert / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    transformers.BertTokenizerFast(str(bert / "vocab.txt")).save_pretrained(bert)
    sizes = {"hidden_size": 20, "intermediate_size": 40, "num_hidden_layers": 1, "num_attention_heads": 1}
    transformers.BertForPreTraining(transformers.BertConfig(vocab_size=len(pieces), **sizes)).save_pretrained(bert)

    words = ByteLevelBPETokenizer()
    words.train_from_iterator([CHARACTERS], special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    words.save_model(str(bart))
    words.save(str(t5 / "tokenizer.json"))
    ends = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    names = [f"{side}_{what}" for side in ("encoder", "decoder") for what in ("layers", "attention_heads", "ffn_dim")]
    sizes = {"d_model": 16, "max_position_embeddings": 64, **dict.fromkeys(names, 2)}
    bart_config = transformers.BartConfig(vocab_size=words.get_vocab_size(), **sizes)
    transformers.BartForConditionalGeneration(bart_config).save_pretrained(bart)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    t5_config = transformers.T5Config(vocab_size=400, **sizes, **ends)
    transformers.T5ForConditionalGeneration(t5_config).save_pretrained(t5, safe_serialization=False)


def outcome_of(case: Case, splits: str, directory: Path) -> str:
    """Whether a selection of the case worked, or else why not."""
    config = directory / "config.json"
    epochs = json.loads(config.read_text(encoding="utf-8"))["trainer"]["num_epochs"] + 1
    candidates = [f"A={config}", f"B={config}?trainer.num_epochs={epochs}"]
    try:
        result = select(candidates, directory=directory / splits, metric=case.metric, splits=splits, **LIMITS)
    except FiestaError as error:
        return f"refused: {_in_a_cell(str(error))}"
    except Exception as error:
        traceback.print_exc()
        return f"crashed: {_in_a_cell(repr(error))}"
    if result.num_failures:
        reasons = {reason for candidate in result.candidates for reason in candidate.failure_reasons}
        return f"{result.num_failures} runs fail: {_in_a_cell('; '.join(sorted(reasons)))}"
    return f"works ({result.num_evaluations} runs)"


def _in_a_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
