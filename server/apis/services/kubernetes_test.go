package services

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// ranged returns an allocator of ranges without storage.
func ranged(ranges ...string) *Allocator {
	a := &Allocator{}
	for _, one := range ranges {
		a.addresses = append(a.addresses, &addresses{within: netip.MustParsePrefix(one)})
	}
	return a
}

// All of default/kubernetes follows the servers, and what is right is not written again.
func TestEnsureKubernetes(t *testing.T) {
	ctx, a, client := t.Context(), ranged("10.0.0.0/24"), fake.NewClientset()
	if err := a.EnsureKubernetes(ctx, client); err == nil {
		t.Error("no server is enough")
	}
	for _, servers := range [][]string{{"192.0.2.2:6443", "192.0.2.1:6443"}, {"192.0.2.1:6443", "192.0.2.2:6443"}, {"192.0.2.3:443"}} {
		var all []netip.AddrPort
		var wanted []string
		for _, text := range servers {
			all = append(all, netip.MustParseAddrPort(text))
			wanted = append(wanted, strings.Split(text, ":")[0])
		}
		slices.Sort(wanted)
		client.ClearActions()
		if err := a.EnsureKubernetes(ctx, client, all...); err != nil {
			t.Fatal(err)
		}
		var written []string
		for _, action := range client.Actions() {
			if action.GetVerb() != "get" {
				written = append(written, action.GetVerb()+" "+action.GetResource().Resource)
			}
		}
		t.Log(servers, written)
		if again := servers[0] == "192.0.2.1:6443"; again != (len(written) == 0) {
			t.Errorf("%v: written are %v", servers, written)
		}
		cidr, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil || !slices.Equal(cidr.Spec.CIDRs, []string{"10.0.0.0/24"}) || len(cidr.Status.Conditions) != 1 || cidr.Status.Conditions[0].Type != networkingv1.ServiceCIDRConditionReady {
			t.Errorf("%v, %v", cidr, err)
		}
		s, err := client.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil || s.Spec.ClusterIP != "10.0.0.1" || s.Spec.Ports[0].Port != 443 || s.Spec.Ports[0].TargetPort.IntValue() != int(all[0].Port()) {
			t.Errorf("%v, %v", s, err)
		}
		endpoints, err := client.CoreV1().Endpoints("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil || len(endpoints.Subsets) != 1 || endpoints.Subsets[0].Ports[0].Port != int32(all[0].Port()) {
			t.Fatalf("%v, %v", endpoints, err)
		}
		var got []string
		for _, address := range endpoints.Subsets[0].Addresses {
			got = append(got, address.IP)
		}
		slice, err := client.DiscoveryV1().EndpointSlices("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil || slice.AddressType != "IPv4" || *slice.Ports[0].Port != int32(all[0].Port()) {
			t.Fatalf("%v, %v", slice, err)
		}
		var sliced []string
		for _, one := range slice.Endpoints {
			sliced = append(sliced, one.Addresses...)
		}
		if !slices.Equal(got, wanted) || !slices.Equal(sliced, wanted) {
			t.Errorf("Endpoints have %v, the EndpointSlice has %v, not %v", got, sliced, wanted)
		}
	}
}

func TestEnsureKubernetesNamesWhatFails(t *testing.T) {
	for resource, what := range map[string]string{
		"servicecidrs": "ServiceCIDR kubernetes", "services": "Service default/kubernetes",
		"endpoints": "Endpoints default/kubernetes", "endpointslices": "EndpointSlice default/kubernetes",
	} {
		client := fake.NewClientset()
		client.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no room") })
		err := ranged("fd00::/112").EnsureKubernetes(t.Context(), client, netip.MustParseAddrPort("[2001:db8::1]:443"))
		if err == nil || err.Error() != "creating "+what+" failed: no room" {
			t.Errorf("%s: %v", resource, err)
		}
	}
}

