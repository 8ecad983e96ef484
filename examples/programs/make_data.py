"""Writes the data of these examples from the sample corpus: one sentence in each line, with the polarity of its first
aspect as the label. The same corpus gives the same bytes.

    python examples/programs/make_data.py
"""

import json
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent.parent / "data" / "sample"
WORDS_BEHIND = 6


def main(directory: Path = HERE / "data") -> None:
    """Write `train.jsonl` and `test.jsonl`."""
    for part in ("train", "test"):
        with (directory / f"{part}.jsonl").open("w", encoding="utf-8") as out:
            for sentence in ElementTree.parse(SAMPLE / f"restaurants_{part}.xml").getroot():
                aspect = sentence.findall(".//aspectTerm")[0]
                text, end = sentence.findtext("text") or "", int(aspect.get("to", 0))
                words = text[:end].split() + text[end:].split()[:WORDS_BEHIND]
                row = {"id": sentence.get("id"), "text": " ".join(words), "label": aspect.get("polarity")}
                out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
