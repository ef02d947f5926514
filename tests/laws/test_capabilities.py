"""Capabilities: each folder declares its own, any that nothing needs can be switched off, and what is left works."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from threadline.app import catalogue, open_dispatcher, open_engine
from threadline.engine.engine import Engine
from threadline.engine.folding.capabilities import chosen, shipped
from threadline.engine.maintenance.rebuild import refold_everybody
from threadline.kernel.capability import Capability
from threadline.kernel.errors import InvalidDefinition, InvalidSetting, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.store import Store, scan_pages
from threadline.settings import Settings
from threadline.surfaces.console.screens import screens_of
from threadline.surfaces.console.screens.person import TABS
from threadline.surfaces.http.addresses.sign_in import COOKIE
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.mcp.tools import TOOLS
from threadline.surfaces.operation_calls import shown
from threadline.surfaces.python.embedded import Threadline

FOLDERS = {
    path.parent.name: path.parent.parent.name for path in Path("src/threadline/capabilities").glob("*/*/__init__.py")
}
"""The folder of each capability, and its wing."""
OPTIONAL = sorted(capability.name for capability in shipped() if not capability.is_core)


def closed(names: set[str]) -> frozenset[str]:
    """These, and everything that needs one of them."""
    more = {capability.name for capability in shipped() if capability.needs & names} | names
    return frozenset(more) if more == names else closed(more)


SETS = sorted({closed({name}) for name in OPTIONAL}, key=sorted)


def off(names: frozenset[str]) -> str:
    return ", ".join(f"-{name}" for name in sorted(names))


def test_every_folder_declares_the_capability_of_its_name() -> None:
    assert {capability.name: capability.package for capability in shipped()} == {
        name: f"threadline.capabilities.{wing}.{name}" for name, wing in FOLDERS.items()
    }


def test_what_is_core_needs_nothing_that_can_be_switched_off() -> None:
    core = [capability for capability in shipped() if capability.is_core]
    assert [capability.name for capability in core if capability.needs & set(OPTIONAL)] == []
    assert {name for capability in shipped() for name in capability.needs} <= set(FOLDERS)


@pytest.mark.slow
@pytest.mark.parametrize("without", SETS, ids=lambda names: "+".join(sorted(names))[:60])
def test_product_without_a_capability_starts_records_reads_and_shows_every_screen(without: frozenset[str]) -> None:
    try_without(without)


def test_product_without_a_drawn_set_of_capabilities_works(seed: int) -> None:
    draw = random.Random(seed)
    try_without(closed(set(draw.sample(OPTIONAL, draw.randint(2, len(OPTIONAL) - 1)))))


def test_product_without_everything_that_can_be_switched_off_works() -> None:
    try_without(frozenset(OPTIONAL))


def try_without(without: frozenset[str]) -> None:
    settings = Settings(capabilities=off(without), access_log=False)
    engine = open_engine("memory:", settings)
    try:
        assert {capability.name for capability in engine.catalogue.capabilities.off} == without
        assert nothing_of(engine, without) == []
        shop = Threadline(engine)
        shop.identify("ada", {"first_name": "Ada", "email": "ada@example.com"})
        event = {"type": "purchase_completed", "identifiers": {"user_id": "ada"}, "properties": {"total": 12.5}}
        assert [receipt.status for receipt in shop.record([{**event, "key": "1"}])] == ["accepted"]
        assert shop.person("ada").views.keys() <= {each.name for each in engine.catalogue.projections}
        open_dispatcher(engine, settings).run_once()
        result = refold_everybody(engine.store, engine.catalogue, write=False)
        assert (result.people, result.differing, result.rows_amiss) == (1, (), ())
        assert faults(engine) == []
        tools = [choices for tool in TOOLS if (choices := tool.all_calls(shown(engine.catalogue.operations, "http")))]
        assert len(tools) > 5
        # What was stored of a person is shown and erased, whatever is in force.
        assert shop.people.export("ada")
        shop.people.erase("ada")
        with pytest.raises(NotFound):
            shop.person("ada")
    finally:
        engine.close()


def nothing_of(engine: Engine, without: frozenset[str]) -> list[object]:
    """What acts in an engine although its capability is switched off."""
    packages = tuple(f"{capability.package}." for capability in shipped() if capability.name in without)
    made = engine.catalogue
    acting = {
        **{operation.name: operation.run for operation in made.operations},
        **{policy.name: policy.react for policy in made.policies},
        **{projection.name: projection.fold for projection in made.projections},
        **{route.name: route.answer for route in made.public_routes},
        **{kind.name: kind.step for kind in made.job_kinds.values()},
    }
    return [name for name, function in acting.items() if function.__module__.startswith(packages)]


def faults(engine: Engine) -> list[str]:
    """The screens, their parts and the other pages that do not answer as they should."""
    client = TestClient(Application(engine, Settings(access_log=False)), follow_redirects=False)
    engine.accounts.create("default", "root", "password of root", "admin")
    client.cookies.set(COOKIE, engine.accounts.sign_in("root", "password of root")[1])
    lists = [screen for screen in screens_of(engine.catalogue) if "{" not in screen.path]
    paths = [screen.path for screen in lists] + [f"/people/ada?tab={tab}" for tab, _ in TABS]
    answers = {path: client.get(path) for path in [*paths, "/openapi.json", "/docs", "/readyz"]}
    token = engine.credentials.create("default", "token", "all", ["admin", "personal"])[1]
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    asked = {"/graphql": {"query": "{ __schema { queryType { fields { name } } } }"}}
    asked["/mcp"] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answers |= {path: client.post(path, json=body, headers=headers) for path, body in asked.items()}
    listed = {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {}}
    for resource in client.post("/mcp", json=listed, headers=headers).json()["result"]["resources"]:
        read = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": resource["uri"]}}
        answers[resource["uri"]] = client.post("/mcp", json=read, headers=headers)
        assert "contents" in answers[resource["uri"]].json()["result"], resource
    bad = [f"{path}: {answer.status_code}" for path, answer in answers.items() if answer.status_code != 200]
    bad += [f"{path}: speaks of what is off" for path, answer in answers.items() if "switches off" in answer.text]
    parts = [f"{screen.path}?part={part}" for screen in lists for part in screen.parts]
    return bad + [path for path in parts if client.get(path).status_code >= 500]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("-leaderbords", "there is none named 'leaderbords'; did you mean 'leaderboards'?"),
        ("-people", "'people' is what Threadline itself relies on; it is always on"),
        ("-mail", "'broadcasts' needs 'mail', which is switched off"),
        ("shop.nowhere", "'shop.nowhere' cannot be imported: No module named 'shop'"),
        ("json", "json declares 0 capabilities; expected one"),
    ],
)
def test_setting_that_cannot_be_is_refused_with_what_to_do(setting: str, message: str) -> None:
    with pytest.raises(InvalidSetting) as caught:
        chosen(setting)
    assert str(caught.value) == f"capabilities: {message}"


def test_two_capabilities_of_one_name_are_refused() -> None:
    with pytest.raises(
        InvalidSetting, match=r"two are named 'points', of threadline\.capabilities\.profile\.points and of mine"
    ):
        chosen("", [Capability("points", "mine")])


def test_section_field_and_operation_of_what_is_off_say_so(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(
        "segments: {keen: {when: {field: points.balance, greater_than: 10}}}\nleaderboards: {most: {by: points}}\n"
    )
    with pytest.raises(InvalidDefinition) as caught:
        catalogue([file], chosen("-points, -leaderboards"))
    assert "'points' is of the capability 'points', which the setting `capabilities` switches off" in str(caught.value)
    assert f"{file}:2: top level: 'leaderboards' is of the capability 'leaderboards'" in str(caught.value)
    with pytest.raises(NotFound, match="`points_of` is of the capability 'points'"):
        catalogue(capabilities=chosen("-points")).operation("points_of")


def test_rule_about_what_a_switched_off_capability_reads_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text("retention: {lines: {types: [points_spent], days: 90}}\n")
    assert catalogue([file]).job_kinds["retention"].standing
    with pytest.raises(InvalidDefinition, match="of type 'points_spent' cannot be erased by age: 'points'"):
        catalogue([file], chosen("-points, -leaderboards"))


POINTS = "points: {tables: [{version: 2, from: 2020-01-01T00:00:00Z, earn: {purchase_completed: 5}}]}\n"


def test_what_was_derived_comes_back_with_its_capability(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    store = tmp_path / "shop.db"

    def opened(capabilities: str, definitions: str) -> Threadline:
        file.write_text(definitions)
        return Threadline(open_engine(store, Settings(capabilities=capabilities), definitions=file))

    def buy(shop: Threadline, key: str) -> None:
        shop.record([{"type": "purchase_completed", "key": key, "identifiers": {"user_id": "ada"}}])

    with opened("", POINTS) as shop:
        buy(shop, "1")
        before = shop.points.of("ada")
    with opened("-points", "") as shop:
        buy(shop, "2")
        said = {"points": 1_000, "rule": "purchase"}
        ada = (Identifier("user_id", "ada"),)
        forged = Event(
            type="points_earned", identifiers=ada, occurred_at=1, key="3", properties=said, source_type="external"
        )
        assert shop.engine.recorder.record([forged])[0].status == "accepted"
        assert "points" not in shop.person("ada").views
    with opened("", POINTS) as shop:
        after = shop.points.of("ada")
        # What was earned is there; what came meanwhile earned nothing.
        assert (after.balance, after.days) == (before.balance, before.days)


def test_erasure_reaches_what_a_capability_has_stored_that_is_switched_off(tmp_path: Path) -> None:
    file, store = tmp_path / "threadline.yaml", tmp_path / "shop.db"
    file.write_text("leaderboards: {spenders: {score: features.monetary_total}}\n")
    with Threadline(open_engine(store, Settings(), definitions=file)) as shop:
        for person in ("ada", "bob"):
            purchase = {"type": "purchase_completed", "key": person, "identifiers": {"user_id": person}}
            sent = {"type": "mail_sent", "key": f"mail {person}", "identifiers": {"user_id": person}}
            said = {"message": f"message {person}", "template": "welcome", "to": f"{person}@example.com"}
            shop.record([{**purchase, "properties": {"total": 12, "currency": "EUR"}}])
            assert shop.record([{**sent, "properties": said}])[0].status == "accepted"
        before = rows_by_table(shop.engine.store)
        assert before["board"] == 2
        ada = shop.person("ada").id
    settings = Settings(capabilities=off(frozenset(OPTIONAL)))
    file.write_text("")
    with Threadline(open_engine(store, settings, definitions=file)) as shop:
        shop.people.erase("ada")
        dispatcher = open_dispatcher(shop.engine, settings)
        while dispatcher.run_once():
            pass
        assert rows_by_table(shop.engine.store)["board"] == 1
        left = [
            item.key for table in shop.engine.catalogue.tables for item in scan_pages(shop.engine.store, table.name)
        ]
        assert [key for key in left if key.table != "erasure_ids" and ada in f"{key.partition} {key.sort}"] == []


def rows_by_table(store: Store) -> Counter[str]:
    return Counter(item.key.table for item in scan_pages(store, "board"))


INSTALLED = """
import json
from threadline.app import operations
from threadline.engine.folding.capabilities import chosen, installed
from threadline.surfaces.python.methods import Operations
on = {capability.name: capability.package for capability in chosen().on}
off = [capability.name for capability in chosen("-greetings").off]
print(json.dumps([on.get("greetings"), off, "greetings_list" in {each.name for each in operations()},
                  callable(Operations().greetings.list)]))
