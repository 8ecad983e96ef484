"""Reads the sources of a table of scores: files, patterns of paths, the standard input, and objects of Python. Each row
becomes a record: its cells as text by column, and its place for messages."""

import csv
import glob
import io
import json
import math
import re
import sys
from collections import Counter
from functools import partial
from importlib import import_module
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from fiesta_allennlp.core.errors import ConfigError, DataError, PackageError, full_command, join_some
from fiesta_allennlp.core.files import flatten, from_csv_cell, refuse_repeated_keys, shown_value
from fiesta_allennlp.tables import corrections

STANDARD_INPUT, STANDARD_INPUT_NAME = "-", "standard input"
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
SEPARATORS = (",", "\t", ";", "|")
FRAME_READERS = {".xlsx": ("read_excel", "openpyxl"), ".parquet": ("read_parquet", "pyarrow")}
"""By ending, the function of pandas, and the package that it needs."""

URL = re.compile(r"(https?|s3|gs):/+(.*)")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+\s*%?)")

EXAMPLE_ROW = '{"candidate": "a", "seed": 1, "score": 0.8}'

Content = Any
"""Rows from Python: mappings of column names, a data frame, or a mapping from candidates to lists of scores."""


class Record(NamedTuple):
    """A row of a table: the file, the number of its line or row, and its cells by column. An empty cell is ''. A record
    of empty cells is not a run, but a table without any has its columns from it."""

    file: str
    number: str
    cells: Dict[str, str]

    @property
    def place(self) -> str:
        """The file and the line, for messages."""
        return f"{self.file}, {self.number}" if self.number else self.file

    def name(self, column: str) -> str:
        """Return the cell of a column that names something: empty for NaN, and one form for `0`, `0.0` and `00`."""
        return cell_name(self.cells.get(column, ""))


def read_records(paths: Sequence[str], content: Content, settings: Any) -> List[Record]:
    """Read files, or the content that Python has. Several files without a column of candidates have one each.

    Raises:
        ConfigError: if a file does not exist, or is a directory.
        DataError: if a file cannot be read as a table.
    """
    if content is not None:
        return list(_records_of_object(paths[0], content))
    by_file: Dict[str, List[Record]] = {}
    found = [pair for path in paths for pair in _find_files(path).items()]
    unique = {Path(file).absolute(): (file, parts) for file, parts in found}
    for path, (file, parts) in unique.items():
        target = path.resolve()
        if target != path and target.name == path.name and unique.get(target, ("", None))[1] == parts:
            continue  # a link such as `latest` to another file of the pattern
        by_file[file] = list(read_file(file))
        for record, (name, part) in product(by_file[file], parts.items()):
            if cell_name(record.cells.setdefault(name, part)) != cell_name(part):
                problem = f"{record.place}: '{name}' is '{record.cells[name]}', but '{part}' in the path"
                raise DataError(f"{problem}. Rename {{{name}}} in the pattern.")
    typed = (settings.columns or {}).get("candidate", "candidate").split("+")
    if len(by_file) > 1 and "candidate" in typed and not any("candidate=" in text for text in settings.parse):
        _name_candidates(by_file)
    return [record for records in by_file.values() for record in records]


def _name_candidates(records_by_file: Mapping[str, List[Record]]) -> None:
    """Name the candidate of each file without a column of candidates after the file. Refuse files of one name."""
    nameless = {
        path: records
        for path, records in records_by_file.items()
        if not any(name.casefold() == "candidate" for record in records[:1] for name in record.cells)
    }
    if len({Path(path).stem for path in nameless}) < len(nameless):
        pattern = corrections.propose_pattern(list(nameless))
        problem = f"{join_some(list(nameless), limit=2)}: {len(nameless)} files without a column of candidates have "
        changes = [{"files": (pattern,)}] if pattern else []
        raise corrections.TableError(f"{problem}the same names. Say what the parts of their paths are.", *changes)
    for path, records in nameless.items():
        for record in records:
            record.cells["candidate"] = Path(path).stem


