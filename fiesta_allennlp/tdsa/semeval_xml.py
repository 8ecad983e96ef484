"""The XML format of SemEval-2014 task 4, read so that every complaint names file and sentence."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import List, Union
from xml.etree import ElementTree

from fiesta_allennlp.errors import DataError

POLARITIES = ("positive", "negative", "neutral", "conflict")


@dataclass(frozen=True)
class AspectTerm:
    """An opinion target: `text[start:end]` of its sentence, with the polarity towards it."""

    term: str
    polarity: str
    start: int
    end: int


@dataclass
class Sentence:
    """A sentence with its aspect terms, in the order of the file."""

    sentence_id: str
    text: str
    terms: List[AspectTerm] = field(default_factory=list)


def read_sentences(path: Union[str, PathLike]) -> List[Sentence]:
    """Read all sentences of a file, including those without aspect terms.

    Raises:
        Exception: `DataError` with file and sentence id, if the file is missing or is no XML of this format. Also if an
            aspect term is not at its offsets.
    """
    try:
        root = ElementTree.fromstring(Path(path).read_bytes())
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except (ElementTree.ParseError, LookupError, ValueError) as error:
        raise DataError(f"{path} is not well-formed XML: {error}. The file starts with <sentences>.") from error
    if root.tag != "sentences":
        raise DataError(f"{path}: the root element must be <sentences> but is <{root.tag}>.")
    return [_sentence(element, f"{path}, sentence {place}") for place, element in enumerate(root.iter("sentence"), 1)]


def _sentence(element: ElementTree.Element, where: str) -> Sentence:
    sentence_id, text = element.get("id"), element.find("text")
    if sentence_id is None:
        raise DataError(f'{where} of the file: <sentence> lacks the attribute "id".')
    where += f' ("{sentence_id}")'
    if text is None:
        raise DataError(f"{where}: <sentence> lacks its <text>.")
    sentence = Sentence(sentence_id, "".join(text.itertext()))
    sentence.terms += (_term(sentence.text, term, where) for term in element.iter("aspectTerm"))
    return sentence


def _term(text: str, element: ElementTree.Element, where: str) -> AspectTerm:
    try:
        term, polarity = element.attrib["term"], element.attrib["polarity"]
        start, end = int(element.attrib["from"]), int(element.attrib["to"])
    except KeyError as error:
        raise DataError(f"{where}: <aspectTerm> lacks the attribute {error}.") from None
    except ValueError as error:
        raise DataError(f'{where}: "from" and "to" must be whole numbers ({error}).') from None
    if polarity not in POLARITIES:
        raise DataError(f'{where}: polarity must be one of {", ".join(POLARITIES)} but is "{polarity}".')
    if not 0 <= start < end <= len(text) or text[start:end] != term:
        raise DataError(
            f'{where}: "{term}" is not at the characters {start} to {end} of its text, which has {len(text)}: there is '
            f'"{text[max(0, start) : end]}".'
        )
    return AspectTerm(term, polarity, start, end)
