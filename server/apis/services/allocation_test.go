package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// What cannot be read is not written: it may be right.
func TestEnsureKubernetesWithoutAnswers(t *testing.T) {
	for _, resource := range []string{"servicecidrs", "services", "endpoints", "endpointslices"} {
		client := fake.NewClientset()
		client.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("no answer")
		})
		err := ranged("fd00::/112").EnsureKubernetes(t.Context(), client, netip.MustParseAddrPort("[2001:db8::1]:443"))
		if err == nil || !strings.HasSuffix(err.Error(), " failed: no answer") {
			t.Errorf("%s: %v", resource, err)
		}
		for _, action := range client.Actions() {
			if action.GetResource().Resource == resource && action.GetVerb() != "get" {
				t.Errorf("%s: %s", resource, action.GetVerb())
			}
		}
	}
}

// A replica that comes second is no error, and a slice of IPv6 addresses says so.
func TestEnsureKubernetesComesSecond(t *testing.T) {
	ctx, client := t.Context(), fake.NewClientset()
	servers := []netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:443")}
	if err := ranged("fd00::/112").EnsureKubernetes(ctx, client, servers...); err != nil {
		t.Fatal(err)
	}
	slice, err := client.DiscoveryV1().EndpointSlices("default").Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil || slice.AddressType != "IPv6" || !*slice.Endpoints[0].Conditions.Ready {
		t.Errorf("%v, %v", slice, err)
	}
	resource := corev1.Resource("x")
	for _, second := range []error{apierrors.NewAlreadyExists(resource, "kubernetes"), apierrors.NewConflict(resource, "kubernetes", nil)} {
		client := fake.NewClientset()
		client.PrependReactor("create", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, second })
		if err := ranged("fd00::/112").EnsureKubernetes(ctx, client, servers...); err != nil {
			t.Error(err)
		}
	}
}

// Fields that a type does not have are dropped if the client left them as they were.
func TestDroppedByType(t *testing.T) {
	external := func(change func(*corev1.ServiceSpec)) *corev1.Service {
		return service("x", func(s *corev1.ServiceSpec) {
			s.Type, s.ClusterIP, s.ClusterIPs = corev1.ServiceTypeExternalName, "10.0.0.1", []string{"10.0.0.1"}
			s.IPFamilies, s.IPFamilyPolicy = []corev1.IPFamily{corev1.IPv4Protocol}, ptr.To(corev1.IPFamilyPolicySingleStack)
			change(s)
		})
	}
	was := external(func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeClusterIP })
	for name, c := range map[string]struct {
		change func(*corev1.ServiceSpec)
		want   string // what is left
	}{
		"nothing changed":       {func(*corev1.ServiceSpec) {}, " [] [] false"},
		"another clusterIP":     {func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.2" }, "10.0.0.2 [10.0.0.1] [] false"},
		"other clusterIPs":      {func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.0.0.2"} }, "10.0.0.1 [10.0.0.2] [] false"},
		"other families":        {func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }, " [] [IPv6] false"},
		"another policy":        {func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack) }, " [] [] true"},
		"a type with fields":    {func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort }, "10.0.0.1 [10.0.0.1] [IPv4] true"},
		"no clusterIP any more": {func(s *corev1.ServiceSpec) { s.ClusterIP = "" }, " [10.0.0.1] [] false"},
	} {
		s := external(c.change)
		dropByType(s, was)
		if got := fmt.Sprint(s.Spec.ClusterIP, " ", s.Spec.ClusterIPs, " ", s.Spec.IPFamilies, " ", s.Spec.IPFamilyPolicy != nil); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	again := external(func(*corev1.ServiceSpec) {})
	if dropByType(again, external(func(*corev1.ServiceSpec) {})); again.Spec.ClusterIP == "" || again.Spec.IPFamilies == nil {
		t.Errorf("it was an ExternalName before, with these fields: %+v", again.Spec)
	}

	balancer := func(change func(*corev1.ServiceSpec)) *corev1.Service {
		return service("x", func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort = corev1.ServiceTypeLoadBalancer, 30001
			s.ExternalTrafficPolicy, s.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 30002
			s.AllocateLoadBalancerNodePorts, s.LoadBalancerClass = ptr.To(true), ptr.To("a/b")
			change(s)
		})
	}
	const cluster = corev1.ServiceTypeClusterIP
	for name, c := range map[string]struct {
		change func(*corev1.ServiceSpec)
		want   string // node port, health checks, allocation, class, policy
	}{
		"still a balancer": {func(*corev1.ServiceSpec) {}, "30001 30002 true a/b Local"},
		"a cluster IP":     {func(s *corev1.ServiceSpec) { s.Type = cluster }, "0 0 - - "},
		"node ports":       {func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort }, "30001 0 - - Local"},
		"another port":     {func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = cluster, 30003 }, "30003 0 - - "},
		"no port":          {func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = cluster, 0 }, "0 0 - - "},
		"other checks":     {func(s *corev1.ServiceSpec) { s.Type, s.HealthCheckNodePort = cluster, 30003 }, "0 30003 - - "},
		"other allocation": {func(s *corev1.ServiceSpec) { s.Type, s.AllocateLoadBalancerNodePorts = cluster, ptr.To(false) }, "0 0 false - "},
		"another class":    {func(s *corev1.ServiceSpec) { s.Type, s.LoadBalancerClass = cluster, ptr.To("c/d") }, "0 0 - c/d "},
		"external IPs":     {func(s *corev1.ServiceSpec) { s.Type, s.ExternalIPs = cluster, []string{"192.0.2.1"} }, "0 0 - - Local"},
		"another policy": {func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalTrafficPolicy = cluster, corev1.ServiceExternalTrafficPolicyCluster
		}, "0 0 - - Cluster"},
	} {
		s := balancer(c.change)
		dropByType(s, balancer(func(*corev1.ServiceSpec) {}))
		allocate := "-"
		if p := s.Spec.AllocateLoadBalancerNodePorts; p != nil {
			allocate = fmt.Sprint(*p)
		}
		got := fmt.Sprint(s.Spec.Ports[0].NodePort, " ", s.Spec.HealthCheckNodePort, " ", allocate, " ", ptr.Deref(s.Spec.LoadBalancerClass, "-"), " ", s.Spec.ExternalTrafficPolicy)
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	// Without node ports before, those of the new Service are the client's.
	s := balancer(func(s *corev1.ServiceSpec) { s.Type = cluster })
	if dropByType(s, balancer(func(s *corev1.ServiceSpec) { s.Type = cluster })); s.Spec.Ports[0].NodePort != 30001 || s.Spec.HealthCheckNodePort != 30002 {
		t.Errorf("%+v", s.Spec)
	}
}