func TestCreateKubernetes(t *testing.T) {
	ctx, a, client := t.Context(), ranged("10.0.0.0/24"), fake.NewClientset()
	for _, port := range []string{"6443", "443"} { // the second finds it
		if err := a.CreateKubernetes(ctx, client, netip.MustParseAddrPort("192.0.2.1:"+port)); err != nil {
			t.Error(err)
		}
		s, err := client.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil || s.Spec.ClusterIP != "10.0.0.1" || s.Spec.Ports[0].TargetPort.IntValue() != 6443 {
			t.Errorf("%v, %v", s, err)
		}
	}
	client.PrependReactor("get", "services", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
	if err := a.CreateKubernetes(ctx, client, netip.MustParseAddrPort("192.0.2.1:443")); err == nil {
		t.Error("an error counts as a Service")
	}
}

func TestOwnedAddresses(t *testing.T) {
	for name, c := range map[string]struct {
		parent *networkingv1.ParentReference
		wanted bool
	}{
		"its own":           {&networkingv1.ParentReference{Resource: "services", Namespace: "n", Name: "s"}, true},
		"no parent":         {nil, false},
		"another group":     {&networkingv1.ParentReference{Group: "g", Resource: "services", Namespace: "n", Name: "s"}, false},
		"another resource":  {&networkingv1.ParentReference{Resource: "gateways", Namespace: "n", Name: "s"}, false},
		"another namespace": {&networkingv1.ParentReference{Resource: "services", Namespace: "o", Name: "s"}, false},
		"another name":      {&networkingv1.ParentReference{Resource: "services", Namespace: "n", Name: "t"}, false},
	} {
		if got := owned(&networkingv1.IPAddress{Spec: networkingv1.IPAddressSpec{ParentRef: c.parent}}, "n", "s"); got != c.wanted {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// with returns a Service with addresses and families.
func with(policy corev1.IPFamilyPolicy, ips []string, families ...corev1.IPFamily) *corev1.Service {
	s := service("x", func(s *corev1.ServiceSpec) { s.ClusterIPs, s.IPFamilies, s.IPFamilyPolicy = ips, families, &policy })
	if len(ips) > 0 {
		s.Spec.ClusterIP = ips[0]
	}
	return s
}

// A Service that becomes single-stack loses what is second, unless the client changes it.
func TestServiceBecomesSingleStack(t *testing.T) {
	const single, two = corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack
	both, other := []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.1", "fd00::2"}
	for name, c := range map[string]struct {
		s, old        *corev1.Service
		ips, families int
	}{
		"both":               {with(single, both, "IPv4", "IPv6"), with(two, both, "IPv4", "IPv6"), 1, 1},
		"not single":         {with(two, both, "IPv4", "IPv6"), with(two, both, "IPv4", "IPv6"), 2, 2},
		"single before":      {with(single, both, "IPv4", "IPv6"), with(single, both, "IPv4", "IPv6"), 2, 2},
		"another address":    {with(single, other, "IPv4", "IPv6"), with(two, both, "IPv4", "IPv6"), 2, 1},
		"other families":     {with(single, both, "IPv6", "IPv4"), with(two, both, "IPv4", "IPv6"), 1, 2},
		"nothing to drop":    {with(single, nil), with(two, nil), 0, 0},
		"one of each":        {with(single, both[:1], "IPv4"), with(two, both[:1], "IPv4"), 1, 1},
		"client drops first": {with(single, both[:1], "IPv4"), with(two, both, "IPv4", "IPv6"), 1, 1},
	} {
		trimToSingle(c.s, c.old)
		if len(c.s.Spec.ClusterIPs) != c.ips || len(c.s.Spec.IPFamilies) != c.families {
			t.Errorf("%s: %v, %v", name, c.s.Spec.ClusterIPs, c.s.Spec.IPFamilies)
		}
	}
}

// An update keeps the families and addresses that it leaves out, and no others.
func TestLeftOutFamiliesAndAddresses(t *testing.T) {
	a := ranged("10.0.0.0/24", "fd00::/112")
	selected := func(s *corev1.Service) *corev1.Service {
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.Selector = "None", []string{"None"}, map[string]string{"a": "b"}
		return s
	}
	old := selected(with(corev1.IPFamilyPolicySingleStack, nil, "IPv6"))
	for _, families := range [][]corev1.IPFamily{nil, {"IPv4"}} {
		s := selected(with(corev1.IPFamilyPolicySingleStack, nil, families...))
		s.Spec.IPFamilyPolicy = nil
		a.setFamilies(s, old)
		wanted := families
		if families == nil {
			wanted = []corev1.IPFamily{"IPv6"}
		}
		if !slices.Equal(s.Spec.IPFamilies, wanted) || ptr.Deref(s.Spec.IPFamilyPolicy, "") != corev1.IPFamilyPolicySingleStack {
			t.Errorf("%v became %v, %v", families, s.Spec.IPFamilies, s.Spec.IPFamilyPolicy)
		}
	}
	both := []string{"10.0.0.1", "fd00::1"}
	for _, c := range []struct{ ips, wanted []string }{{nil, both}, {both[:1], both[:1]}, {[]string{"10.0.0.2"}, []string{"10.0.0.2"}}} {
		s := with("", c.ips)
		keepIPs(s, with("", both))
		if !slices.Equal(s.Spec.ClusterIPs, c.wanted) || s.Spec.ClusterIP != c.wanted[0] {
			t.Errorf("%v became %s, %v", c.ips, s.Spec.ClusterIP, s.Spec.ClusterIPs)
		}
	}
}

// Older clients write clusterIP alone; those that change clusterIPs as well mean what they say.
func TestSyncedAddresses(t *testing.T) {
	both, others := []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0.2", "fd00::2"}
	for name, c := range map[string]struct {
		ip   string
		ips  []string
		old  *corev1.Service
		want []string
	}{
		"new":                {"10.0.0.1", nil, nil, both[:1]},
		"unchanged":          {"10.0.0.1", both, with("", both), both},
		"by an older client": {"10.0.0.2", both, with("", both), others[:1]},
		"by a newer client":  {"10.0.0.2", others, with("", both), others},
		"removed":            {"", both, with("", both), nil},
	} {
		s := with("", c.ips)
		s.Spec.ClusterIP = c.ip
		if syncIPs(s, c.old); !slices.Equal(s.Spec.ClusterIPs, c.want) {
			t.Errorf("%s: %v", name, s.Spec.ClusterIPs)
		}
	}
}

func TestRefusedOptions(t *testing.T) {
	good := Options{Backend: &store.Backend{}, ClusterIPs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, NodePorts: PortRange{30000, 30063}}
	for name, change := range map[string]func(*Options){
		"no backend":        func(o *Options) { o.Backend = nil },
		"no addresses":      func(o *Options) { o.ClusterIPs = nil },
		"port 0":            func(o *Options) { o.NodePorts.First = 0 },
		"port 65536":        func(o *Options) { o.NodePorts.Last = 65536 },
		"the wrong way":     func(o *Options) { o.NodePorts = PortRange{5, 4} },
		"no ports":          func(o *Options) { o.NodePorts = PortRange{} },
		"three of a family": func(o *Options) { o.ClusterIPs = slices.Repeat(o.ClusterIPs, 3) },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("accepted: %s", name)
		}
	}
}

// nodePort asks for any node port.
func nodePort(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort }

// What is not held after a request is released, whatever its outcome, also after a repair.
func TestReleases(t *testing.T) {
	ctx := context.Background()
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	created := func() *corev1.Service {
		t.Helper()
		s, err := r.create(service("x", nodePort))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	none := func(what string) {
		t.Helper()
		if ips, ports := r.allocated(); len(ips) != 0 || len(ports) != 0 {
			t.Errorf("%s: left are %v, %v", what, ips, ports)
		}
	}
	created()
	if _, err := r.update("x", func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}
	}); err != nil {
		t.Fatal(err)
	}
	none("it became an ExternalName")
	r.remove("x")

	if _, err := r.options.Backend.Client().Put(ctx, r.epochKey, "repaired"); err != nil {
		t.Fatal(err)
	}
	refuse := func(context.Context, runtime.Object) error { return errors.New("refused") }
	if _, err := r.createWith(ctx, service("x", nodePort), refuse, &metav1.CreateOptions{}); err == nil {
		t.Error("it was to be refused")
	}
	none("the creation was refused")

	s := created()
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		changed := old.DeepCopyObject().(*corev1.Service)
		changed.Spec.Type, changed.Spec.Ports[0].NodePort = corev1.ServiceTypeClusterIP, 0
		return changed, nil
	})
	if _, _, err := r.storage.Update(in(ctx), "x", info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	r.consistent()

	held, err := r.held(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	r.deleting.Store(s.UID, held)
	r.storage.AfterDelete(s, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	r.consistent()
	r.storage.AfterDelete(s, nil)
	none("it was deleted")

	r.pass(1) // the Service is still there, and gets all back
	r.consistent()
	if held, err = r.held(ctx, s); err != nil {
		t.Fatal(err)
	}
	done := &transaction{ctx: ctx}
	done.got.ips, done.got.ports, done.got.epoch = held.ips, held.ports, held.epoch
	r.settle(done, s, nil)
	r.consistent()
	r.settle(done, service("x", nil), nil)
	none("the Service that was written has others")
}

// Repair reports what storage says.
func TestRepairFails(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	before := leaks{ports: map[int]bool{30001: true}}
	if after, err := r.repair(ctx, before); err == nil || !after.ports[30001] {
		t.Errorf("%v, %v", after, err)
	}
	err := r.allocateMissingIP(ctx, netip.MustParseAddr("10.0.0.3"), service("x", nil), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "allocating cluster IP 10.0.0.3 failed: ") {
		t.Error(err)
	}
	if err := r.Repair(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
