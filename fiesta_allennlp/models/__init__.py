"""What AllenNLP configs of the example tasks can name. Importing it registers that; only `plugin` does so."""

# ruff: noqa: F401
import fiesta_allennlp.models.modules
import fiesta_allennlp.models.tagging
import fiesta_allennlp.models.tdsa
