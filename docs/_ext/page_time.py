"""Pages that are run when the site is built take no longer than ``page_seconds``.

A page that took longer is a warning, which fails a build with ``-W``. Times are those of the run
whose results the page shows, which may be an earlier one from the cache.
"""

from __future__ import annotations

from typing import Any

from sphinx.util import logging

logger = logging.getLogger(__name__)


def times(env: Any) -> dict[str, float]:
    """How long each page took, in seconds."""
    data = getattr(env, "nb_metadata", {})
    runs = {page: found.get("exec_data") or {} for page, found in data.items()}
    return {page: run["runtime"] for page, run in runs.items() if run.get("runtime")}


def on_updated(app: Any, env: Any) -> None:
    taken = times(env)
    for page, seconds in sorted(taken.items()):
        if seconds > app.config.page_seconds:
            logger.warning(
                "%s took %.1f s to run; at most %g s", page, seconds, app.config.page_seconds
            )
    if taken:
        longest = max(taken, key=lambda page: taken[page])
        print(f"notebooks: {len(taken)}, the longest {longest} ({taken[longest]:.1f} s)")


def setup(app: Any) -> dict[str, Any]:
    app.add_config_value("page_seconds", 10, "")
    app.connect("env-updated", on_updated)
    return {"version": "1", "parallel_read_safe": True}
