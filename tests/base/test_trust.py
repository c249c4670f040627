"""A private authority is trusted beside the system's."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from tests.support.authority import Authority
from voicepipe.base import trust
from voicepipe.base.errors import ConfigError


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def url(authority: Authority) -> Iterator[str]:
    """Of a server whose certificate the authority has signed."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.certified())
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"https://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_who_is_signed_by_it_is_trusted(authority: Authority, url: str) -> None:
    assert httpx.get(url, verify=trust.for_http(str(authority.ca))).status_code == 204


@pytest.mark.parametrize("named", ["", "another"])
def test_who_is_not_is_told_so(tmp_path: Path, url: str, named: str) -> None:
    ca = str(Authority(tmp_path / named, "another").ca) if named else ""
    with pytest.raises(httpx.ConnectError) as refused:
        httpx.get(url, verify=trust.for_http(ca))
    assert trust.refusal(refused.value) == (
        "its certificate is not trusted here (unable to get local issuer certificate): name the certificate of the "
        "authority that signed it as tls.ca"
    )


def test_a_certificate_of_another_name_is_no_matter_of_authorities(authority: Authority, url: str) -> None:
    with httpx.Client(verify=trust.for_http(str(authority.ca))) as client, pytest.raises(httpx.ConnectError) as refused:
        client.get(url, extensions={"sni_hostname": "fra1.example.com"})
    said = trust.refusal(refused.value)
    assert said.startswith("its certificate is not trusted here (Hostname mismatch") and "tls.ca" not in said


def test_another_error_is_no_matter_of_trust() -> None:
    with pytest.raises(httpx.ConnectError) as refused:
        httpx.get("https://127.0.0.1:9/")
    assert trust.refusal(refused.value) == ""


def test_the_systems_authorities_stay_trusted(authority: Authority) -> None:
    alone = {made["serialNumber"] for made in httpx.create_ssl_context().get_ca_certs()}
    both = trust.for_http(str(authority.ca))
    assert isinstance(both, ssl.SSLContext)
    assert alone < {made["serialNumber"] for made in both.get_ca_certs()}


def test_a_file_that_names_no_authority(tmp_path: Path) -> None:
    (file := tmp_path / "ca.pem").write_text("sesame")
    with pytest.raises(ConfigError, match=f"^tls.ca: {file} holds no certificate; give the authority's own, in PEM$"):
        trust.check(str(file))
    file.unlink()
    with pytest.raises(ConfigError, match=rf"^tls.ca: {file} cannot be read \(No such file or directory\)"):
        trust.for_sockets(str(file))
    trust.check("")
