import fiesta_allennlp.evaluators.allennlp_training  # noqa: F401
