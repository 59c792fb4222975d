package services

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// The ranges of kube-apiserver, for Options.
const (
	DefaultClusterIPRange = "10.0.0.0/24"
	DefaultNodePortRange  = "30000-32767"
)

// DefaultRepairInterval is how often leaked addresses and ports are looked for.
const DefaultRepairInterval = 3 * time.Minute

// Options configure the allocation.
type Options struct {
	Backend *store.Backend
	// ClusterIPs has one range, or one of each IP family: Services are dual-stack only
	// with two. The first is the default family. See ParseClusterIPs.
	ClusterIPs []netip.Prefix
	// NodePorts is the range of node ports. See ParseNodePorts.
	NodePorts PortRange
	// RepairInterval is DefaultRepairInterval if zero.
	RepairInterval time.Duration
}

// A PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last int }

// String is the range as the flag has it.
func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

// size is the number of ports.
func (r PortRange) size() int { return r.Last - r.First + 1 }

// ParseNodePorts reads the value of --service-node-port-range.
func ParseNodePorts(text string) (PortRange, error) {
	first, last, ok := strings.Cut(strings.TrimSpace(text), "-")
	from, err := strconv.ParseUint(first, 10, 16)
	if err == nil && ok {
		var to uint64
		if to, err = strconv.ParseUint(last, 10, 16); err == nil && from > 0 && from <= to {
			return PortRange{int(from), int(to)}, nil
		}
	}
	return PortRange{}, fmt.Errorf("%q is not a range of ports: give the first and the last port, such as %s", text, DefaultNodePortRange)
}

// ParseClusterIPs reads the value of --service-cluster-ip-range: one CIDR, or two of
// different IP families.
func ParseClusterIPs(text string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for one := range strings.SplitSeq(text, ",") {
		p, err := netip.ParsePrefix(strings.TrimSpace(one))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is not a CIDR, such as %s: %w", one, DefaultClusterIPRange, err)
		case p.Addr().Is4In6():
			return nil, fmt.Errorf("%q is an IPv4 range in IPv6 form: write it as IPv4", one)
		case p.Addr().BitLen()-p.Bits() < 2:
			return nil, fmt.Errorf("%q has no room for Services: give a range of at least 4 addresses", one)
		}
		list = append(list, p.Masked())
	}
	return list, checkRanges(list)
}

func checkRanges(list []netip.Prefix) error {
	switch {
	case len(list) == 0 || len(list) > 2:
		return fmt.Errorf("%d ranges of cluster IPs are given: give one, or one of each IP family", len(list))
	case len(list) == 2 && list[0].Addr().Is4() == list[1].Addr().Is4():
		return errors.New("both ranges of cluster IPs have the same IP family: give one of each")
	}
	return nil
}
