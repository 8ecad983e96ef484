import fiesta_allennlp.evaluators.systems.archive
import fiesta_allennlp.evaluators.systems.command
import fiesta_allennlp.evaluators.systems.http
import fiesta_allennlp.evaluators.systems.predictions  # noqa: F401
