"""Settings: one typed value, from what is given, the environment, `threadline.yaml` and defaults, in this order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.app import open_engine
from threadline.kernel.errors import InvalidDefinition, InvalidSetting
from threadline.settings import Settings, cache_lifetimes, definitions_file, describe, load, without_secret


def test_defaults_hold_where_nothing_is_said() -> None:
    assert load({}, {}) == Settings()


def test_the_environment_is_read_and_typed() -> None:
    found = load({}, {"THREADLINE_PORT": "9000", "THREADLINE_ACCESS_LOG": "false", "HOME": "/root"})
    assert (found.port, found.access_log) == (9_000, False)


def test_what_is_given_beats_the_environment_and_the_file(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text("settings:\n  port: 1\n  host: a\n  workspace: file\n")
    environment = {"THREADLINE_PORT": "2", "THREADLINE_HOST": "b"}
    found = load({"store": str(tmp_path / "x.db"), "port": 3}, environment)
    assert (found.port, found.host, found.workspace) == (3, "b", "file")


def test_none_given_is_nothing_given() -> None:
    assert load({"port": None}, {"THREADLINE_PORT": "2"}).port == 2


def test_a_wrong_argument_is_not_put_down_to_the_environment() -> None:
    with pytest.raises(InvalidSetting, match="workspace in an argument: "):
        load({"workspace": "team/a"}, {"THREADLINE_PORT": "2"})
    assert load({"port": 3}, {"THREADLINE_PORT": "many"}).port == 3, "what is given beats it, right or wrong"


def test_variables_of_the_test_suite_are_passed_over() -> None:
    assert load({}, {"THREADLINE_TEST_SEED": "1"}) == Settings()


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"THREADLINE_PROT": "1"}, "THREADLINE_PROT .* did you mean 'THREADLINE_PORT'"),
        ({"THREADLINE_PORT": "many"}, "THREADLINE_PORT in the environment: expected a whole number, not 'many'"),
        ({"THREADLINE_PORT": "70000"}, "THREADLINE_PORT .* a whole number <= 65535, not '70000'"),
        ({"THREADLINE_COMMIT_EVENTS_MAX": "0"}, "COMMIT_EVENTS_MAX"),
        ({"THREADLINE_ACCESS_LOG": "perhaps"}, "THREADLINE_ACCESS_LOG in the environment: write true or false"),
        ({"THREADLINE_ACCESS_LOG": "yes"}, "write true or false"),
        ({"THREADLINE_BUSY_TIMEOUT_SECONDS": "inf"}, "BUSY_TIMEOUT_SECONDS .* expected a finite number"),
        ({"THREADLINE_RETRY_SECONDS": "nan"}, "RETRY_SECONDS .* not 'nan'"),
        ({"THREADLINE_WORKSPACE": "team/a"}, "THREADLINE_WORKSPACE in the environment: .* without /"),
        ({"THREADLINE_WORKSPACE": "w" * 101}, "THREADLINE_WORKSPACE in the environment"),
        ({"THREADLINE_ZZZ": "1"}, "`threadline settings` lists all"),
    ],
)
def test_a_wrong_setting_is_named_with_what_to_do(environment: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        load({}, environment)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("settings: {prot: 1}", "did you mean 'port'"),
        ("settings: {port: '1'}", "port in `settings:` in the definitions: expected a whole number, not '1'"),
        ("settings: {tokens: 12345678}", r"tokens in .*: expected a text; put it in quotes$"),
        ("settings: 3", "must be a mapping"),
        ("settings:\n  port: 1\n  host: [", r"threadline\.yaml:3: this is not YAML: expected the node content"),
        ("features:\n\tx: 1", r"threadline\.yaml:2: this is not YAML: found character"),
        ("a: 1\n---\nb: 2", r"threadline\.yaml:2: this is not YAML: "),
        ("settings: {port: !!python/name:os.system 1}", r"threadline\.yaml:1: this is not YAML: could not determine"),
        ("settings: {port: 2026-13-45}", r"threadline\.yaml:1: this is not YAML: month must be"),
        ("[" * 5_000, r"threadline\.yaml:1: this is not YAML: "),
        ("\n\nsettings:\n- x", r"threadline\.yaml:4: `settings:` must be a mapping, not list"),
        ("settings: " + "[" * 10_000, r"threadline\.yaml:1: this is not YAML: "),
        (
            "settings:\n  port: 1\n  port: 2",
            r"threadline\.yaml:3: 'port' is already set at .*threadline\.yaml:2; keep one",
        ),
        ("settings: {port: 1}\nsettings: {host: a}", r"yaml:2: 'settings' is already set at .*threadline\.yaml:1"),
        ("settings: {store: x}", "set it in the environment"),
    ],
)
def test_a_wrong_file_is_named_with_what_to_do(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text(text)
    with pytest.raises(InvalidSetting, match=message):
        load({"store": str(tmp_path / "x.db")}, {})


def test_definitions_that_are_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="there is no"):
        definitions_file(Settings(definitions=str(tmp_path / "none")))


def test_what_looks_like_definitions_is_not_passed_over(tmp_path: Path) -> None:
    store = Settings(store=str(tmp_path / "x.db"))
    assert definitions_file(store) is None
    (tmp_path / "threadline.yml").write_text("settings: {port: 1}\n")
    with pytest.raises(InvalidSetting, match=r"threadline\.yml is not read"):
        definitions_file(store)
    (tmp_path / "threadline.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InvalidSetting, match="not a file that can be read"):
        definitions_file(store)
    (tmp_path / "threadline.yaml").unlink()
    (tmp_path / "threadline.yaml").mkdir()
    with pytest.raises(InvalidSetting, match="not a file that can be read"):
        definitions_file(store)
    (tmp_path / "threadline.yaml").rmdir()
    (tmp_path / "threadline.yaml").write_text("settings: {port: 1}\n")
    assert definitions_file(store) == tmp_path / "threadline.yaml"


def test_definitions_beside_the_store_shape_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text(
        "features:\n  clicks:\n    aggregate: count\n    events: click\n"
        "identifiers:\n  device: {priority: 5, limit: 2}\n"
    )
    engine = open_engine(tmp_path / "x.db")
    try:
        assert engine.catalogue.rules.kind("device").limit == 2
        state = engine.catalogue.projections[engine.catalogue.index["features"]]
        assert "clicks" in state.view(state.empty(), 0, [])
    finally:
        engine.close()


def test_a_mistake_in_definitions_creates_no_store(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text("features:\n  clicks: {aggregate: cuont, events: click}\n")
    with pytest.raises(InvalidDefinition, match=r"threadline\.yaml:2"):
        open_engine(tmp_path / "x.db")
    assert not (tmp_path / "x.db").exists()


def test_every_setting_has_a_unit_and_a_reason() -> None:
    for each in describe():
        assert each.unit, each.name
        assert each.reason.endswith("."), each.name


def test_the_embedded_store_has_a_url_as_well(tmp_path: Path) -> None:
    assert load({"store": "sqlite:///data/x.db"}, {}).store == "data/x.db"
    assert load({}, {"THREADLINE_STORE": f"sqlite:///{tmp_path}/x.db"}).store == f"{tmp_path}/x.db"
    (tmp_path / "threadline.yaml").write_text("settings: {port: 4}\n")
    assert load({"store": f"sqlite:///{tmp_path}/x.db"}, {}).port == 4
    with pytest.raises(InvalidSetting, match="names no file"):
        load({"store": "sqlite:///"}, {})


@pytest.mark.parametrize("store", ["memory:", ":memory:", "sqlite://", "sqlite:///:memory:"])
def test_a_store_in_memory_is_named_as_sqlite_names_it_too(store: str) -> None:
    assert load({"store": store}, {}).store == "memory:"


def test_what_the_cache_keeps_is_a_list_of_tables_with_seconds() -> None:
    assert cache_lifetimes(Settings()) == {"person": 300.0, "thread": 86_400.0, "board": 60.0}
    assert cache_lifetimes(Settings(cache_tables=" a=1.5 ,b=60")) == {"a": 1.5, "b": 60.0}
    assert cache_lifetimes(Settings(cache_tables="")) == {}
    for wrong in ("person", "person=soon", "person=0", "person=-1", "person=inf", "person=nan"):
        with pytest.raises(InvalidSetting, match="cache_tables"):
            cache_lifetimes(Settings(cache_tables=wrong))


def test_who_logs_in_by_a_url_is_not_shown() -> None:
    assert without_secret("postgresql://ada:s3cret@host/db") == "postgresql://host/db"
    assert without_secret("redis://:pw@127.0.0.1:1/0") == "redis://127.0.0.1:1/0"
    assert without_secret("data/a@b.db") == "data/a@b.db"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:s/3@cr?et@host:1/db?sslmode=require", "postgresql://host:1/db?sslmode=require"),
        ("postgresql://ada@host/db", "postgresql://host/db"),
        ("postgresql://h/d?password=s3cret", "postgresql://h/d"),
        ("postgresql://h/d?a=1&password=s3@cret&b=2", "postgresql://h/d?a=1&b=2"),
        ("postgresql://h/d?sslpassword=s3cret&PASSFILE=/s3cret&sslmode=require", "postgresql://h/d?sslmode=require"),
        ("rediss://h:1/0?password=s3cret&timeout=1", "rediss://h:1/0?timeout=1"),
        (
            "dynamodb://people?region=eu&endpoint=http://localhost:1",
            "dynamodb://people?region=eu&endpoint=http://localhost:1",
        ),
    ],
)
def test_a_password_is_left_out_whatever_signs_it_has_and_wherever_it_stands(url: str, shown: str) -> None:
    assert without_secret(url) == shown


@given(st.text(min_size=1), st.sampled_from(["?sslmode=require", "", "?a=b&c=d"]))
def test_nothing_of_any_password_is_shown(filling: str, query: str) -> None:
    assert without_secret(f"postgresql://ada:{filling}s3cret@host/db{query}") == f"postgresql://host/db{query}"


def test_a_setting_that_two_files_give_is_refused_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("settings:\n  host: a\n  port: 1\n")
    (tmp_path / "b.yaml").write_text("settings:\n  workspace: b\n")
    assert load({"definitions": str(tmp_path)}, {}).workspace == "b"
    (tmp_path / "b.yaml").write_text("settings:\n  workspace: b\n\n  port: 1\n")
    with pytest.raises(InvalidSetting, match=r"b\.yaml:4: 'port' is already set at .*a\.yaml:3; keep one"):
        load({"definitions": str(tmp_path)}, {})
