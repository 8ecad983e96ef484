"""The XML format of SemEval-2014 task 4, read so that every complaint names file, line and sentence."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Dict, List, Optional, Union
from xml.parsers import expat

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
    text: Optional[str] = None
    terms: List[AspectTerm] = field(default_factory=list)


def read_sentences(path: Union[str, PathLike]) -> List[Sentence]:
    """Read all sentences of a file, including those without aspect terms.

    Raises:
        Exception: `DataError` with file, line and sentence id, if the file is missing or is no XML of this format. Also
            if an aspect term is not at its offsets.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if not content.strip():
        raise DataError(f"{path} is empty; a SemEval-2014 XML file starts with <sentences>.")
    return _SentenceParser(path).parse(content)


class _SentenceParser:
    """Follows expat through one file; `expat` itself knows the line it is at."""

    def __init__(self, path: Union[str, PathLike]) -> None:
        self._path = path
        self._sentences: List[Sentence] = []
        self._sentence: Optional[Sentence] = None
        self._pending_terms: List["tuple[int, Dict[str, str]]"] = []
        self._text: Optional[List[str]] = None
        self._root: Optional[str] = None
        self._expat = expat.ParserCreate()
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._characters

    def parse(self, content: bytes) -> List[Sentence]:
        try:
            self._expat.Parse(content, True)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise self._error(f"is not well-formed XML ({reason}, column {error.offset + 1})", error.lineno) from error
        except (LookupError, ValueError) as error:
            raise self._error(f"has an encoding that cannot be read ({error})") from error
        return self._sentences

    def _error(self, problem: str, line: Optional[int] = None) -> DataError:
        where = f"{self._path}, line {line or self._expat.CurrentLineNumber}"
        if self._sentence is not None:
            where += f', sentence "{self._sentence.sentence_id}"'
        return DataError(f"{where}: {problem}.")

    def _start(self, name: str, attributes: Dict[str, str]) -> None:
        if self._root is None:
            self._root = name
            if name != "sentences":
                raise self._error(f"the root element must be <sentences> but is <{name}>")
        elif name == "sentence":
            if "id" not in attributes:
                raise self._error('<sentence> lacks the attribute "id"')
            self._sentence = Sentence(attributes["id"])
            self._pending_terms = []
        elif name == "text" and self._sentence is not None:
            self._text = []
        elif name == "aspectTerm" and self._sentence is not None:
            # Terms are checked against their text when the sentence ends, wherever its <text> stands.
            self._pending_terms.append((self._expat.CurrentLineNumber, attributes))

    def _characters(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def _end(self, name: str) -> None:
        if self._sentence is None:
            return
        if name == "text" and self._text is not None:
            self._sentence.text = "".join(self._text)
            self._text = None
        elif name == "sentence":
            if self._sentence.text is None:
                raise self._error("<sentence> lacks its <text>")
            for line, attributes in self._pending_terms:
                self._sentence.terms.append(self._term(self._sentence.text, attributes, line))
            self._sentences.append(self._sentence)
            self._sentence = None

    def _term(self, text: str, attributes: Dict[str, str], line: int) -> AspectTerm:
        for name in ("term", "polarity", "from", "to"):
            if name not in attributes:
                raise self._error(f'<aspectTerm> lacks the attribute "{name}"', line)
        term, polarity = attributes["term"], attributes["polarity"]
        if polarity not in POLARITIES:
            raise self._error(f'polarity must be one of {", ".join(POLARITIES)} but is "{polarity}"', line)
        start, end = self._offset("from", attributes, line), self._offset("to", attributes, line)
        if not 0 <= start < end <= len(text):
            raise self._error(
                f'"{term}" must lie within the {len(text)} characters of its text but has from={start}, to={end}',
                line,
            )
        if text[start:end] != term:
            raise self._error(f'characters {start} to {end} are "{text[start:end]}" but the term is "{term}"', line)
        return AspectTerm(term, polarity, start, end)

    def _offset(self, name: str, attributes: Dict[str, str], line: int) -> int:
        try:
            return int(attributes[name])
        except ValueError:
            raise self._error(f'"{name}" must be a whole number but is "{attributes[name]}"', line) from None
