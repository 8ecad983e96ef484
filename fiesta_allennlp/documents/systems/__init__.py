import fiesta_allennlp.documents.systems.command_system  # noqa: F401
