"""What a wheel says of its own contents: the licences, and a bill of materials (CycloneDX)."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.wheels.archive import Files, dist_info

# nanobind's package has robin-map's headers, each of which begins with this licence.
_FACTS = """
import importlib.metadata as m, json, nanobind, pathlib
root = pathlib.Path(nanobind.__file__).parent
files = m.files("nanobind")
(text,) = (f.read_text() for f in files if f.match("licenses/LICENSE"))
tsl = root / "ext/robin_map/include/tsl"
print(json.dumps([m.version("nanobind"), text, (tsl / "robin_map.h").read_text(),
                  (tsl / "robin_growth_policy.h").read_text()]))
"""
_GCC = """\
libstdc++, the C++ standard library of GCC {version}, is linked into taeda/_C*.so.

Copyright (C) the Free Software Foundation, Inc.

It is free software under the GNU General Public License, version 3 or later, with the GCC Runtime
Library Exception, version 3.1, which permits to convey a work that it is combined with by an
eligible compilation process, as here, under terms of one's own choice. Sources and both texts:
https://gcc.gnu.org, https://www.gnu.org/licenses/gcc-exception-3.1.html.
"""


@dataclass(frozen=True)
class Component:
    """A part of the module that comes from elsewhere."""

    name: str
    version: str
    licence: str  # an SPDX expression
    purl: str
    text: str  # the licence's


def components(tools: Path, compiler: str) -> list[Component]:
    """What is compiled or linked into the module beside taeda's own sources."""
    asked = subprocess.run([tools, "-c", _FACTS], capture_output=True, text=True, check=True)
    version, licence, map_header, policy_header = json.loads(asked.stdout)
    numbers = re.findall(r"TSL_RH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", policy_header)
    (comment,) = re.findall(r"\A/\*\*(.*?)\*/", map_header, re.DOTALL)
    robin = re.sub(r"(?m)^ \* ?", "", comment).strip() + "\n"
    gcc = subprocess.run([compiler, "-dumpfullversion"], capture_output=True, text=True, check=True)
    release = gcc.stdout.strip()
    return [
        Component("nanobind", version, "BSD-3-Clause", f"pkg:pypi/nanobind@{version}", licence),
        Component(
            "robin-map",
            ".".join(numbers),
            "MIT",
            f"pkg:github/Tessil/robin-map@v{'.'.join(numbers)}",
            robin,
        ),
        Component(
            "libstdc++",
            release,
            "GPL-3.0-or-later WITH GCC-exception-3.1",
            f"pkg:generic/gcc@{release}",
            _GCC.format(version=release),
        ),
    ]


def bill(metadata: dict[str, str], parts: list[Component], arch: str) -> bytes:
    """The bill of materials, the same for the same contents."""

    def entry(name: str, version: str, licence: str, purl: str, kind: str) -> dict[str, Any]:
        return {
            "type": kind,
            "bom-ref": purl,
            "name": name,
            "version": version,
            "licenses": [{"expression": licence}],
            "purl": purl,
        }

    name, version = metadata["Name"], metadata["Version"]
    purl = f"pkg:pypi/{name}@{version}"
    inside = [entry(p.name, p.version, p.licence, p.purl, "library") for p in parts]
    body: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": entry(name, version, metadata["License-Expression"], purl, "library"),
            "properties": [{"name": "taeda:machine", "value": arch}],
        },
        "components": inside,
        "dependencies": [
            {"ref": purl, "dependsOn": [p.purl for p in parts]},
            *({"ref": p.purl} for p in parts),
        ],
    }
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return json.dumps({**body, "serialNumber": f"urn:uuid:{number}"}, indent=1).encode() + b"\n"


def headers(metadata: str) -> dict[str, str]:
    """The one-line fields of a METADATA file (the last of those that come several times)."""
    return dict(re.findall(r"(?m)^([A-Z][\w-]+): (.*)$", metadata.split("\n\n", 1)[0]))


def describe(files: Files, tools: Path, compiler: str, arch: str) -> None:
    """Add the parts' licences and the bill of materials to a wheel."""
    folder = dist_info(files)
    parts = components(tools, compiler)
    head, body = files[f"{folder}/METADATA"].decode().split("\n\n", 1)
    own = headers(head)["License-Expression"]
    expression = " AND ".join(dict.fromkeys([*own.split(" AND "), *(p.licence for p in parts)]))
    head = head.replace(f"License-Expression: {own}", f"License-Expression: {expression}")
    for part in parts:
        name = f"third_party/{part.name}.txt"
        files[f"{folder}/licenses/{name}"] = part.text.encode()
        head += f"\nLicense-File: {name}"
    files[f"{folder}/METADATA"] = f"{head}\n\n{body}".encode()
    files[f"{folder}/sboms/taeda.cdx.json"] = bill(
        headers(head) | {"License-Expression": own}, parts, arch
    )
