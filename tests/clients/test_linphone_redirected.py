"""linphone, a stock softphone with a password, calls a directory, and then the PoP to which that sends it.

It has no account there: with one it would send all its calls by its registrar, those to PoPs too.
"""

import shutil
from pathlib import Path

import pytest

from tests.clients.linphone import PROGRAM, linphone
from tests.directory.fleets import FRANKFURT, LONDON, fleet, public_key, settings
from tests.directory.test_sip_redirect import asking
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.config.phone_config import SipUser
from voicepipe.directory_server.leaving import Leaving
from voicepipe.directory_server.rules import Rules
from voicepipe.directory_server.sip_redirect import redirecting

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="linphone is not installed: apt install linphone-cli"),
]
ANN = SipUser(name="ann", password_env="ANN_PASSWORD")


async def test_linphone_follows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which London's is, seen from the directory in Virginia."""
    monkeypatch.setenv("ANN_PASSWORD", "s3cret")
    public = public_key(tmp_path)
    users = [{"name": "ann", "password_env": "ANN_PASSWORD"}]
    two = [
        settings(name, public, place, sip={"port": free_port(), "users": users})
        for name, place in (("fra", FRANKFURT), ("lhr", LONDON))
    ]
    config = asking(sip={"trunks": (), "users": (ANN,)})
    async with fleet(*two) as (directory, pops), redirecting(Rules(config, {}), directory, Leaving()):
        async with linphone(tmp_path / "ann", config.sip.port, "ann", "s3cret", registers=False) as ann:
            await ann.dial(f"sip:front-desk@127.0.0.1:{config.sip.port}")
            await until(lambda: [pop.calls for pop in pops] == [0, 1], 10)
            await ann.hang_up()
        await until(lambda: pops[1].calls == 0, 10)
