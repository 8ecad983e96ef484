import fiesta_allennlp.documents.systems.command
import fiesta_allennlp.documents.systems.http
import fiesta_allennlp.documents.systems.predictions  # noqa: F401
