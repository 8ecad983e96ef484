"""Predictions for targets in raw text."""

from allennlp.common.util import JsonDict
from allennlp.data import Instance
from allennlp.predictors import Predictor

from fiesta_allennlp.errors import DataError


@Predictor.register("tdsa")
class TdsaPredictor(Predictor):
    """Predicts the polarity towards a target, with any model of `fiesta_allennlp.tdsa`.

    The input is `{"text": ..., "target": ..., "from": ..., "to": ...}`. You may leave out the offsets if the target
    occurs once.

    Registered as a `Predictor` with name "tdsa".
    """

    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        for key in ("text", "target"):
            if key not in json_dict:
                raise DataError(f'A prediction needs "text" and "target" but "{key}" is missing from {json_dict}.')
        return self._dataset_reader.text_to_instance(
            json_dict["text"], json_dict["target"], start=json_dict.get("from"), end=json_dict.get("to")
        )
