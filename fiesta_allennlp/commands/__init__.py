import fiesta_allennlp.commands.fiesta_documents
import fiesta_allennlp.commands.fiesta_plan
import fiesta_allennlp.commands.fiesta_replay
import fiesta_allennlp.commands.fiesta_report
import fiesta_allennlp.commands.fiesta_select  # noqa: F401