func TestWhatServicesHold(t *testing.T) {
	full := func(change func(*corev1.ServiceSpec)) *corev1.Service {
		return service("x", func(s *corev1.ServiceSpec) {
			s.ClusterIP, s.ClusterIPs = "10.0.0.1", []string{"10.0.0.1", "fd00::1"}
			s.Type, s.Ports[0].NodePort, s.HealthCheckNodePort = corev1.ServiceTypeNodePort, 30001, 30002
			change(s)
		})
	}
	for name, c := range map[string]struct {
		s          *corev1.Service
		ips, ports int
	}{
		"nothing":          {nil, 0, 0},
		"all":              {full(func(*corev1.ServiceSpec) {}), 2, 2},
		"an older one":     {full(func(s *corev1.ServiceSpec) { s.ClusterIPs = nil }), 1, 2},
		"an ExternalName":  {full(func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeExternalName }), 0, 0},
		"headless":         {full(func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }), 0, 2},
		"a cluster IP":     {full(func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeClusterIP }), 2, 0},
		"no node ports":    {full(func(s *corev1.ServiceSpec) { s.Ports[0].NodePort, s.HealthCheckNodePort = 0, 0 }), 2, 0},
		"no valid address": {full(func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = "x", []string{"y"} }), 0, 2},
	} {
		if ips, ports := ipsOf(c.s), portsOf(c.s); len(ips) != c.ips || len(ports) != c.ports {
			t.Errorf("%s: %v, %v", name, ips, ports)
		}
	}
}

// The address of the network is none for Services, and that for broadcast of IPv4.
func TestUsableAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"10.0.0.0": false, "10.0.0.1": true, "10.0.0.6": true, "10.0.0.7": false, "10.0.0.8": false, "9.255.255.255": false,
		"fd00::": false, "fd00::1": true, "fd00::7": true, "fd00::8": false,
	} {
		ip := netip.MustParseAddr(text)
		within := "10.0.0.0/29"
		if ip.Is6() {
			within = "fd00::/125"
		}
		if got := ranged(within).addresses[0].usable(ip); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for within, want := range map[string]int64{"10.0.0.0/29": 6, "10.0.0.0/30": 2, "fd00::/125": 7, "fd00::/67": 1<<61 - 1, "fd00::/66": 1<<62 - 1, "fd00::/65": 1<<62 - 1, "fd00::/48": 1<<62 - 1} {
		if got := ranged(within).addresses[0].size(); got != want {
			t.Errorf("%s has %d addresses", within, got)
		}
	}
	for size, want := range map[int64]int64{2: 0, 16: 0, 17: 16, 30: 16, 254: 16, 272: 17, 4094: 255, 4096: 256, 4112: 256, 1 << 40: 256} {
		if got := staticAddresses(size); got != want {
			t.Errorf("%d of %d addresses are left, want %d", got, size, want)
		}
	}
}