def _find_files(path: str) -> Dict[str, Dict[str, str]]:
    """Return the files of a path or a pattern, each with the named parts of its path."""
    if match := URL.match(path):
        raise DataError(f"{match[1]}://{match[2]} is a URL. Download the table, or pipe it.")
    if path == STANDARD_INPUT or Path(path).is_file():
        return {path: {}}
    pieces = corrections.PATTERN_PIECE.split(path)
    if len(pieces) == 1 or Path(path).exists():
        status = f" {full_command('report')} {path} writes the table of a selection." if Path(path).is_dir() else ""
        problem = "is a directory" if status else "no such file"
        raise ConfigError(f"{path}: {problem}. Pass a file, or a pattern such as 'r/{{candidate}}/{{seed}}/*'.{status}")
    glob_text = "".join(
        "*" if piece[:1] == "{" else piece if number % 2 else glob.escape(piece) for number, piece in enumerate(pieces)
    )
    paths = sorted(glob.glob(glob_text, recursive=True))
    matches = {file: corrections.match_pattern(path, file, "[^/]") for file in paths}
    files = {file: parts for file, parts in matches.items() if parts is not None and Path(file).is_file()}
    if not files:
        raise ConfigError(f"{path}: no file matches the pattern. {{name}} and * stand for characters without '/'.")
    return files


def read_file(path: str) -> Iterable[Record]:
    """Read the records of a file, or of the standard input. Raise a `DataError` if it cannot be read as a table."""
    suffix = Path(path).suffix.lower()
    name = STANDARD_INPUT_NAME if path == STANDARD_INPUT else path
    if suffix in FRAME_READERS:
        return _records_of_frame(name, _read_frame(path, *FRAME_READERS[suffix]))
    try:
        data = sys.stdin.buffer.read() if path == STANDARD_INPUT else Path(path).read_bytes()
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is neither UTF-8 nor UTF-16 text (byte {error.start}). Save it as UTF-8.") from error
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror}.") from error
    is_json = suffix in JSON_ENDINGS or (path == STANDARD_INPUT and text.lstrip()[:1] in ("{", "["))
    return _records_of_json(name, text) if is_json else _records_of_csv(name, text)


def _read_frame(path: str, function: str, package: str) -> Any:
    try:
        return getattr(import_module("pandas"), function)(path)
    except ImportError as error:
        raise PackageError(
            f"{path} needs pandas and {package}: pip install pandas {package}. Or save it as CSV."
        ) from error
    except Exception as error:
        raise DataError(f"{path} cannot be read: {error}. Save it as CSV.") from error


def _rows_of_csv(name: str, text: str) -> List[Tuple[int, List[str]]]:
    """Return the cells of each row that is not blank, with the line on which it begins. Where no comma separates them,
    decimal commas become points, but not in a column in which they may separate thousands."""
    csv.field_size_limit(sys.maxsize)

    def open_csv(separator: str, *, strict: bool = True) -> Any:
        return csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=strict)

    separator = max(SEPARATORS, key=lambda character: len(next(filter(None, open_csv(character, strict=False)), [])))
    reader, line, rows = open_csv(separator), 1, []
    try:
        for cells in reader:
            texts = [from_csv_cell(cell.strip()) for cell in cells]
            if any(texts):
                rows.append((line, texts))
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{name}, line {line}: not a valid row: {error}.") from error
    if separator == ",":
        return rows
    columns = zip_longest(*(texts for _, texts in rows), fillvalue="")
    unclear = {number for number, column in enumerate(columns) if _may_have_thousands(column)}
    for _, texts in rows:
        texts[:] = [text if k in unclear else decimal_point(text) or text for k, text in enumerate(texts)]
    return rows


def _may_have_thousands(column: Sequence[str]) -> bool:
    """Return whether the commas of a column may separate thousands: others are numbers with a point, or without."""
    with_comma = [text for text in column if DECIMAL_COMMA.fullmatch(text)]
    numbers = [text for text in column if cell_number(text) is not None]
    return any("." in text for text in numbers) or (bool(numbers) and all(map(THOUSANDS.fullmatch, with_comma)))


def decimal_point(text: str) -> str:
    """Return a number that has a decimal comma with a point; empty if it has none."""
    return DECIMAL_COMMA.sub(r"\1.\2", text) if DECIMAL_COMMA.fullmatch(text) else ""


def _records_of_csv(name: str, text: str) -> Iterator[Record]:
    rows = _rows_of_csv(name, text)
    if not rows:
        raise DataError(f"{name} is empty. The first line must have the names of the columns.")
    line, header = rows[0]
    columns = [text or f"column {number}" for number, text in enumerate(header, start=1)]
    _refuse_repeated_column(f"{name}, line {line}", columns)
    for number, texts in rows[1:] or [(line, [""] * len(columns))]:
        if texts[: len(columns)] == columns:
            raise DataError(f"{name}, line {number}: the line repeats the header. Remove it.")
        if len(texts) < len(columns) or any(texts[len(columns) :]):
            raise DataError(
                f"{name}, line {number}: the line has {len(texts)} cells, but the header has {len(columns)}: "
                f"{corrections.shown_cells(columns)}. Give both the same cells."
            )
        yield Record(name, f"line {number}", dict(zip(columns, texts, strict=False)))


