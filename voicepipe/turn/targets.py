"""Where a caller can be put through to: a telephone number as people write it, or a sip:, sips: or tel: address."""

import re

_DIGITS = r"\+?[0-9*#(][0-9*#()./ -]{0,40}"
"""A number, and what people write into it to read it."""
_ADDRESS = r"[!#-;=?-~]{1,250}"
"""Nothing that could end a header or an element."""
_TARGET = re.compile(rf"{_DIGITS}|tel:{_DIGITS}(;{_ADDRESS})?|sips?:{_ADDRESS}", re.IGNORECASE)
_FILLERS = str.maketrans("", "", "()./ -")


def is_target(text: str) -> bool:
    """Whether the telephone network, or a SIP network, can be asked for it."""
    return bool(_TARGET.fullmatch(text) and (is_sip(text) or number(text).strip("+")))


def is_sip(target: str) -> bool:
    """Whether it is the address of a SIP network."""
    return target.lower().startswith(("sip:", "sips:"))


def number(target: str) -> str:
    """What is dialled, as networks take it: "+4930123456" of "+49 (0)30 12-34 56" and "tel:+49-30-123456". A number
    without "+" stays one. Of a SIP address it is empty."""
    if is_sip(target):
        return ""
    said = target[4:] if target.lower().startswith("tel:") else target
    said = said.partition(";")[0]
    if said.startswith("+"):
        said = said.replace("(0)", "")  # Dialled only where the country's code is not.
    return said.translate(_FILLERS)


def sip_uri(target: str, domain: str) -> str:
    """As a SIP network is asked for it: a number is one of `domain`."""
    return target if is_sip(target) else f"sip:{number(target).replace('#', '%23')}@{domain}"
