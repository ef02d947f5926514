"""``threadline jobs watch``: how far a job has come, as a bar, until it has ended."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from threadline.capabilities.foundation.jobs.operations import JobParams, JobView, has_ended, show
from threadline.surfaces.cli.printing import answer, terminal, visible
from threadline.surfaces.cli.session import Session, json_option, store_option, url_option, workspace_option

if TYPE_CHECKING:
    from rich.progress import TaskID

LOOK_SECONDS = 0.5


@click.command("watch")
@click.argument("id")
@click.option("--once", is_flag=True, help="Show how far it is now, and do not wait.")
@json_option
@store_option
@workspace_option
@url_option
@click.pass_obj
def watch(session: Session, /, id: str, once: bool, as_json: bool) -> None:
    """Show how far a job has come, as a bar, until it has ended. It only looks: a server or `threadline work` works.

    ID: The id of a job. It exits with 1 if the job has failed or was cancelled.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[counts]}"))
    with Progress(*columns, TimeElapsedColumn(), console=terminal(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, counts="")
        while True:
            job: JobView = session.run(show, JobParams(id=id))
            _show(bar, task, job)
            if once or has_ended(job):
                break
            time.sleep(LOOK_SECONDS)
    answer(job, session.console, as_json=as_json)
    if job.state in ("failed", "cancelled"):
        raise click.exceptions.Exit(1)


def _show(bar: Progress, task: TaskID, job: JobView) -> None:
    counts = "  ".join(f"{visible(name)} {count:,}" for name, count in sorted(job.counts.items()))
    bar.update(
        task,
        description=f"{job.state} {visible(job.problem)}".strip(),
        total=job.counts.get("total"),
        completed=job.counts.get("done", 0),
        counts=counts,
    )
