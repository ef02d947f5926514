"""Runs the snippets of one page in order, in one folder, as a reader would who types them all."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from tests import bare, forked
from tests.docs.markdown import Snippet
from tests.servers import dynamodb, postgres
from tests.servers.ports import free_port

PORT_IN_DOCS = "8787"
"""The port that the pages name; a free one takes its place, so that runs side by side do not meet."""
POSTGRES_IN_DOCS = "postgresql://localhost/threadline"
"""The database that the pages name; an empty one of a real server takes its place."""
DYNAMODB_IN_DOCS = "dynamodb://people?region=eu-central-1&endpoint=http://localhost:8000"
"""The table that the pages name; one of a stand-in takes its place."""
WITHOUT_EXTRAS = {"docs/start.md"}
"""Pages whose readers have installed the package alone."""
COMMAND_SECONDS_MAX = 60
START_SECONDS_MAX = 60

_LOOSE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_SAVED = re.compile(r"# (?P<yaml>[\w-]+\.yaml)\n|<!-- (?P<html>[\w-]+\.html) -->\n")
_COMMAND = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)


class Session:
    """One reader at work on one page: Python names stay from snippet to snippet, servers run until the end."""

    def __init__(self, page: str, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.servers: list[subprocess.Popen[bytes]] = []
        self.port = str(free_port())
        binaries = Path(sys.executable).parent
        self.environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "120"}
        if page not in WITHOUT_EXTRAS:
            # There the command is started as its readers do; on all other pages half the time would go into starts.
            self.environment["PATH"] = f"{Path(forked.threadline()).parent}:{self.environment['PATH']}"
        else:
            python = bare.environment(folder.with_name(f"{folder.name}-bare"), bare.of_package())
            self.environment["PATH"] = f"{python.parent}:{self.environment['PATH']}"

    def run(self, snippet: Snippet) -> None:
        """Run one snippet; raises whatever is wrong with it. Of data formats it checks that they can be read."""
        code = snippet.code.replace(PORT_IN_DOCS, self.port)
        if snippet.not_run:
            return
        if POSTGRES_IN_DOCS in code:
            url = postgres.server("18").url(postgres.schema_of(self.folder))
            code = code.replace(POSTGRES_IN_DOCS, shlex.quote(url) if snippet.language == "console" else url)
        if DYNAMODB_IN_DOCS in code:
            code = code.replace(DYNAMODB_IN_DOCS, dynamodb.ministack().url(self.folder))
        if snippet.language == "python":
            self._python(code, snippet.line)
        elif snippet.language == "console":
            self._console(code, snippet.line)
        elif snippet.language == "json":
            json.loads(code)
        elif snippet.language == "yaml":
            yaml.safe_load(code)
        # The reader saves what names its file in its first line.
        if file := _SAVED.match(code):
            (self.folder / (file["yaml"] or file["html"])).write_text(code)

    def close(self) -> None:
        """End the servers that the page started, and no other process."""
        for server in self.servers:
            server.terminate()
            server.wait(timeout=START_SECONDS_MAX)

    def _python(self, code: str, line: int) -> None:
        if re.search(r"^>>> ", code, re.MULTILINE):
            self._doctest(code, line)
            return
        # The blank lines in front make a traceback name the page's own line.
        exec(compile("\n" * (line - 1) + code, self.page, "exec", dont_inherit=True), self.names)

    def _doctest(self, code: str, line: int) -> None:
        test = doctest.DocTestParser().get_doctest(code, self.names, self.page, self.page, line - 1)
        said: list[str] = []
        doctest.DocTestRunner(optionflags=_LOOSE).run(test, out=said.append, clear_globs=False)
        # The parser hands the test a copy of the names; what it defined must last until the next snippet.
        self.names.update(test.globs)
        assert not said, "".join(said)

    def _console(self, code: str, line: int) -> None:
        found = list(_COMMAND.finditer(code))
        assert found, f"{self.page}:{line}: a console snippet needs a line that starts with '$ '"
        for match in found:
            command, wanted = match["command"], match["output"]
            if command.endswith(" &"):
                self._serve(command.removesuffix(" &"))
                continue
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=COMMAND_SECONDS_MAX,
                check=False,
            )
            assert done.returncode == 0, f"{self.page}:{line}: $ {command}\n{done.stdout}{done.stderr}"
            alike = not wanted.strip() or doctest.OutputChecker().check_output(wanted, done.stdout, _LOOSE)
            assert alike, f"{self.page}:{line}: $ {command}\nwanted:\n{wanted}\ngot:\n{done.stdout}"

    def _serve(self, command: str) -> None:
        with (self.folder / "server.log").open("ab") as log:
            words = ["bash", "-c", f"exec {command}"]
            server = subprocess.Popen(words, cwd=self.folder, env=self.environment, stdout=log, stderr=log)
        self.servers.append(server)
        patience = time.monotonic() + START_SECONDS_MAX
        while server.poll() is None and time.monotonic() < patience:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", int(self.port))) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError(f"$ {command} &\ndid not listen:\n{(self.folder / 'server.log').read_text()}")
