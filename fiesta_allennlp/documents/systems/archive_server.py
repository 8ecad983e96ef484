"""The process of an archive: loads the model, and answers one line of JSON after the other.

The answer to null is empty, or has the reason why the model cannot be loaded.
"""

import json
import os
import sys
from typing import Any, Dict, Mapping, TextIO

ANNOTATION_KEYS = ("label", "tags", "spans")

PLUGIN = "fiesta_allennlp.plugin"


def main() -> None:
    stream = _redirect_output()
    options = json.loads(sys.argv[1])
    os.environ["OMP_NUM_THREADS"] = str(options["num_threads"])
    try:
        predictor = load_predictor(options)
    except (Exception, SystemExit) as error:
        from fiesta_allennlp.core.errors import describe_as_sentence

        sys.stdin.readline()
        _write_answer({"error": f"cannot load the archive {options['path']}: {describe_as_sentence(error)}"}, stream)
        raise
    for line in sys.stdin:
        fields = json.loads(line)
        _write_answer({} if fields is None else predict_annotation(predictor, fields, options["key"]), stream)


def load_predictor(options: Mapping[str, Any]) -> Any:
    """Load the predictor of an archive, with everything registered that a config may name."""
    import torch
    from allennlp.common.plugins import import_plugins
    from allennlp.predictors import Predictor

    from fiesta_allennlp.core.registry import import_package

    torch.set_num_threads(options["num_threads"])
    import_plugins()
    for package in (PLUGIN, *options["packages"]):
        import_package(package)
    return Predictor.from_path(
        options["path"],
        predictor_name=options["predictor"],
        cuda_device=options["cuda_device"],
        overrides=options["overrides"],
    )


def predict_annotation(predictor: Any, fields: Dict[str, Any], key: Any) -> Dict[str, Any]:
    """Return the annotation in the predictor's output, without logits and other large fields; or all of it if there is
    no annotation. If the predictor fails, return its message as `error`, because it may answer the next question."""
    if "sentence" not in fields and "text" in fields:
        fields = {**fields, "sentence": fields["text"]}
    try:
        answer = predictor.predict_json(fields)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    names = [name for name in (key, *ANNOTATION_KEYS) if name in answer]
    return {name: answer[name] for name in names} or dict(answer)


def _redirect_output() -> TextIO:
    """Return the standard output for answers alone: anything else that is printed goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _write_answer(answer: Mapping[str, Any], stream: TextIO) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()


if __name__ == "__main__":
    main()
