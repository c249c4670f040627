"""Web, e-mail and IP addresses, and versions."""

from tests.languages.en.verbaliser.rows import Row, rows


@rows("""
Version 2.4.1 is out. -> Version two point four point one is out.
v1.2, V2.0 and v2 -> version one point two, version two point zero and version two
Python 3.11.7 -> Python three point eleven point seven
version 3.10 -> version three point ten
1.0.0-rc1 -> one point zero point zero rc one
v2.0-beta -> version two point zero beta
192.168.0.1 -> one nine two dot one six eight dot zero dot one
10.0.0.1:8080 -> one zero dot zero dot zero dot one colon eight zero eight zero
10.0.0.0/24 -> one zero dot zero dot zero dot zero slash twenty four
10.12.24 -> ten point twelve point twenty four
Release v3.2.1-beta. Then -> Release version three point two point one beta. Then
""")
def test_versions_and_ip_addresses(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
See example.com/menu?x=1. -> See example dot com slash menu.
see https://www.example.org/menu?x=1. -> see example dot org slash menu.
www.example.com -> example dot com
example.co.uk/a-b/c_d -> example dot co dot uk slash a dash b slash c underscore d
example.com/2024/05/ -> example dot com slash two zero two four slash zero five
example.com? -> example dot com?
(example.com), -> (example dot com),
mail a.b@example.org -> mail a dot b at example dot org
ann_lee42+x@example.com. -> ann underscore lee four two plus x at example dot com.
example.com#top -> example dot com
localhost:8080 -> localhost colon eight zero eight zero
example.com:8080/x -> example dot com colon eight zero eight zero slash x
EXAMPLE.COM -> EXAMPLE dot COM
http://192.168.0.1/admin -> one nine two dot one six eight dot zero dot one slash admin
see https://example.com/a请看 -> see example dot com slash a 请看
see example.com/a请看 -> see example dot com slash a 请看
""")
def test_web_and_e_mail_addresses_are_said_with_their_signs(row: Row) -> None:
    assert row.said() == row.expected


@rows("""
192.168.0.1-192.168.0.10
-> one nine two dot one six eight dot zero dot one to one nine two dot one six eight dot zero dot one zero
""")
def test_ranges_of_addresses(row: Row) -> None:
    assert row.said() == row.expected
