"""Valid SIP requests at random, by the grammars of RFC 3261 (25.1), 3966, 4694, 5626 and 2046, and 3GPP TS 24.229
(7.2A): each with what has to be read from it."""

import string
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

T = TypeVar("T")

ALNUM = string.ascii_letters + string.digits
TOKEN = ALNUM + "-.!%*_+`'~"
WORD = TOKEN + '()<>:\\"/[]?{}'
MARK = "-_.!~*'()"
USER = ALNUM + MARK + "&=+$,;?/"
PARAM = ALNUM + MARK + "[]/:&+$"
OTHER_LETTERS = "éßЖ中न\u0915\u093f😀\u2028\u0085"
"""UTF8-NONASCII, some of which other readers take for the end of a line."""
SDP = "v=0\r\no=ann 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n"


@dataclass(frozen=True)
class Number:
    """An address, and the user that is read from it."""

    text: str
    user: str


@dataclass(frozen=True)
class Made:
    """A request, and what it says."""

    data: bytes
    method: str
    call_id: str
    caller: str
    called: str
    from_tag: str
    from_text: str
    """From's value, lines that go on joined by one blank."""
    branch: str
    sdp: bool


class Grammar:
    """Deterministic, by the random numbers that it is given."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def request(self) -> Made:
        method = self._one("INVITE", "INVITE", "INVITE", "OPTIONS", "REGISTER")
        of_from, of_to, asked = self._party(), self._party(), self._called()
        if method == "REGISTER":
            of_to = Number("<sip:ann@example.com>", "ann")
        tag, call_id, branch = self._tag(), self._call_id(), "z9hG4bK" + self._some(TOKEN, 1, 12)
        from_text = of_from.text + self._params(f"{self._cased('tag')}{self._equal()}{tag}" if tag else "")
        kind, body, sdp = self.body() if method == "INVITE" else ("", b"", False)
        lines = [
            (
                self._cased("Via", "v"),
                self._via(branch) + "".join(f"{self._comma()}{self._via()}" for _ in self._few(2)),
            ),
            (self._cased("From", "f"), from_text),
            (self._cased("To", "t"), of_to.text + self._params()),
            (self._cased("Call-ID", "i"), call_id),
            (self._cased("CSeq"), f"{self._some('0', 0, 3)}{self._number(0, 2**31 - 1)}{self._lws()}{method}"),
            (self._cased("Max-Forwards"), str(self._number(0, 255))),
            (self._cased("Contact", "m"), self._contact()),
            (self._cased("Content-Length", "l"), str(len(body))),
            *([(self._cased("Content-Type", "c"), kind)] if body else []),
            *self._others(),
        ]
        self._random.shuffle(lines)
        text = f"{method} {asked.text} SIP/2.0\r\n" + "".join(
            f"{name}{self._colon()}{said}\r\n" for name, said in lines
        )
        joined = from_text.replace("\r\n ", " ").replace("\r\n\t", " ").strip()
        return Made(text.encode() + b"\r\n" + body, method, call_id, of_from.user, asked.user, tag, joined, branch, sdp)

    # --- words

    def _one(self, *of: T) -> T:
        return self._random.choice(of)

    def _number(self, least: int, most: int) -> int:
        return self._random.choice((least, most, self._random.randint(least, most)))

    def _few(self, most: int) -> range:
        return range(self._random.choice((0, 0, self._random.randint(0, most))))

    def _some(self, letters: str, least: int = 1, most: int = 8) -> str:
        return "".join(self._random.choices(letters, k=self._random.randint(least, most)))

    def _maybe(self, made: Callable[[], str], chance: float = 0.3) -> str:
        return made() if self._random.random() < chance else ""

    def _cased(self, *names: str) -> str:
        name = self._one(*names)
        return self._one(name, name, name.lower(), name.upper(), name.swapcase())

    def _lws(self) -> str:
        return self._one(" ", " ", " ", "\t", "  ", "\r\n ", " \r\n\t")

    def _sws(self) -> str:
        return self._maybe(self._lws, 0.15)

    def _colon(self) -> str:
        return self._one(": ", ": ", ":", f" :{self._sws()}", f"\t: {self._sws()}")

    def _comma(self) -> str:
        return f"{self._sws()},{self._sws()}"

    def _equal(self) -> str:
        return f"{self._sws()}={self._sws()}"

    def _quoted(self) -> str:
        def part() -> str:
            pair = self._one('\\"', "\\\\", "\\;", "\\<", "")
            return self._one(self._some(ALNUM + " ;,<>@=:?%", 0, 6), self._some(OTHER_LETTERS, 1, 3), pair)

        return f'"{"".join(part() for _ in range(self._random.randint(0, 4)))}"'

    def _escaped(self, letters: str, least: int = 1, most: int = 8) -> str:
        """Letters, some as %41."""
        return "".join(
            self._one(letter, letter, letter, f"%{ord(letter):02X}") for letter in self._some(letters, least, most)
        )

    # --- addresses

    def _host(self) -> str:
        return self._one(
            "example.com", "a.b-c.example.org", "h", "192.0.2.7", "[2001:db8::7]", "EXAMPLE.com", "x.example."
        )

    def _host_port(self) -> str:
        return self._host() + self._maybe(lambda: f":{self._number(1, 65535)}")

    def _digits(self) -> tuple[str, str]:
        """As written, and as dialled."""
        digits = self._some(string.digits, 1, 14)
        written = digits[0] + "".join(self._one("", "", "", "-", ".", "(", ")") + digit for digit in digits[1:])
        return written, digits

    def _tel_params(self) -> str:
        known = (
            "isub=12%2F3", "ext=1-2", "npdi", "rn=+1-212-555-0000", "cic=+1-6789", "cpc=ordinary", "oli=62",
            "verstat=TN-Validation-Passed", "verstat=No-TN-Validation", "enumdi", "tgrp=a1", "x-y",
            "trunk-context=+1-630",
            f"{self._some(ALNUM)}={self._escaped(ALNUM + MARK + '[]/:&+$')}",
        )  # fmt: skip
        return "".join(f";{self._one(*known)}" for _ in self._few(3))

    def _subscriber(self) -> Number:
        """A telephone number, RFC 3966."""
        written, digits = self._digits()
        if self._random.random() < 0.6:
            return Number(f"+{written}{self._tel_params()}", f"+{digits}")
        more = self._some("*#", 0, 2).replace("#", "%23")
        context = self._one("+1-415", "example.com", "+49")
        return Number(f"{written}{more}{self._tel_params()};phone-context={context}", digits + more.replace("%23", "#"))

    def tel(self) -> Number:
        number = self._subscriber()
        return Number(f"{self._one('tel', 'TEL', 'Tel')}:{number.text}", number.user)

    def _uri_params(self) -> str:
        known = (
            "transport=tcp", "transport=UDP", "user=ip", "method=INVITE", "ttl=15", "maddr=192.0.2.3", "lr", "lr=on",
            "ob", "maddr=[2001:db8::1]", self._some(TOKEN.replace("%", "").replace("`", ""), 1, 5),
            f"{self._escaped(ALNUM)}={self._escaped(PARAM, 1)}",
        )  # fmt: skip
        return "".join(f";{self._one(*known)}" for _ in self._few(3))

    def sip(self) -> Number:
        scheme = self._one("sip", "sip", "sip", "SIP", "sips")
        headers = self._maybe(lambda: f"?subject={self._escaped(ALNUM)}&x=", 0.1)
        if self._random.random() < 0.1:
            return Number(f"{scheme}:{self._host_port()}{self._uri_params()}{headers}", "")
        if self._random.random() < 0.5:
            number = self._subscriber()
            return Number(
                f"{scheme}:{number.text}@{self._host_port()};user=phone{self._uri_params()}{headers}", number.user
            )
        name = self._one("", "1") + self._some(ALNUM + "!*'()&=$,?/._~", 1, 6)
        written = "".join(self._one(letter, letter, f"%{ord(letter):02x}") for letter in name)
        more = self._maybe(lambda: f";{self._some(ALNUM)}={self._escaped(ALNUM + '&+$')}", 0.2)
        password = self._maybe(lambda: f":{self._escaped(ALNUM + MARK + '&=+$,', 0)}", 0.1)
        return Number(f"{scheme}:{written}{more}{password}@{self._host_port()}{self._uri_params()}{headers}", name)

    def other(self) -> Number:
        """Of another scheme."""
        return Number(*self._one(
            ("urn:service:sos", "service:sos"), ("urn:service:sos.police", "service:sos.police"),
            ("im:ann@example.com", "ann@example.com"), ("pres:ann@example.com", "ann@example.com"),
            ("http://example.com/a?b=c", "//example.com/a?b=c"), ("mailto:ann@example.com", "ann@example.com"),
            ("x-y+z.1:a/b", "a/b"),
        ))  # fmt: skip

    def _called(self) -> Number:
        return self._one(self.sip, self.tel)()

    def _display_name(self) -> str:
        return self._one(
            "", "", self._quoted() + self._sws(), " ".join(self._some(TOKEN) for _ in self._few(3)) + self._sws()
        )

    def _name_addr(self, uri: str) -> str:
        return f"{self._display_name()}<{uri}>"

    def _party(self) -> Number:
        """An address of From or To, in angle brackets or not."""
        number = self._one(self.sip, self.sip, self.tel, self.tel, self.other)()
        if not set(number.text) & set(",;?") and self._random.random() < 0.4:
            return number
        return Number(self._name_addr(number.text), number.user)

    # --- headers

    def _tag(self) -> str:
        return self._maybe(lambda: self._some(TOKEN, 1, 12), 0.9)

    def _call_id(self) -> str:
        return self._some(WORD, 1, 12) + self._maybe(lambda: f"@{self._some(WORD, 1, 12)}", 0.5)

    def _generic(self) -> str:
        name = "x" + self._some(TOKEN, 1, 5)
        value = self._one(self._some(TOKEN), self._host(), self._quoted())
        return name + self._maybe(lambda: self._equal() + value, 0.7)

    def _params(self, *more: str) -> str:
        params = [*filter(None, more), *(self._generic() for _ in self._few(2))]
        self._random.shuffle(params)
        return "".join(f"{self._sws()};{self._sws()}{param}" for param in params)

    def _via(self, branch: str = "") -> str:
        transport = self._one("UDP", "TCP", "TLS", "SCTP", "WS", "udp", "x-9")
        slash = self._one("/", "/", "/", f"{self._sws()}/{self._sws()}")
        branch = branch or f"z9hG4bK{self._some(TOKEN)}"
        others = self._cased("rport"), "received=192.0.2.1", "ttl=1", "maddr=h", "keep"
        known = f"branch{self._equal()}{branch}", *(self._one("", other) for other in others)
        port = self._maybe(lambda: f"{self._sws()}:{self._sws()}{self._number(1, 65535)}")
        return f"SIP{slash}2.0{slash}{transport}{self._lws()}{self._host()}{port}{self._params(*known)}"

    def _contact(self) -> str:
        uri = self.sip().text
        bare = not set(uri) & set(",;?") and self._random.random() < 0.3
        instance = '+sip.instance="<urn:uuid:00000000-0000-1000-8000-AABBCCDDEEFF>"'
        others = "q=0.5", "q=1.000", "expires=60", instance, "reg-id=1", '+g.x="a,b;c"'
        known = [self._one("", "", other) for other in others]
        return (uri if bare else self._name_addr(uri)) + self._params(*known)

    def _route(self) -> str:
        return f"{self._display_name()}<sip:{self._host_port()};lr{self._uri_params()}>{self._params()}"

    def _others(self) -> list[tuple[str, str]]:
        asserted = self._comma().join(
            self._name_addr(made().text) for made in (self.sip, self.tel)[: self._random.randint(1, 2)]
        )
        digest = (f'Digest username="a, b;\\"c",{self._sws()}realm="x", nonce="n",uri="{self.tel().text}",'
                  'response="0123",opaque="o",qop=auth,nc=00000001,cnonce="a=b,c"')  # fmt: skip
        known = [
            (self._cased("Record-Route"), self._comma().join(self._route() for _ in range(self._random.randint(1, 3)))),
            (self._cased("Route"), self._route()),
            (self._cased("P-Asserted-Identity"), asserted),
            ("P-Preferred-Identity", self._name_addr(self.tel().text)),
            ("Remote-Party-ID", self._name_addr(self.sip().text) + ";party=calling;screen=yes;privacy=off"),
            ("Diversion", self._name_addr(self.tel().text) + ';reason="no-answer";counter=1'),
            ("History-Info", f"<{self.sip().text}>;index=1, <{self.tel().text}>;index=1.1;mp=1"),
            (self._cased("Referred-By", "b"), self._name_addr(self.tel().text)),
            (self._cased("Supported", "k"), self._one("", "timer", f"100rel{self._comma()}timer", "outbound, path")),
            (self._cased("Session-Expires", "x"), self._one("90", "1800;refresher=uac", "3600 ; Refresher = uas")),
            ("Allow", f"INVITE{self._comma()}ACK{self._comma()}REFER"),
            (self._cased("Expires"), self._one("0", "60", str(2**32 - 1))),
            ("Accept", "application/sdp;level=1, application/x-private, text/html"),
            (self._cased("Subject", "s"), self._some(ALNUM + " ,;<\"" + OTHER_LETTERS, 0, 10).strip()),
            ("Date", "Sat, 13 Nov 2010 23:29:00 GMT"),
            ("Authorization", self._one(digest, "Basic YTpi", "Digest a=b")),
            ("Privacy", "id;critical"), ("Geolocation", "<cid:loc@example>;inserted-by=\"h\""),
            ("Identity", 'abc.def.ghi;info=<https://example.org/c.cer>;alg=ES256;ppt="shaken"'),
            (f"X-{self._some(TOKEN)}", self._some(ALNUM + ";,\"<>" + OTHER_LETTERS, 0, 12).strip()),
            (f"ext-{self._some(TOKEN)}", self._lws().join(self._some(WORD) for _ in range(3))),
            ("MIME-Version", "1.0"), ("Content-Disposition", "session;handling=required"),
            (self._cased("Content-Encoding", "e"), "identity"),
        ]  # fmt: skip
        return self._random.sample(known, self._random.randint(0, 6))

    # --- bodies

    def body(self) -> tuple[str, bytes, bool]:
        """Its type, the body, and whether there is SDP in it."""
        if self._random.random() < 0.3:
            return "", b"", False
        if self._random.random() < 0.4:
            return self._one("application/sdp", "Application/SDP", "application/sdp;charset=utf-8"), SDP.encode(), True
        boundary = self._some(ALNUM + "'+_-./:=?", 1, 20) + self._some(ALNUM, 1, 3)
        subtype = self._one("mixed", "mixed", "alternative", "related", "x-new")
        parts = [self._sdp_part(), *(self._other_part() for _ in self._few(3))]
        if subtype != "related":
            self._random.shuffle(parts)
        end = self._one("\r\n", "\r\n", "\n").encode()
        preamble = self._one(b"", b"", b"This is MIME." + end)
        body = preamble + b"".join(
            b"--" + boundary.encode() + self._one(b"", b"", b"  ") + end + part + end for part in parts
        )
        kind = f'multipart/{subtype}{self._sws()};{self._sws()}boundary="{boundary}"'
        return kind, body + b"--" + boundary.encode() + b"--" + self._one(b"", end, end + b"epilogue"), True

    def _sdp_part(self) -> bytes:
        head = f"{self._cased('Content-Type')}:{self._one('', ' ')}application/sdp\r\n"
        head += self._maybe(lambda: "Content-Disposition: session;handling=required\r\n", 0.5)
        head += self._maybe(lambda: "Content-Transfer-Encoding: binary\r\n")
        return f"{head}\r\n{SDP}".encode()

    def _other_part(self) -> bytes:
        return self._one(
            b"Content-Type: application/isup;version=itu-t92+;base=itu-t92+\r\n"
            b"Content-Disposition: signal;handling=optional\r\n\r\n\x01\x11H\x00\n\x03\x02\n\xff\r\n\r\n\x80",
            b"Content-Type: application/pidf+xml\r\nContent-ID: <loc@example>\r\n\r\n<?xml version='1.0'?><presence/>",
            b"\r\nplain text",
            b"Content-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\na=3Db",
        )
