"""Callers by SIP who are gone without a goodbye: who does not refresh the session, or sends nothing that is taken."""

from tests.ingress.fake_pop import FakePop
from tests.ingress.sip.peer import calling, phone, sip
from tests.support.waiting import until


async def test_a_caller_without_a_sound_is_gone_unless_on_hold() -> None:
    pop = FakePop(sip(silent_ms=500))
    async with calling(pop) as ann, phone(pop) as holds:
        await holds.dial(holds.sdp(direction="inactive"))
        ann.media_of(await ann.dial())
        await ann.talk(0, 20)
        await ann.got("BYE")
        await until(lambda: pop.live == 1)
        assert (await holds.hang_up()).code == 200
