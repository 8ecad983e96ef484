import fiesta_allennlp.executors.processes  # noqa: F401
