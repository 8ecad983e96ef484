"""Importing this module registers everything with AllenNLP: it is what `.allennlp_plugins` names."""

import fiesta_allennlp.beliefs
import fiesta_allennlp.commands.subcommands
import fiesta_allennlp.documents.evaluator
import fiesta_allennlp.documents.systems
import fiesta_allennlp.executors.processes
import fiesta_allennlp.executors.ray
import fiesta_allennlp.executors.slurm
import fiesta_allennlp.modules
import fiesta_allennlp.searches.searchers
import fiesta_allennlp.strategies
import fiesta_allennlp.tagging
import fiesta_allennlp.tdsa
import fiesta_allennlp.trainings.evaluator
import fiesta_allennlp.trainings.newer_libraries
import fiesta_allennlp.trainings.resplit

fiesta_allennlp.tdsa.set_defaults()
fiesta_allennlp.tagging.set_defaults()
