import fiesta_allennlp.evaluators.allennlp_training
import fiesta_allennlp.evaluators.documents
import fiesta_allennlp.evaluators.systems  # noqa: F401
