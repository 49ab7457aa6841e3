# Copied by "npm run generate" from scripts/generate/runtime/python/build_backend.py; do not edit.
"""Builds the wheel and the source distribution, with only the standard library (PEP 517)."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

HERE = Path(__file__).parent
NAME = "agent_gateway_client"
VERSION = "0.2.0"
METADATA = f"""Metadata-Version: 2.1
Name: agent-gateway-client
Version: {VERSION}
Summary: Calls an agent gateway: REST, JSON-RPC, WebSocket and webhooks.
License: MIT
Requires-Python: >=3.9
Description-Content-Type: text/markdown

"""
WHEEL = "Wheel-Version: 1.0\nGenerator: build_backend\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# The oldest time that a zip can hold: the same sources give the same bytes.
TIME = (1980, 1, 1, 0, 0, 0)

Settings = Optional[Dict[str, Any]]


def build_wheel(wheel_directory: str, config_settings: Settings = None, metadata_directory: Optional[str] = None) -> str:
    files: List[Tuple[str, bytes]] = [
        (path.relative_to(HERE / "src").as_posix(), path.read_bytes())
        for path in sorted((HERE / "src").rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    ]
    info = f"{NAME}-{VERSION}.dist-info"
    readme = (HERE / "README.md").read_bytes()
    files += [(f"{info}/METADATA", METADATA.encode() + readme), (f"{info}/WHEEL", WHEEL.encode())]
    record = "".join(f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in files)
    files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
    name = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files:
            wheel.writestr(zipfile.ZipInfo(path, TIME), content, zipfile.ZIP_DEFLATED)
    return name


def build_sdist(sdist_directory: str, config_settings: Settings = None) -> str:
    base = f"{NAME}-{VERSION}"
    with tarfile.open(Path(sdist_directory, f"{base}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        contents = {"PKG-INFO": METADATA.encode() + (HERE / "README.md").read_bytes()}
        for path in sorted(HERE.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                contents[path.relative_to(HERE).as_posix()] = path.read_bytes()
        for name, content in contents.items():
            member = tarfile.TarInfo(f"{base}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return f"{base}.tar.gz"


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
