package webhook

import (
	"net/netip"
	"strings"
	"testing"
)

func TestNetworks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allowed, denied  string
		connects, refuse string
	}{
		"default": {
			connects: "1.1.1.1 8.8.8.8 2606:4700::1111 64:ff9b::101:101 2002:101:101::1 ::ffff:0:1.1.1.1",
			refuse: "127.0.0.1 127.9.9.9 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 0.0.0.0 0.1.2.3 :: 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 " +
				"169.254.0.1 169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1::1 2002:a9fe:a9fe::1 " +
				"fe80::1 fe80::1%eth0 fc00::1 fd00:ec2::254 fec0::1 224.0.0.1 239.1.1.1 255.255.255.255 ff02::1 240.0.0.1 192.0.2.1 198.18.0.1 2001:db8::1 168.63.129.16 " +
				"2001:0:0:0:0:0:80ff:fffe ::ffff:0:127.0.0.1 ::ffff:0:10.0.0.1 ::ffff:0:a9fe:a9fe",
		},
		"allowed": {
			allowed: "10.0.0.0/8 127.0.0.1 ::1", connects: "10.1.2.3 127.0.0.1 ::1 ::ffff:10.1.2.3 ::ffff:127.0.0.1 64:ff9b::a01:203 1.1.1.1",
			refuse: "127.0.0.2 192.168.0.1 :: 0.0.0.0",
		},
		"denied in allowed": {
			allowed: "10.0.0.0/8", denied: "10.1.0.0/16 203.0.113.0/24 8.8.8.8", connects: "10.2.0.1 8.8.4.4", refuse: "10.1.0.1 ::ffff:10.1.0.1 8.8.8.8",
		},
		"nothing but": {
			allowed: "10.1.0.0/16", denied: "0.0.0.0/0 ::/0", connects: "10.1.0.1", refuse: "1.1.1.1 10.2.0.1 2606:4700::1111 127.0.0.1",
		},
		"both the same": {allowed: "10.0.0.0/8", denied: "10.0.0.0/8", refuse: "10.0.0.1"},
		"everywhere": {
			allowed: strings.Join(Everywhere, " "), connects: "127.0.0.1 ::1 10.0.0.1 0.0.0.0 169.254.0.1 fe80::1",
			refuse: "169.254.169.254 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe ::ffff:0:169.254.169.254 fd00:ec2::254 100.100.100.200",
		},
		"metadata by name": {allowed: "169.254.169.254", connects: "169.254.169.254", refuse: "169.254.0.1"},
	} {
		n, err := NewNetworks(strings.Fields(c.allowed), strings.Fields(c.denied))
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(c.connects) {
			if what := n.refusal(netip.MustParseAddr(word)); what != "" {
				t.Errorf("%s: %s is refused as %s", name, word, what)
			}
		}
		for word := range strings.FieldsSeq(c.refuse) {
			if n.refusal(netip.MustParseAddr(word)) == "" {
				t.Errorf("%s: %s is connected to", name, word)
			}
		}
	}
}

func TestNetworksAreParsed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "x", "10.0.0.0/33", "10.0.0", "fe80::1%eth0", "localhost", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1"} {
		err := (&Options{AllowedNetworks: []string{text}}).Validate()
		if err == nil || !strings.Contains(err.Error(), "--webhook-allowed-networks") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
