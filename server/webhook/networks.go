package webhook

import (
	"fmt"
	"net/netip"
	"strings"
)

// Networks say which addresses the server connects to when it calls a webhook.
//
// The longest network of the allowed and denied ones that contains an address
// decides; if both have the same, it is denied. An address that is in none of them is
// allowed if it is a public one. Addresses of cloud metadata services are denied
// unless they are allowed one by one: whole networks do not include them.
type Networks struct {
	allowed, denied []netip.Prefix
}

// Flags that set networks.
const (
	allowedFlag = "webhook-allowed-networks"
	deniedFlag  = "webhook-denied-networks"
)

// Everywhere is the list of networks for servers that only their own user reaches:
// all of them.
var Everywhere = []string{"0.0.0.0/0", "::/0"}

// NewNetworks parses networks in CIDR notation, and single addresses.
func NewNetworks(allowed, denied []string) (*Networks, error) {
	n := &Networks{}
	var err error
	if n.allowed, err = parse(allowedFlag, allowed); err != nil {
		return nil, err
	}
	n.denied, err = parse(deniedFlag, denied)
	return n, err
}

func parse(flag string, texts []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			addr, addrErr := netip.ParseAddr(text)
			if addrErr != nil || addr.Zone() != "" {
				return nil, fmt.Errorf("--%s: %q is no network: write it as 10.0.0.0/8 or fd00::/8, or a single address as 10.1.2.3", flag, text)
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		if prefix.Addr().Is4In6() {
			return nil, fmt.Errorf("--%s: %q is an IPv4 network in an IPv6 address: write it as an IPv4 network", flag, text)
		}
		prefixes = append(prefixes, prefix.Masked())
	}
	return prefixes, nil
}

// special are the networks that are not public, with the name that an error gives
// them. The order is that of the lookup: the first that contains an address names it.
var special = []struct {
	what     string
	prefixes []netip.Prefix
}{
	{"a cloud metadata address", prefixes(metadata)},
	{"a loopback address", prefixes("127.0.0.0/8 ::1/128")},
	{"an unspecified address, which leads to this machine", prefixes("0.0.0.0/8 ::/128")},
	{"a link-local address", prefixes("169.254.0.0/16 fe80::/10")},
	{"a private address", prefixes("10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10 64:ff9b:1::/48")},
	{"a multicast or broadcast address", prefixes("224.0.0.0/4 255.255.255.255/32 ff00::/8")},
	{"a reserved address", prefixes("192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 100::/64 2001:db8::/32 3fff::/20 5f00::/16")},
}

// metadata are the addresses at which clouds give credentials to their machines: AWS,
// Azure, Google and others; AWS by IPv6; Alibaba; Oracle; Azure's host.
const metadata = "169.254.169.254/32 169.254.170.2/32 fd00:ec2::254/128 100.100.100.200/32 192.0.0.192/32 168.63.129.16/32"

func prefixes(text string) []netip.Prefix {
	var all []netip.Prefix
	for word := range strings.FieldsSeq(text) {
		all = append(all, netip.MustParsePrefix(word))
	}
	return all
}

// refusal says what kind of an address it is that the server does not connect to;
// empty: it does.
func (n *Networks) refusal(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	if what := n.refused(addr); what != "" {
		return what
	}
	// A gateway makes a connection to the IPv4 address of these.
	if inner, ok := embedded(addr); ok {
		return n.refused(inner)
	}
	return ""
}

func (n *Networks) refused(addr netip.Addr) string {
	allowed, denied := longest(n.allowed, addr), longest(n.denied, addr)
	if contains(special[0].prefixes, addr) && allowed < addr.BitLen() {
		return special[0].what
	}
	switch {
	case denied >= 0 && denied >= allowed:
		return "an address in --" + deniedFlag
	case allowed >= 0:
		return ""
	}
	for _, s := range special[1:] {
		if contains(s.prefixes, addr) {
			return s.what
		}
	}
	return ""
}

// longest returns the bits of the longest network that contains an address, or -1.
func longest(prefixes []netip.Prefix, addr netip.Addr) int {
	bits := -1
	for _, p := range prefixes {
		if p.Contains(addr) {
			bits = max(bits, p.Bits())
		}
	}
	return bits
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool { return longest(prefixes, addr) >= 0 }

// IPv6 addresses that have an IPv4 address in them: NAT64, IPv4-compatible and
// IPv4-translated (SIIT) ones at the end, 6to4 after the prefix, Teredo inverted at
// the end.
var (
	atTheEnd  = prefixes("64:ff9b::/96 ::/96 ::ffff:0:0:0/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
	teredo    = netip.MustParsePrefix("2001::/32")
)

// embedded returns the IPv4 address in an IPv6 address.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() || addr.IsUnspecified() || addr.IsLoopback() {
		return addr, false
	}
	b := addr.As16()
	switch {
	case contains(atTheEnd, addr):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(addr):
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return addr, false
}
