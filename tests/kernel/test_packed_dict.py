"""A dict that stays packed answers as a dict, and is packed again as one."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from threadline.engine.folding.states import PackedDict

KEYS = st.sampled_from(["a", "b", "c", "d"])
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
STATES = st.dictionaries(KEYS, PLAIN)

pack = msgspec.msgpack.Encoder().encode


class Apart(PackedDict):
    """With parts as small as can be."""

    __slots__ = ()
    plain_bytes = 0


def apart(state: Any) -> Any:
    return Apart.unpack(msgspec.Raw(pack(state)))


class AsADict(RuleBasedStateMachine):
    """Whatever is done to a packed dict does the same to a dict."""

    @initialize(state=STATES)
    def begin(self, state: dict[str, Any]) -> None:
        self.plain, self.packed = state, apart(state)

    @rule(key=KEYS, default=PLAIN)
    def reads(self, key: str, default: Any) -> None:
        assert self.packed.get(key, default) == self.plain.get(key, default)
        assert (key in self.packed) == (key in self.plain)
        if key in self.plain:
            assert self.packed[key] == self.plain[key]

    @rule(key=KEYS, value=PLAIN)
    def puts(self, key: str, value: Any) -> None:
        self.plain[key] = self.packed[key] = value

    @rule(key=KEYS, value=PLAIN)
    def puts_unless_there(self, key: str, value: Any) -> None:
        assert self.packed.setdefault(key, value) == self.plain.setdefault(key, value)

    @rule(key=KEYS)
    def takes_out(self, key: str) -> None:
        assert self.packed.pop(key, None) == self.plain.pop(key, None)

    @rule()
    def takes_out_the_last(self) -> None:
        if self.plain:
            assert self.packed.popitem() == self.plain.popitem()

    @rule(other=STATES)
    def joins(self, other: dict[str, Any]) -> None:
        assert list((self.packed | other).items()) == list((self.plain | other).items())
        assert list((other | self.packed).items()) == list((other | self.plain).items())
        assert list((self.packed | apart(other)).items()) == list((self.plain | other).items())
        self.plain |= other
        self.packed |= apart(other)

    @rule(again=st.booleans())
    def is_read_whole(self, again: bool) -> None:
        packed = apart(self.plain) if again else self.packed
        assert list(packed.items()) == list(self.plain.items())
        assert list(packed.values()) == list(self.plain.values())

    @rule()
    def is_copied(self) -> None:
        for copy in (dict(self.packed), {**self.packed}, self.packed.copy()):
            assert type(copy) is dict
            assert all(value.__class__ is not msgspec.Raw for value in copy.values())
            assert copy == self.plain

    @invariant()
    def packs_alike(self) -> None:
        assert pack(self.packed) == pack(self.plain)
        assert list(self.packed) == list(self.plain)
        assert len(self.packed) == len(self.plain)


TestAsADict = AsADict.TestCase


@given(state=PLAIN)
def test_what_was_packed_comes_back_as_it_was(state: Any) -> None:
    assert apart(state) == state
    assert state == apart(state)
    assert PackedDict.unpack(msgspec.Raw(pack(state))) == state


def test_the_collector_sees_one_object_until_somebody_asks() -> None:
    state = {str(number): {"n": [number] * 9, "of": {"day": number}} for number in range(300)}
    packed = PackedDict.unpack(msgspec.Raw(pack(state)))
    assert gc.is_tracked(packed)
    assert not any(map(gc.is_tracked, dict.values(packed)))
    assert packed["7"] == state["7"]
    assert sum(map(gc.is_tracked, dict.values(packed))) == 1