"""

GREETINGS = '''"""Greetings: for the test of what is installed."""
import msgspec
from threadline.kernel.capability import Capability
from threadline.kernel.operation import Group, NoParams, Operation

GREETINGS = Capability("greetings", "greetings")


class Greetings(msgspec.Struct, kw_only=True):
    """Words."""

    count: int


LIST = Operation(
    name="greetings_list", group=Group("greetings", "Words."), summary="Count the words.", params=NoParams,
    result=Greetings, run=lambda context, params: Greetings(count=1), method="GET", path="/v1/greetings",
)
'''


def a_distribution(folder: Path, module: str) -> None:
    """What an installation of a distribution leaves: a module, and an entry point that names it."""
    (folder / "greetings.py").write_text(module)
    info = folder / "greetings-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greetings\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[threadline.capabilities]\ngreetings = greetings:GREETINGS\n")


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    code = f"import sys; sys.path.insert(0, {str(folder)!r})\n{program}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


def test_what_a_distribution_installs_is_in_force_unless_it_is_switched_off(tmp_path: Path) -> None:
    a_distribution(tmp_path, GREETINGS)
    done = run(tmp_path, INSTALLED)
    assert json.loads(done.stdout) == ["greetings", ["greetings"], True, True], done.stderr


def test_what_is_installed_and_cannot_be_loaded_is_named_and_can_be_switched_off(tmp_path: Path) -> None:
    a_distribution(tmp_path, "raise RuntimeError('half written')")
    load = "from threadline.engine.folding.capabilities import chosen\n"
    done = run(tmp_path, f"{load}chosen()")
    told = "capabilities: 'greetings' of the distribution greetings cannot be loaded: half written"
    assert told in done.stderr
    assert run(tmp_path, f"{load}print(len(chosen('-greetings').on) > 20)").stdout == "True\n"
