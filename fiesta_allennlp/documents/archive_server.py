"""Answers questions with an archive of `allennlp train`: reads one line of JSON for each, and prints one.

python -m fiesta_allennlp.documents.archive_server model.tar.gz
"""

import argparse
import json
import os
import sys
from typing import Any, Dict

from fiesta_allennlp.version import PLUGIN_MODULE

ANNOTATION_KEYS = ("label", "tags", "spans")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # the standard output is for answers alone: all else that is printed goes to the standard error
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", help="model.tar.gz, or a serialization directory")
    parser.add_argument("--predictor", help="registered name, if the model has no default one or to use another")
    parser.add_argument("--overrides", default="", help="JSON that overrides parts of the archive's config")
    parser.add_argument("--cuda-device", type=int, default=-1, help="number of a GPU (default: the CPU)")
    parser.add_argument("--num-threads", type=int, default=1, help="torch threads")
    parser.add_argument("--include-package", action="append", default=[], help="package to import first")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.num_threads)
    predictor = load_predictor(args)
    for line in sys.stdin:
        print(json.dumps(predict_annotation(predictor, json.loads(line))), file=answers, flush=True)


def load_predictor(args: argparse.Namespace) -> Any:
    """Load the predictor of an archive, with everything registered that a config may name."""
    import torch
    from allennlp.common.plugins import import_plugins
    from allennlp.predictors import Predictor

    from fiesta_allennlp.core.registry import import_package

    torch.set_num_threads(args.num_threads)
    import_plugins()
    for package in (PLUGIN_MODULE, *args.include_package):
        import_package(package)
    return Predictor.from_path(
        args.archive, predictor_name=args.predictor, cuda_device=args.cuda_device, overrides=args.overrides
    )


def predict_annotation(predictor: Any, fields: Dict[str, Any]) -> Dict[str, Any]:
    """Return the annotation in the predictor's output, without logits and other large fields; or all of it if there is
    no annotation. If the predictor fails, return its message as `error`, because it may answer the next question."""
    if "sentence" not in fields and "text" in fields:
        fields = {**fields, "sentence": fields["text"]}
    try:
        answer = predictor.predict_json(fields)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {name: answer[name] for name in ANNOTATION_KEYS if name in answer} or dict(answer)


if __name__ == "__main__":
    main()
