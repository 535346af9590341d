"""The list of a checkpoint's files with their checksums, itself protected against every changed byte."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

FORMAT = 1
NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """What is known of a checkpoint before its state is read."""

    format: int
    step: int
    config: dict[str, Any]  # of the run that wrote it
    logs: dict[str, int]  # how long the run's metrics, episodes and events were
    versions: dict[str, str]  # of the libraries whose change can change numbers
    files: dict[str, dict[str, Any]]  # size and sha256 of each

    def to_bytes(self) -> bytes:
        return _render(asdict(self))

    @classmethod
    def from_bytes(cls, content: bytes) -> "Manifest":
        """Raises ValueError when a byte is not as it was written, and NewerFormatError when it is too new to read."""
        document = json.loads(content)
        if not isinstance(document, dict) or not isinstance(document.get("body"), dict):
            raise ValueError("not a manifest")
        body = document["body"]
        if _render(body) != content:
            raise ValueError("its checksum is wrong")
        if not isinstance(body.get("format"), int) or body["format"] > FORMAT:
            raise NewerFormatError(body.get("format"))
        try:
            return cls(**body)
        except TypeError as error:
            raise ValueError("not a manifest") from error


class NewerFormatError(Exception):
    """A checkpoint of a format that this version does not know."""


def describe(content: bytes) -> dict[str, Any]:
    """A file's size and checksum."""
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def _render(body: dict[str, Any]) -> bytes:
    text = json.dumps(body, sort_keys=True)
    document = {"body": json.loads(text), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    return (json.dumps(document, sort_keys=True, indent=1) + "\n").encode()
