# SPDX-FileCopyrightText: 2026 The radical-haystack authors
#
# SPDX-License-Identifier: Apache-2.0
"""The command line. Each command calls one function of the package and prints what it returns."""

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from radical_haystack.cli import app as browser
from radical_haystack.cli import audit, calibrate, cost, data, demo, evaluate, explain, reproduce, search, shared

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Rerank images with a listwise vision-language model that prunes its visual tokens (RaDiCal)."""
    if show_version:
        print(f"radical-haystack {_version()}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def _version() -> str:
    try:
        return version("radical-haystack")
    except PackageNotFoundError:  # run from a folder of the source
        return "(not installed)"


app.command()(demo.demo)
app.command()(browser.app)
app.command()(search.index)
app.command()(search.search)
app.command(cls=shared.ManyValues)(explain.explain)
app.command()(calibrate.calibrate)
app.command()(cost.cost)
app.command()(data.data)
app.command(cls=shared.ManyValues)(evaluate.evaluate)
app.command(cls=shared.ManyValues)(audit.audit)
app.command(cls=shared.ManyValues)(reproduce.reproduce)


def main() -> None:
    """Run the command line: a mistake of the user gives one line on stderr and exit code 2, never a traceback."""
    shared.hide_needless_warnings()
    try:
        code = app(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # what the command line itself refuses
        if usage is None and not isinstance(error, ImportError | OSError | ValueError):
            raise
        text = (usage() if usage else str(error)) or type(error).__name__
        if "unexpected extra argument" in text and sys.argv[1] in ("search", "explain"):
            text += "; put a query of several words in quotes."
        print("error:", " ".join(text.split()), file=sys.stderr)
        sys.exit(2)
    sys.exit(code or 0)
