"""A hook of hatch: copies plotly.js out of Plotly's package while voicepipe is built or installed from a checkout. The
package is needed for the build alone: it would bring 65 MB to each host for a script of 5 MB."""

from importlib.util import find_spec
from pathlib import Path
from shutil import copyfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCRIPT = Path("voicepipe/web/vendor/plotly.min.js")


class PlotlyScript(BuildHookInterface[Any]):
    """Puts the script where the pages look for it; git ignores it there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """As hatch calls it before each build; `version` is "standard" or "editable"."""
        spec = find_spec("plotly")
        if spec is None or spec.origin is None:
            raise RuntimeError("plotly is not in the build's environment: [build-system] in pyproject.toml names it")
        target = Path(self.root) / SCRIPT
        target.parent.mkdir(exist_ok=True)
        copyfile(Path(spec.origin).parent / "package_data" / "plotly.min.js", target)
        build_data["artifacts"].append(SCRIPT.as_posix())
