"""Whether the nodes of a cluster have the data files, asked before the first training."""

from typing import Any, Iterable, Sequence

from fiesta_allennlp.errors import FiestaError
from fiesta_allennlp.on_node import check_files


def check_nodes(ray: Any, nodes: Iterable[str], paths: Sequence[str]) -> None:
    """Ask these nodes, given by their ids, for these files, all at once.

    A node that gives no answer, as one that has just gone, is passed over: every training looks again.

    # Raises

    `DataError` : with the first node that lacks a file.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ask = ray.remote(num_cpus=0, max_retries=0)(check_files)
    places = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    for answer in [ask.options(scheduling_strategy=place).remote(list(paths)) for place in places]:
        try:
            ray.get(answer)
        except ray.exceptions.RayTaskError as error:
            raise_if_ours(error)
        except ray.exceptions.RayError:
            continue


def raise_if_ours(error: Any) -> None:
    """Raise the error that this package raised on a node on purpose, where a task's error is such a one."""
    if isinstance(error.cause, FiestaError):
        raise error.cause from error
