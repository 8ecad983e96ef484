import fiesta_allennlp.documents.systems.command
import fiesta_allennlp.documents.systems.http  # noqa: F401
