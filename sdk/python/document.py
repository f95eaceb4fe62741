"""Writes the OpenAPI document as the generator understands it, and its version: document.py FROM INTO VERSION.

JSON Schema has `true` for any value, which the generator refuses; `{}` means the same. It reads a choice of constants
that may be null as the first constant only; an `enum` means the same, and becomes a class.
"""

import json
import sys
from pathlib import Path
from typing import Any


def constants(node: dict[str, Any]) -> list[str]:
    """The texts of a choice of constants; none if it is anything else."""
    choices = node.get("oneOf", [])
    texts = [choice["const"] for choice in choices if "const" in choice]
    return texts if len(texts) == len(choices) else []


def understood(node: Any) -> Any:
    """The same document in the words of the generator."""
    if isinstance(node, list):
        return [understood(value) for value in node]
    if not isinstance(node, dict):
        return node
    if texts := constants(node):
        rest = {name: value for name, value in node.items() if name != "oneOf"}
        return rest | {"type": "string", "enum": texts}
    schemas = ("schema", "items")
    return {
        name: {} if name in schemas and value is True else understood(value)
        for name, value in node.items()
    }


source, target, version = (Path(argument) for argument in sys.argv[1:])
document = json.loads(source.read_text())
target.write_text(json.dumps(understood(document)))
version.write_text(document["info"]["version"] + "\n")
