"""Whether item i of one candidate is item i of another that reads the same files by other means."""

import hashlib
import json
from typing import Dict, Hashable, Iterable, List, Mapping, Sequence, Tuple


def codes_of(values: Iterable[Hashable]) -> List[int]:
    """Each value as the number of distinct ones before it: equal for values that are only renamed."""
    codes: Dict[Hashable, int] = {}
    return [codes.setdefault(value, len(codes)) for value in values]


def pairing_digests(groups: Sequence[Hashable], fields: Mapping[str, Sequence[Hashable]]) -> Tuple[str, ...]:
    """A digest of the groups in their order, and one with each of the fields that tell items apart, in sorted order.

    A field tells something of the order where its values repeat but are not all equal. Of two candidates, digests in
    common mean that their items have equal groups and, but for names, equal labels at equal positions.

    Args:
        groups: of each item. Shape: `(num_items,)`.
        fields: values of each item by name. Shape of each: `(num_items,)`.
    """
    grouped = codes_of(groups)
    told = [codes for codes in map(codes_of, fields.values()) if 1 < len(set(codes)) < len(codes)]
    return tuple(sorted({_digest(grouped, codes) for codes in ([], *told)}))


def with_labels(groups: Sequence[Hashable], fields: Mapping[str, Sequence[Hashable]]) -> Tuple[str, ...]:
    """Those of `pairing_digests` with a field; where no field tells anything, the one of the groups alone."""
    alone = pairing_digests(groups, {})
    return tuple(digest for digest in pairing_digests(groups, fields) if digest not in alone) or alone


def _digest(groups: List[int], labels: List[int]) -> str:
    return hashlib.sha256(json.dumps([groups, labels]).encode("ascii")).hexdigest()
