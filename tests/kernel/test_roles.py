"""Roles: of viewer, marketer, operator and admin each may what those before it may; support may what people ask for."""

from __future__ import annotations

import pytest

from tests.each import each_of
from threadline.app import operations
from threadline.kernel.operation import Operation
from threadline.kernel.roles import ROLES, SUPPORTING, Role, allows, role_of_scopes

LADDER: tuple[Role, ...] = ("viewer", "marketer", "operator", "admin")
OPERATIONS = {operation.name: operation for operation in operations()}


@each_of(OPERATIONS.values(), lambda operation: operation.name)
def test_a_role_may_all_that_a_lesser_role_may(operation: Operation):
    allowed = [allows(role, operation) for role in LADDER]
    assert allowed == sorted(allowed)
    assert allowed[-1]
    assert allowed[0] == (operation.scope == "read")


@each_of(OPERATIONS.values(), lambda operation: operation.name)
def test_support_may_read_and_do_what_a_person_asks_for_and_nothing_else(operation: Operation):
    assert allows("support", operation) == (operation.scope == "read" or operation.name in SUPPORTING)


def test_the_operations_of_support_are_declared_and_the_ladder_leaves_out_support_alone():
    assert OPERATIONS.keys() >= SUPPORTING
    assert set(ROLES) - set(LADDER) == {"support"}


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("person", "viewer"),
        ("people_tag", "marketer"),
        ("broadcasts_start", "marketer"),
        ("suppression_lift", "marketer"),
        ("people_merge", "operator"),
        ("effects_redrive", "operator"),
        ("effects_parked", "operator"),
        ("quarantine_review", "operator"),
        ("definitions_apply", "operator"),
        ("definitions_propose", "marketer"),
        ("definitions_accept", "operator"),
        ("definitions_declare", "operator"),
        ("people_erase", "admin"),
        ("people_export", "admin"),
        ("keys_create", "admin"),
        ("erasures_list", "admin"),
        ("rules_activate", "operator"),
        ("what_if_run", "operator"),
        ("rule_sets_write", "admin"),
        ("points_adjust", "admin"),
    ],
)
def test_the_least_role_that_may_call_an_operation(name, least):
    assert next(role for role in LADDER if allows(role, OPERATIONS[name])) == least


def test_the_role_of_whoever_signs_in_with_a_token():
    assert role_of_scopes(("read",)) == "viewer"
    assert role_of_scopes(("read", "write")) == "operator"
    assert role_of_scopes(("admin",)) == "admin"


@pytest.mark.parametrize(
    "name", ["rules_activate", "rules_write", "what_if_run", "definitions_declare", "definitions_reload"]
)
def test_a_token_that_sends_events_may_not_decide_which_rules_and_definitions_count(name):
    assert not allows(role_of_scopes(("write",)), OPERATIONS[name], by_token=True)
    assert allows(role_of_scopes(("admin",)), OPERATIONS[name], by_token=True)
