"""Writes `gold.jsonl`: a document is a sentence of the bundled sample, and its items are the targets to classify."""

import json
from xml.etree import ElementTree

with open("gold.jsonl", "w") as out:
    for sentence in ElementTree.parse("data/sample/restaurants_test.xml").iter("sentence"):
        items = [
            {
                "text": sentence.findtext("text"),
                "target": term.get("term"),
                "from": int(term.get("from")),
                "to": int(term.get("to")),
                "label": term.get("polarity"),
            }
            for term in sentence.iter("aspectTerm")
            if term.get("polarity") != "conflict"
        ]
        if items:
            out.write(json.dumps({"id": sentence.get("id"), "items": items}) + "\n")
