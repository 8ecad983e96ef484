import fiesta_allennlp.documents.systems.command  # noqa: F401