def _refuse_repeated_column(place: str, columns: Sequence[str]) -> None:
    column, number = Counter(columns).most_common(1)[0] if columns else ("", 0)
    if number > 1:
        raise DataError(f"{place}: the column '{corrections.shown_cell(column)}' appears twice. Rename one.")


def _records_of_json(name: str, text: str) -> Iterable[Record]:
    """Read one value, or else an object on each line."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    place, load = name, partial(json.loads, object_pairs_hook=refuse_repeated_keys)
    try:
        if len(lines) < 2 or not re.fullmatch(r"\s*\{.*\}\s*", lines[0][1]):
            return list(_records_of_object(name, load(text), is_json=True))
        records: List[Record] = []
        for number, line in lines:
            place = f"{name}, line {number}"
            row = load(line)
            if not isinstance(row, dict):
                raise ValueError(f"expected an object but found {shown_value(row)}")
            records.append(Record(name, f"line {number}", _cells(row)))
        return records
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not valid JSON: {error}.") from error


def _records_of_object(name: str, content: Content, *, is_json: bool = False) -> Iterable[Record]:
    """Read an object. A list of objects is rows, also as the only entry of an object; another object is one row. Only
    Python may have a mapping from candidates to lists of scores."""
    if hasattr(content, "itertuples"):
        return _records_of_frame(name, content)
    if isinstance(content, Mapping):
        entries = {key: value.tolist() if hasattr(value, "tolist") else value for key, value in content.items()}
        (rows,) = entries.values() if len(entries) == 1 else (None,)
        if not entries or not all(isinstance(value, (list, tuple)) for value in entries.values()):
            return [Record(name, "", _cells(content))]
        if rows and all(isinstance(row, Mapping) for row in rows):
            content = rows
        elif is_json:
            raise DataError(
                f"{name}: the object has only lists ({corrections.shown_cells(map(str, entries))}), which may be "
                f"candidates, metrics or seeds. Write a row for each run: [{EXAMPLE_ROW}, ...]."
            )
        else:
            content = [{"candidate": key, "score": score} for key, scores in entries.items() for score in scores]
    if not isinstance(content, (list, tuple)) or not all(isinstance(row, Mapping) for row in content):
        raise DataError(f"{name}: expected rows such as {EXAMPLE_ROW} but got {shown_value(content)}.")
    if not content:
        return [Record(name, "", dict.fromkeys(("candidate", "split", "seed", "score"), ""))]
    return [Record(name, f"row {number}", _cells(row)) for number, row in enumerate(content, start=1)]


def _records_of_frame(name: str, frame: Any) -> Iterator[Record]:
    levels = set(frame.index.names) - {None}
    frame = frame.reset_index() if levels and levels.isdisjoint(frame.columns) else frame
    if any(isinstance(column, tuple) for column in frame.columns):
        raise DataError(f"{name}: the columns have several levels. Choose one, for example with frame['acc'].")
    columns = list(map(str, frame.columns))
    _refuse_repeated_column(name, columns)
    for number, values in enumerate(frame.itertuples(index=False, name=None), start=1):
        yield Record(name, f"row {number}", dict(zip(columns, map(cell_text, values), strict=True)))


def _cells(row: Mapping[str, Any]) -> Dict[str, str]:
    return {name: cell_text(value) for name, value in flatten(row)}


def cell_text(value: Any) -> str:
    """Return a cell as text without blanks around it; empty for None and for what pandas calls NA."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    return json.dumps(value, default=str) if isinstance(value, (dict, list)) else str(value).strip()


def cell_name(text: str) -> str:
    """Return the text of a cell that names something: empty for NaN, and one form for `0`, `0.0` and `00`."""
    if text == "nan":
        return ""
    whole, _, fraction = text.partition(".")
    return whole.lstrip("0") or "0" if whole.isdecimal() and not fraction.strip("0") else text


def cell_number(text: str) -> Optional[float]:
    """Return the finite number in a cell, None if it has none."""
    try:
        number = math.nan if "_" in text else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def cell_order(text: str) -> Tuple[float, str]:
    """Return what sorts cells by their numbers, and texts after them."""
    number = cell_number(text)
    return (math.inf if number is None else number, text)
