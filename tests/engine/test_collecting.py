"""The collector stays away while anybody works, and is back when the last of them is done."""

from __future__ import annotations

import gc
import threading

from threadline.engine.collecting import uncollected


def test_it_is_back_when_the_last_is_done_however_they_overlap() -> None:
    assert gc.isenabled()
    first, second = uncollected(), uncollected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not gc.isenabled(), "somebody is still at work"
    second.__exit__(None, None, None)
    assert gc.isenabled()


def test_who_has_sent_it_away_finds_it_away() -> None:
    gc.disable()
    try:
        with uncollected(), uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_back_after_many_at_once() -> None:
    def work() -> None:
        for _ in range(2_000):
            with uncollected():
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gc.isenabled()