// The lower part of a range is left to clients that ask for an address, while others are
// free; every address is found.
func TestAllAddressesAreAllocated(t *testing.T) {
	for within, low := range map[string]string{"10.0.0.0/27": "10.0.0.16", "fd00::/124": "fd00::"} {
		r := start(t, etcdtest.Prefix(t), within)
		from, seen := r.addresses[0], map[netip.Addr]bool{}
		for i := range from.size() {
			ip, uid, err := from.next(t.Context(), service("x", nil))
			if err != nil || uid == "" || seen[ip] || !from.usable(ip) {
				t.Fatalf("address %d is %v: %v", i, ip, err)
			}
			seen[ip] = true
			if upper := ip.Compare(netip.MustParseAddr(low)) > 0; upper != (i < from.size()-staticAddresses(from.size())) {
				t.Errorf("address %d is %v", i, ip)
			}
		}
		if ip, _, err := from.next(t.Context(), service("x", nil)); !errors.Is(err, errFull) {
			t.Errorf("%s has another address: %v, %v", within, ip, err)
		}
	}
}

func TestReleasedAddresses(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	from, ip, s := r.addresses[0], netip.MustParseAddr("10.0.0.3"), service("x", nil)
	if err := from.release(t.Context(), ip, "none"); err != nil {
		t.Errorf("an address that is free: %v", err)
	}
	uid, err := from.allocate(t.Context(), ip, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.allocate(t.Context(), ip, s); !errors.Is(err, errAddressTaken) {
		t.Errorf("allocated again: %v", err)
	}
	if err := from.release(t.Context(), ip, "another"); err != nil {
		t.Errorf("an address of another: %v", err)
	}
	if got, err := from.uid(t.Context(), ip, s); err != nil || got != uid {
		t.Errorf("it is %q, not %q: %v", got, uid, err)
	}
	if got, err := from.uid(t.Context(), ip, service("y", nil)); err != nil || got != "" {
		t.Errorf("another Service has %q: %v", got, err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := from.release(stopped, ip, uid); err == nil || !strings.HasPrefix(err.Error(), "releasing cluster IP 10.0.0.3 failed: ") {
		t.Errorf("without an answer: %v", err)
	}
	if _, err := from.uid(stopped, ip, s); err == nil {
		t.Error("the UID is known without an answer")
	}
	if err := from.release(t.Context(), ip, uid); err != nil {
		t.Error(err)
	}
	if got, err := from.uid(t.Context(), ip, s); err != nil || got != "" {
		t.Errorf("left is %q: %v", got, err)
	}
}

// A write is repeated only if something was allocated that repair may have released.
func TestRequirement(t *testing.T) {
	a := &Allocator{epochKey: "key"}
	for name, c := range map[string]struct {
		allocate func(*holdings)
		repaired bool
	}{
		"nothing": {func(*holdings) {}, false},
		"an IP":   {func(h *holdings) { h.ips = map[netip.Addr]types.UID{netip.MustParseAddr("10.0.0.1"): "a"} }, true},
		"a port":  {func(h *holdings) { h.ports = []int{30001} }, true},
	} {
		transaction := &transaction{epoch: 7}
		c.allocate(&transaction.got)
		r := a.requirement(transaction)
		if r.Key != "key" || r.Revision != 7 {
			t.Errorf("%s: %+v", name, r)
		}
		now, err := r.Changed(t.Context(), 9)
		if a.epoch.Load() != 9 || transaction.repaired != c.repaired || (err != nil) != c.repaired || err == nil && now != 9 {
			t.Errorf("%s: %d, %v, repaired %v", name, now, err, transaction.repaired)
		}
		if err != nil && !apierrors.HasStatusCause(err, store.CauseNothingWritten) {
			t.Errorf("%s: %v", name, err)
		}
		a.epoch.Store(0)
	}
}

// A request that repair comes in between of again and again ends with its error.
func TestTransactEnds(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	tries := 0
	failure := errors.New("repaired")
	if err := r.transact(t.Context(), func(_ context.Context, t *transaction) (runtime.Object, error) {
		tries++
		t.repaired = true
		return nil, failure
	}); !errors.Is(err, failure) || tries != attempts {
		t.Errorf("%d tries: %v", tries, err)
	}
	tries = 0
	if err := r.transact(t.Context(), func(context.Context, *transaction) (runtime.Object, error) {
		tries++
		return nil, failure
	}); !errors.Is(err, failure) || tries != 1 {
		t.Errorf("%d tries: %v", tries, err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	r.epoch.Store(-1)
	if err := r.transact(stopped, nil); !apierrors.IsInternalError(err) {
		t.Errorf("without an answer: %v", err)
	}
	if _, err := r.begin(t.Context(), service("x", nil), nil, false); !apierrors.IsInternalError(err) {
		t.Errorf("without a transaction: %v", err)
	}
	r.epoch.Store(5)
	if epoch, err := r.knownEpoch(stopped); epoch != 5 || err != nil {
		t.Errorf("%d, %v", epoch, err)
	}
}

// What a transaction holds is released if that is certain to be held no more.
func TestSettle(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	ctx := t.Context()
	refused := apierrors.NewForbidden(corev1.Resource("services"), "x", nil)
	for _, c := range []struct {
		name    string
		change  func(*transaction, *holdings) // the holdings are of the transaction, or lost by it
		err     error
		written bool // the Service that was written has them
		left    bool
	}{
		{"lost answer", func(t *transaction, h *holdings) { t.allocate(h); t.writing = true }, errors.New("timeout"), false, true},
		{"lost before it was written", func(t *transaction, h *holdings) { t.allocate(h) }, errors.New("timeout"), false, false},
		{"refused", func(t *transaction, h *holdings) { t.allocate(h); t.writing = true }, refused, false, false},
		{"deleted", func(t *transaction, h *holdings) { t.allocate(h); t.deleted = done(&holdings{}) }, nil, true, false},
		{"not deleted yet", func(t *transaction, h *holdings) { t.allocate(h); t.deleted = &holdings{} }, nil, true, true},
		{"written", func(t *transaction, h *holdings) { t.allocate(h) }, nil, true, true},
		{"not written", func(t *transaction, h *holdings) { t.allocate(h) }, nil, false, false},
		{"lost by it", func(t *transaction, h *holdings) { t.lost = h }, nil, false, false},
		{"kept by it", func(t *transaction, h *holdings) { t.lost = h }, nil, true, true},
		{"lost, but refused", func(t *transaction, h *holdings) { t.lost = h }, refused, false, true},
	} {
		s, err := r.create(service("x", nodePort))
		if err != nil {
			t.Fatal(err)
		}
		held, err := r.held(ctx, s)
		if err != nil {
			t.Fatal(err)
		}
		one := &transaction{ctx: ctx}
		c.change(one, held)
		if one.deleted != nil {
			r.deleting.Store("deleted", one.deleted)
		}
		other := &holdings{}
		r.deleting.Store("other", other)
		if !c.written {
			s = service("x", nil)
		}
		r.settle(one, s, c.err)
		if ips, ports := r.allocated(); (len(ips) == 1) != c.left || (len(ports) == 1) != c.left {
			t.Errorf("%s: left are %v, %v", c.name, ips, ports)
		}
		if _, ok := r.deleting.Load("deleted"); ok {
			t.Errorf("%s: what was noted of the deletion is kept", c.name)
		}
		if _, ok := r.deleting.Load("other"); !ok {
			t.Errorf("%s: what another deletion has noted is gone", c.name)
		}
		r.pass(1) // the Service gets all back
		r.remove("x")
	}
}

// allocate lets a transaction have allocated what a Service holds.
func (t *transaction) allocate(h *holdings) {
	t.got.ips, t.got.ports, t.got.epoch = h.ips, h.ports, h.epoch
}

func done(h *holdings) *holdings {
	h.done.Store(true)
	return h
}

// Addresses and ports leak by themselves, and at the ends of the range.
func TestRepairReleases(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	ctx := t.Context()
	leak := map[string]func(){
		"an address": func() {
			if _, err := r.addresses[0].allocate(ctx, netip.MustParseAddr("10.0.0.3"), service("gone", nil)); err != nil {
				t.Fatal(err)
			}
		},
		"ports": func() {
			if err := r.ports.change(ctx, func(b *bitmap) (bool, error) {
				b.set(30000, 1)
				b.set(30063, 1)
				return true, nil
			}); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, make := range leak {
		make()
		for n, left := range []bool{true, true, false} {
			if n > 0 {
				r.pass(n)
			}
			ips, ports := r.allocated()
			if (len(ips)+len(ports) > 0) != left {
				t.Errorf("%s, after %d passes: %v, %v", name, n, ips, ports)
			}
			if left && name == "ports" && !slices.Equal(ports, []int{30000, 30063}) {
				t.Errorf("allocated are %v", ports)
			}
		}
	}
	// A leak is released only if the pass before has seen the same one.
	found, err := r.repair(ctx, leaks{})
	if err != nil || len(found.ips) != 0 || len(found.ports) != 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	leak["an address"]()
	leak["ports"]()
	if found, err = r.repair(ctx, leaks{ips: map[types.UID]netip.Addr{"another": netip.MustParseAddr("10.0.0.3")}, ports: map[int]bool{30001: true}}); err != nil || len(found.ips) != 1 || len(found.ports) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
	if ips, ports := r.allocated(); len(ips) != 1 || len(ports) != 2 {
		t.Errorf("left are %v, %v", ips, ports)
	}
	r.pass(2)
	r.consistent()
}

// Ports that Services have are allocated, those outside the range are not.
func TestRepairAllocatesPorts(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	state, err := r.readState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []int32{29999, 30000, 30063, 30064} {
		state.services = append(state.services, *service("x", func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, port }))
	}
	log := etcdtest.Capture(t)
	for _, twice := range []bool{false, true} {
		if twice {
			state.services = append(state.services, state.services[1])
		}
		if err := r.allocateMissing(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		if text := log.String(); strings.Contains(text, "Two Services have the same node port") != twice {
			t.Errorf("%d Services: %s", len(state.services), text)
		}
	}
	if ips, ports := r.allocated(); len(ips) != 0 || !slices.Equal(ports, []int{30000, 30063}) {
		t.Errorf("allocated are %v, %v", ips, ports)
	}
	// Addresses of no range, and those of others, are left alone.
	for _, ip := range []string{"10.0.0.0", "10.0.1.1", "fd00::1"} {
		if err := r.allocateMissingIP(t.Context(), netip.MustParseAddr(ip), service("x", nil), nil); err != nil {
			t.Errorf("%s: %v", ip, err)
		}
	}
	for _, owner := range []string{"x", "y"} { // of another Service it is logged
		log, obj := etcdtest.Capture(t), r.addresses[0].object(netip.MustParseAddr("10.0.0.3"), service(owner, nil))
		if err := r.allocateMissingIP(t.Context(), netip.MustParseAddr("10.0.0.3"), service("x", nil), obj); err != nil {
			t.Error(err)
		}
		if text := log.String(); strings.Contains(text, "recreate the Service") != (owner == "y") {
			t.Errorf("allocated for %s: %s", owner, text)
		}
	}
	if ips, _ := r.allocated(); len(ips) != 0 {
		t.Errorf("allocated are %v", ips)
	}
}

// A deletion whose Service cannot be looked up is refused, and one that does not happen is forgotten.
func TestNotedDeletions(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	s, err := r.create(service("x", nodePort))
	if err != nil {
		t.Fatal(err)
	}
	kept := func() (n int) {
		r.deleting.Range(func(any, any) bool { n++; return true })
		return n
	}
	noted, end := r.noting(rest.ValidateAllObjectFunc)
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := noted(stopped, s); !apierrors.IsInternalError(err) || kept() != 0 {
		t.Errorf("without an answer: %v, %d noted", err, kept())
	}
	if err := noted(t.Context(), &corev1.Pod{}); err != nil || kept() != 0 {
		t.Errorf("another kind: %v, %d noted", err, kept())
	}
	if err := noted(t.Context(), s); err != nil || kept() != 1 {
		t.Errorf("%v, %d noted", err, kept())
	}
	if end(); kept() != 0 {
		t.Error("what was noted is kept")
	}
	refused := errors.New("refused")
	noted, end = r.noting(func(context.Context, runtime.Object) error { return refused })
	defer end()
	if err := noted(t.Context(), s); !errors.Is(err, refused) || kept() != 0 {
		t.Errorf("%v, %d noted", err, kept())
	}
	if noted, end := r.noting(nil); noted(t.Context(), s) != nil || kept() != 1 {
		t.Error("without a validation nothing is noted")
	} else {
		end()
	}
	r.consistent()
}
