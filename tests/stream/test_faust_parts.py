"""What Faust would print by itself is left to the worker, which says it in one line."""

import logging

import pytest

from ldpstream.agents.faust_parts import _CommittedThread


def test_a_consumer_thread_that_crashes_prints_nothing(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    thread = _CommittedThread.__new__(_CommittedThread)
    with caplog.at_level(logging.DEBUG, logger="ldpstream"):
        thread.on_crash("{0!r} crashed: {1!r}", "Consumer", ConnectionError("cut"))
    assert capsys.readouterr() == ("", "")
    assert "crashed: ConnectionError('cut')" in caplog.text
