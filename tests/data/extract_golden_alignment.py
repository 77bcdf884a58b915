"""Writes golden_alignment.json.gz from a full file of golden numbers (its path is the argument).

Kept are the alignment losses that equida has, without entries that say the same as another; an
array that occurs again becomes a reference to its first place, `"@entry/inputs/key"`.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

KEPT = (
    "dan_tllib_", "jan_tllib_", "dann_", "cdan_thuml", "cdane_thuml", "cdan_random_thuml",
    "cdane_random_thuml", "grl_coefficient_", "safn", "hafn", "symnets_", "mcd_", "mdd_",
    "ent_afn/L36x31", "ent_afn/L8x5",
)  # fmt: skip
REPEATED = ("dann_tllib", "mcd_discrepancy_origin", "jan_tllib_linear/c", "jan_tllib_quadratic/c")


def main(path: str) -> None:
    entries = {entry["name"]: entry for entry in json.loads(Path(path).read_text())}
    seen: dict[str, str] = {}
    kept: dict[str, dict[str, Any]] = {}
    for name, entry in entries.items():
        if name.startswith(KEPT) and not name.startswith(REPEATED):
            inputs = {}
            for key, value in entry["inputs"].items():
                if isinstance(value, str):
                    value = entries[value[1:]]["inputs"][key]
                place = f"@{name}/inputs/{key}"
                first = seen.setdefault(json.dumps(value), place)
                inputs[key] = value if first == place else first
            kept[name] = {
                "origin": entry["origin"],
                "inputs": inputs,
                "params": entry["params"],
                "value": entry["value"],
                "grad": entry["grad"],
            }
    target = Path(__file__).with_name("golden_alignment.json.gz")
    text = json.dumps(kept, separators=(",", ":")).encode()
    target.write_bytes(gzip.compress(text, 9, mtime=0))
    print(f"{target.name}: {len(kept)} entries, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
