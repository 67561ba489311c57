"""Which run a replay stops and resumes."""

import pytest

from reprobundle.errors import BadCallError
from reprobundle.replay.plan import _restarts


def test_a_restart_check_without_the_main_command_is_a_bad_call():
    with pytest.raises(BadCallError, match="the restart check needs the main command"):
        list(_restarts([]))
