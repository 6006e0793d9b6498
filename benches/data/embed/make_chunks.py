"""Cuts chunks.json out of a folder of Markdown.

Usage: make_chunks.py FOLDER

Files come in the order of their paths. Each is cut before every heading of
level two or three; a chunk is cut off after 2,000 characters. The first 1,000
chunks that are not empty are kept.
"""

import json
import pathlib
import re
import sys

COUNT = 1000
MOST_CHARACTERS = 2000


def chunks(folder):
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        # Front matter is metadata, not text.
        text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
        for part in re.split(r"(?m)^(?=#{2,3} )", text):
            if part.strip():
                yield part.strip()[:MOST_CHARACTERS]


def main():
    here = pathlib.Path(__file__).parent
    kept = [chunk for _, chunk in zip(range(COUNT), chunks(pathlib.Path(sys.argv[1])))]
    assert len(kept) == COUNT, f"only {len(kept)} chunks"
    text = json.dumps(kept, ensure_ascii=False, indent=0)
    (here / "chunks.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
