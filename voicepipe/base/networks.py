"""The network that an address belongs to: who has one address of it is about as far from everything as who has another.

It is all of an address that is kept, or published, to learn how far callers are.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

IPV4_BITS, IPV6_BITS = 24, 48


def is_public(ip: IPv4Address | IPv6Address) -> bool:
    """Whether an address means the same host everywhere. Behind 172.17.0.1, say, may be all callers of a container."""
    return ip.is_global


def network_of(address: str) -> str:
    """The network of an address: "198.51.100.0/24" or "2001:db8:7::/48"; empty: it is no public IP address."""
    try:
        ip = ip_address(address)
    except ValueError:
        return ""
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    if not is_public(ip):
        return ""
    if isinstance(ip, IPv6Address):
        return str(IPv6Network((int(ip), IPV6_BITS), strict=False))
    return str(IPv4Network((int(ip), IPV4_BITS), strict=False))


def is_of(address: str, network: str) -> bool:
    """Whether the sender's address is in this network. If not, another program asked for the call, or a proxy stands
    between."""
    return bool(network) and network_of(address) == network
