import fiesta_allennlp.executors.processes
import fiesta_allennlp.executors.ray  # noqa: F401
