package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// replica is one server process: an allocator and the wrapped store, on an etcd that
// others may share.
type replica struct {
	tb testing.TB
	*Allocator
	storage *serviceStorage
}

func start(tb testing.TB, prefix, ips string) *replica {
	tb.Helper()
	ranges, err := ParseClusterIPs(ips)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	backend, err := store.Open(ctx, store.Config{Config: storagebackend.Config{
		Prefix: prefix, Transport: storagebackend.TransportConfig{ServerList: []string{etcdtest.Endpoint(tb)}},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	r := &replica{tb: tb}
	if r.Allocator, err = New(Options{Backend: backend, ClusterIPs: ranges, NodePorts: PortRange{30000, 30063}}); err != nil {
		tb.Fatal(err)
	}
	_, err = builtin.New(builtin.Options{Backend: backend}, builtin.Resource{
		Version: "v1", Plural: "services", Singular: "service", Kind: "Service", Namespaced: true, Prefix: servicesFolder,
		New: func() runtime.Object { return &corev1.Service{} }, NewList: func() runtime.Object { return &corev1.ServiceList{} },
		Strategy: builtin.Strategy{Name: apivalidation.NameIsDNS1035Label, Unconditional: true},
		Wrap: func(s *genericregistry.Store) rest.Storage {
			r.storage = r.Wrap(s).(*serviceStorage)
			return r.storage
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		r.Close()
		cancel()
		if err := backend.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

func in(ctx context.Context) context.Context { return request.WithNamespace(ctx, "default") }

// service returns a Service with the defaults that decoding sets.
func service(name string, change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "a", Port: 80, Protocol: "TCP"}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func (r *replica) create(s *corev1.Service) (*corev1.Service, error) {
	return r.createWith(context.Background(), s, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
}

func (r *replica) createWith(ctx context.Context, s *corev1.Service, validate rest.ValidateObjectFunc, o *metav1.CreateOptions) (*corev1.Service, error) {
	obj, err := r.storage.Create(in(ctx), s, validate, o)
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Service), nil
}

func (r *replica) update(name string, change func(*corev1.Service)) (*corev1.Service, error) {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		s := old.DeepCopyObject().(*corev1.Service)
		change(s)
		return s, nil
	})
	obj, _, err := r.storage.Update(in(context.Background()), name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Service), nil
}

func (r *replica) delete(name string) error {
	_, _, err := r.storage.Delete(in(context.Background()), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	return err
}

func (r *replica) remove(name string) {
	r.tb.Helper()
	if err := r.delete(name); err != nil {
		r.tb.Error(err)
	}
}

// allocated are the addresses and ports that etcd has as allocated.
func (r *replica) allocated() (ips map[string]types.UID, ports []int) {
	r.tb.Helper()
	state, err := r.readState(context.Background())
	if err != nil {
		r.tb.Fatal(err)
	}
	ips = map[string]types.UID{}
	for i := range state.ips {
		ips[state.ips[i].Name] = state.ips[i].UID
	}
	for port := r.ports.ports.First; port <= r.ports.ports.Last; port++ {
		if state.bits.has(port) {
			ports = append(ports, port)
		}
	}
	return ips, ports
}

// consistent checks that exactly what Services hold is allocated, and nothing twice.
func (r *replica) consistent() {
	r.tb.Helper()
	list, err := r.listServices(context.Background())
	if err != nil {
		r.tb.Fatal(err)
	}
	ips, ports := r.allocated()
	held, heldPorts := map[string]string{}, map[int]string{}
	for i := range list {
		for ip := range ipsOf(&list[i]) {
			if other := held[ip.String()]; other != "" {
				r.tb.Errorf("%s and %s have %s", other, list[i].Name, ip)
			}
			held[ip.String()] = list[i].Name
			if ips[ip.String()] == "" {
				r.tb.Errorf("%s of %s is not allocated", ip, list[i].Name)
			}
		}
		for port := range portsOf(&list[i]) {
			if other := heldPorts[port]; other != "" {
				r.tb.Errorf("%s and %s have port %d", other, list[i].Name, port)
			}
			heldPorts[port] = list[i].Name
		}
	}
	if len(held) != len(ips) || len(heldPorts) != len(ports) {
		r.tb.Errorf("allocated are %v and %v, held are %v and %v", ips, ports, held, heldPorts)
	}
}

const dual = "10.0.0.0/24,fd00::/112"

// The answers are those of kube-apiserver v1.37.1.
func TestCreate(t *testing.T) {
	one, two := start(t, etcdtest.Prefix(t), "10.0.0.0/28"), start(t, etcdtest.Prefix(t), dual)
	for _, r := range []*replica{one, two} {
		if _, err := r.create(service("kubernetes", func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.1" })); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		r      *replica
		change func(*corev1.ServiceSpec)
		want   string // the families and policy, or the error
	}{
		"plain":             {one, nil, "[IPv4] SingleStack 1"},
		"plain dual":        {two, nil, "[IPv4] SingleStack 1"},
		"prefer":            {one, func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack) }, "[IPv4] PreferDualStack 1"},
		"prefer dual":       {two, func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack) }, "[IPv4 IPv6] PreferDualStack 2"},
		"require":           {one, func(s *corev1.ServiceSpec) { s.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack) }, `spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`},
		"v6":                {one, func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{"IPv6"} }, `spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`},
		"v6 dual":           {two, func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{"IPv6"} }, "[IPv6] SingleStack 1"},
		"two families":      {one, func(s *corev1.ServiceSpec) { s.IPFamilies = []corev1.IPFamily{"IPv4", "IPv6"} }, `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified`},
		"headless":          {one, func(s *corev1.ServiceSpec) { s.ClusterIP = "None" }, "[IPv4 IPv6] RequireDualStack 1"},
		"headless selector": {one, func(s *corev1.ServiceSpec) { s.ClusterIP, s.Selector = "None", map[string]string{"a": "b"} }, "[IPv4] SingleStack 1"},
		"headless v6":       {one, func(s *corev1.ServiceSpec) { s.ClusterIP, s.IPFamilies = "None", []corev1.IPFamily{"IPv6"} }, "[IPv6 IPv4] RequireDualStack 1"},
		"headless NodePort": {one, func(s *corev1.ServiceSpec) { s.ClusterIP, s.Type = "None", "NodePort" }, `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`},
		"external":          {one, func(s *corev1.ServiceSpec) { s.Type = "ExternalName" }, "[]  0"},
		"external IP":       {one, func(s *corev1.ServiceSpec) { s.Type, s.ClusterIP = "ExternalName", "10.0.0.5" }, "spec.clusterIPs: Forbidden: may not be set for ExternalName services"},
		"IPs alone":         {one, func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"10.0.0.5"} }, "spec.clusterIPs: Invalid value: [\"10.0.0.5\"]: must be empty when `clusterIP` is not specified"},
		"bad IP":            {one, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.500" }, `spec.clusterIPs[0]: Invalid value: "10.0.0.500": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		"padded IP":         {one, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.05" }, `spec.clusterIPs[0]: Invalid value: "10.0.0.05": must not have leading 0s`},
		"v6 IP":             {one, func(s *corev1.ServiceSpec) { s.ClusterIP = "fd00::5" }, `spec.clusterIPs[0]: Invalid value: ["fd00::5"]: IPv6 is not configured on this cluster`},
		"v6 IP dual":        {two, func(s *corev1.ServiceSpec) { s.ClusterIP = "fd00:0::5" }, "[IPv6] SingleStack 1"},
		"out of range":      {one, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.9.0.5" }, `spec.clusterIPs: Invalid value: ["10.9.0.5"]: failed to allocate IP 10.9.0.5: the provided network does not match the current range`},
		"network":           {one, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.0" }, `spec.clusterIPs: Invalid value: ["10.0.0.0"]: failed to allocate IP 10.0.0.0: the provided network does not match the current range`},
		"broadcast":         {one, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.15" }, `spec.clusterIPs: Invalid value: ["10.0.0.15"]: failed to allocate IP 10.0.0.15: the provided network does not match the current range`},
		"taken":             {one, func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.1" }, `spec.clusterIPs: Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: provided IP is already allocated`},
		"port out of range": {one, func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = "NodePort", 80 }, "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-30063"},
		"port twice": {one, func(s *corev1.ServiceSpec) {
			s.Type, s.Ports = "NodePort", []corev1.ServicePort{{Name: "a", Port: 80, Protocol: "TCP", NodePort: 30001}, {Name: "b", Port: 81, Protocol: "TCP", NodePort: 30001}}
		}, "spec.ports[1].nodePort: Invalid value: 30001: provided port is already allocated"},
		"health check taken": {one, func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalTrafficPolicy, s.HealthCheckNodePort, s.Ports[0].NodePort = "LoadBalancer", "Local", 30001, 30001
		}, "failed to allocate requested HealthCheck NodePort 30001: provided port is already allocated"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := test.r.create(service("x", test.change))
			text := ""
			if err != nil {
				text = err.Error()
			} else {
				text = fmt.Sprintf("%v %v %d", got.Spec.IPFamilies, ptr.Deref(got.Spec.IPFamilyPolicy, ""), len(got.Spec.ClusterIPs))
				test.r.remove("x")
			}
			if !strings.HasSuffix(text, test.want) {
				t.Errorf("got %s, want %s", text, test.want)
			}
			test.r.consistent()
		})
	}
}

func TestPortsAreShared(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/24")
	s, err := r.create(service("x", func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalTrafficPolicy = "LoadBalancer", "Local"
		s.Ports = []corev1.ServicePort{{Name: "a", Port: 80, Protocol: "TCP"}, {Name: "b", Port: 80, Protocol: "UDP", NodePort: 30013}, {Name: "c", Port: 81, Protocol: "UDP"}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Spec.Ports; p[0].NodePort != 30013 || p[2].NodePort == 30013 || p[2].NodePort == 0 || s.Spec.HealthCheckNodePort == 0 || s.Spec.HealthCheckNodePort == p[2].NodePort {
		t.Errorf("got %+v, %d", p, s.Spec.HealthCheckNodePort)
	}
	r.consistent()
	r.remove("x")
	if ips, ports := r.allocated(); len(ips) != 0 || len(ports) != 0 {
		t.Errorf("left are %v, %v", ips, ports)
	}
}

// TestPortsOfExternalNames writes the node port of another Service into one that has none.
func TestPortsOfExternalNames(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	asks := func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = "NodePort", 30001 }
	if _, err := r.create(service("owner", asks)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.create(service("thief", func(s *corev1.ServiceSpec) {
		s.Type, s.ExternalName, s.Ports[0].NodePort = "ExternalName", "a.b", 30001
	})); err != nil {
		t.Fatal(err)
	}
	if _, err := r.update("thief", func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalName = "NodePort", "" }); err == nil {
		t.Error("two Services have node port 30001 after an update of the type")
	}
	r.remove("thief")
	if _, err := r.create(service("second", asks)); err == nil {
		t.Error("two Services have node port 30001 after the deletion of one that did not hold it")
	}
	r.consistent()
}

func TestDryRunAllocatesNothing(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	s, err := r.createWith(context.Background(), service("x", func(s *corev1.ServiceSpec) {
		s.Type, s.IPFamilyPolicy = "NodePort", ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}), rest.ValidateAllObjectFunc, &metav1.CreateOptions{DryRun: []string{"All"}})
	if err != nil || s.Spec.ClusterIP != "10.0.0.0" || s.Spec.ClusterIPs[1] != "fd00::" || s.Spec.Ports[0].NodePort != 30065 {
		t.Errorf("got %+v, %v", s, err)
	}
	r.consistent()
	if _, err := r.create(service("x", func(s *corev1.ServiceSpec) { s.Type = "NodePort" })); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.storage.Delete(in(context.Background()), "x", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{DryRun: []string{"All"}}); err != nil {
		t.Fatal(err)
	}
	r.consistent()
}

// The steps and answers are those of kube-apiserver v1.37.1.
func TestUpdate(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	created, err := r.create(service("x", nil))
	if err != nil {
		t.Fatal(err)
	}
	ip, other := created.Spec.ClusterIP, "10.0.0.77"
	if ip == other { // it is chosen at random
		other = "10.0.0.78"
	}
	var was *corev1.Service
	for _, step := range []struct {
		name   string
		change func(*corev1.Service)
		fails  string
		check  func(s *corev1.Service) bool
	}{
		{"to NodePort", func(s *corev1.Service) { s.Spec.Type = "NodePort" }, "", func(s *corev1.Service) bool { return s.Spec.ClusterIP == ip && s.Spec.Ports[0].NodePort != 0 }},
		{"left out", func(s *corev1.Service) {
			s.Spec = corev1.ServiceSpec{Type: "NodePort", Ports: []corev1.ServicePort{{Name: "a", Port: 90, Protocol: "TCP"}}}
		}, "", func(s *corev1.Service) bool {
			return s.Spec.ClusterIPs[0] == ip && s.Spec.Ports[0].NodePort == was.Spec.Ports[0].NodePort
		}},
		{"renamed", func(s *corev1.Service) {
			s.Spec.Ports = []corev1.ServicePort{{Name: "b", Port: 90, Protocol: "TCP"}}
		}, "", func(s *corev1.Service) bool {
			return s.Spec.Ports[0].NodePort != 0 && s.Spec.Ports[0].NodePort != was.Spec.Ports[0].NodePort
		}},
		{"to Local", func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalTrafficPolicy = "LoadBalancer", "Local" }, "", func(s *corev1.Service) bool { return s.Spec.HealthCheckNodePort != 0 }},
		{"without ports", func(s *corev1.Service) {
			s.Spec.AllocateLoadBalancerNodePorts, s.Spec.Ports[0].NodePort = ptr.To(false), 0
		}, "", func(s *corev1.Service) bool { return s.Spec.Ports[0].NodePort == 0 }},
		{"to ClusterIP", func(s *corev1.Service) { s.Spec.Type = "ClusterIP" }, "", func(s *corev1.Service) bool {
			return s.Spec.Ports[0].NodePort == 0 && s.Spec.HealthCheckNodePort == 0 && s.Spec.ExternalTrafficPolicy == "" && s.Spec.AllocateLoadBalancerNodePorts == nil
		}},
		{"another IP", func(s *corev1.Service) { s.Spec.ClusterIP = other }, `spec.clusterIPs[0]: Invalid value: ["` + other + `"]: may not change once set`, nil},
		{"prefer", func(s *corev1.Service) { s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack) }, "", func(s *corev1.Service) bool { return len(s.Spec.ClusterIPs) == 2 && s.Spec.ClusterIPs[0] == ip }},
		{"families left out", func(s *corev1.Service) { s.Spec.IPFamilies, s.Spec.IPFamilyPolicy, s.Spec.ClusterIPs = nil, nil, nil }, "", func(s *corev1.Service) bool { return len(s.Spec.ClusterIPs) == 2 }},
		{"single", func(s *corev1.Service) { s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack) }, "", func(s *corev1.Service) bool { return len(s.Spec.ClusterIPs) == 1 && len(s.Spec.IPFamilies) == 1 }},
		{"to ExternalName", func(s *corev1.Service) { s.Spec.Type = "ExternalName" }, "", func(s *corev1.Service) bool {
			return s.Spec.ClusterIP == "" && s.Spec.IPFamilies == nil && s.Spec.IPFamilyPolicy == nil
		}},
		{"back", func(s *corev1.Service) { s.Spec.Type = "LoadBalancer" }, "", func(s *corev1.Service) bool { return s.Spec.ClusterIP != "" && s.Spec.Ports[0].NodePort != 0 }},
	} {
		got, err := r.update("x", step.change)
		switch {
		case step.fails != "":
			if err == nil || !strings.HasSuffix(err.Error(), step.fails) {
				t.Errorf("%s: got %v", step.name, err)
			}
		case err != nil:
			t.Fatalf("%s: %v", step.name, err)
		case !step.check(got):
			t.Errorf("%s: got %+v", step.name, got.Spec)
		default:
			was = got
		}
		r.consistent()
	}
}

// Two replicas share 14 addresses. No address is used twice, none is lost.
func TestReplicasRaceForTheLastAddress(t *testing.T) {
	prefix := etcdtest.Prefix(t)
	replicas := []*replica{start(t, prefix, "10.0.0.0/28"), start(t, prefix, "10.0.0.0/28")}
	var wg sync.WaitGroup
	var made, full atomic.Int64
	for i := range 24 {
		wg.Go(func() {
			_, err := replicas[i%2].create(service(fmt.Sprint("s", i), func(s *corev1.ServiceSpec) { s.Type = "NodePort" }))
			switch {
			case err == nil:
				made.Add(1)
			case strings.HasSuffix(err.Error(), fmt.Sprintf("failed to allocate a serviceIP for Service %q: range is full", fmt.Sprint("s", i))) && apierrors.IsInternalError(err):
				full.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made.Load() != 14 || full.Load() != 10 {
		t.Errorf("%d were made, %d found the range full", made.Load(), full.Load())
	}
	replicas[0].consistent()
	list, err := replicas[0].listServices(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		wg.Go(func() { replicas[i%2].remove(list[i].Name) })
	}
	wg.Wait()
	if ips, ports := replicas[1].allocated(); len(ips) != 0 || len(ports) != 0 {
		t.Errorf("left are %v, %v", ips, ports)
	}
}

func TestFailedCreateReleases(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	denied := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(corev1.Resource("services"), "x", errors.New("denied"))
	}
	if _, err := r.createWith(context.Background(), service("x", func(s *corev1.ServiceSpec) { s.Type = "NodePort" }), denied, &metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Error(err)
	}
	r.consistent()
	for range 2 { // the second exists already
		_, _ = r.create(service("x", func(s *corev1.ServiceSpec) { s.Type = "NodePort" }))
		r.consistent()
	}
}

// pass runs repair passes, as Repair does.
func (r *replica) pass(n int) {
	r.tb.Helper()
	var seen leaks
	var err error
	for range n {
		if seen, err = r.repair(context.Background(), seen); err != nil {
			r.tb.Fatal(err)
		}
	}
}

// lossy loses the answer to the creation of a Service, which is done or not.
type lossy struct {
	storage.Interface
	does bool
}

func (l lossy) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	if l.does {
		if err := l.Interface.Create(ctx, key, obj, out, ttl); err != nil {
			return err
		}
	}
	return context.DeadlineExceeded
}

// The answer to the write is lost: nothing is released until repair knows.
func TestUnknownOutcome(t *testing.T) {
	for _, does := range []bool{true, false} {
		r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
		r.storage.Storage.Storage = lossy{r.storage.Storage.Storage, does}
		if _, err := r.create(service("x", func(s *corev1.ServiceSpec) { s.Type = "NodePort" })); err == nil {
			t.Fatal("the answer must be lost")
		}
		for range 2 {
			if ips, ports := r.allocated(); len(ips) != 1 || len(ports) != 1 {
				t.Errorf("released although it may have been written: %v, %v", ips, ports)
			}
			r.pass(1) // a request may still write
		}
		r.pass(2)
		r.consistent()
	}
}

// A request is stopped between allocation and write, and repair takes its allocations
// for leaked. It allocates again.
func TestRepairMeetsAStoppedRequest(t *testing.T) {
	prefix := etcdtest.Prefix(t)
	r, leader := start(t, prefix, "10.0.0.0/28"), start(t, prefix, "10.0.0.0/28")
	tries := 0
	_, err := r.createWith(context.Background(), service("x", func(s *corev1.ServiceSpec) { s.Type = "NodePort" }), func(context.Context, runtime.Object) error {
		if tries++; tries == 1 {
			leader.pass(2)
			if ips, ports := leader.allocated(); len(ips) != 0 || len(ports) != 0 {
				t.Errorf("repair left %v, %v", ips, ports)
			}
			if _, err := leader.create(service("y", func(s *corev1.ServiceSpec) { s.Type = "NodePort" })); err != nil {
				t.Error(err)
			}
		}
		return nil
	}, &metav1.CreateOptions{})
	if err != nil || tries != 2 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	r.consistent()
}

// A release that comes after repair's takes nothing from the next owner.
func TestLateRelease(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/30") // two addresses
	s, err := r.create(service("x", func(s *corev1.ServiceSpec) { s.Type, s.ClusterIP, s.Ports[0].NodePort = "NodePort", "10.0.0.1", 30001 }))
	if err != nil {
		t.Fatal(err)
	}
	held, err := r.held(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := r.storage.KeyFunc(in(context.Background()), "x")
	if _, err := r.options.Backend.Client().Delete(context.Background(), r.options.Backend.Key(key)); err != nil { // and the process stops here
		t.Fatal(err)
	}
	r.pass(2)
	if ips, ports := r.allocated(); len(ips) != 0 || len(ports) != 0 {
		t.Errorf("left are %v, %v", ips, ports)
	}
	if _, err := r.create(service("x", func(s *corev1.ServiceSpec) { s.Type, s.ClusterIP, s.Ports[0].NodePort = "NodePort", "10.0.0.1", 30001 })); err != nil {
		t.Fatal(err)
	}
	r.release(context.Background(), held) // and goes on
	r.consistent()
}

// A request that allocates a port while repair releases leaked ones makes it try again.
func TestRepairTriesAgain(t *testing.T) {
	ctx := context.Background()
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	nodePort := func(port int32) func(*corev1.ServiceSpec) {
		return func(s *corev1.ServiceSpec) { s.Type, s.Ports[0].NodePort = "NodePort", port }
	}
	if _, err := r.create(service("x", nodePort(30001))); err != nil {
		t.Fatal(err)
	}
	key, _ := r.storage.KeyFunc(in(ctx), "x")
	if _, err := r.options.Backend.Client().Delete(ctx, r.options.Backend.Key(key)); err != nil {
		t.Fatal(err)
	}
	state, err := r.readState(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := state.leaks(r.Allocator)
	if len(found.ips) != 1 || !found.ports[30001] {
		t.Fatalf("leaked are %+v", found)
	}
	if _, err := r.create(service("y", nodePort(30002))); err != nil { // after the state was read
		t.Fatal(err)
	}
	if err := r.free(ctx, state, found); err != nil {
		t.Error(err)
	}
	r.consistent()
}

// What Services have and is not allocated, is allocated.
func TestRepairAllocates(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	s, err := r.create(service("x", func(s *corev1.ServiceSpec) {
		s.Type, s.IPFamilyPolicy = "NodePort", ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}))
	if err != nil {
		t.Fatal(err)
	}
	held, err := r.held(context.Background(), s)
	if err != nil || len(held.ips) != 2 || len(held.ports) != 1 {
		t.Fatal(held, err)
	}
	r.release(context.Background(), held)
	if ips, ports := r.allocated(); len(ips) != 0 || len(ports) != 0 {
		t.Fatalf("left are %v, %v", ips, ports)
	}
	r.pass(1)
	r.consistent()
	r.remove("x")
	r.consistent()
}

// IPAddresses of others are not touched.
func TestRepairLeavesOthers(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	obj := r.addresses[0].object(netip.MustParseAddr("10.0.0.5"), service("gone", nil))
	obj.Labels = nil
	if err := r.addresses[0].storage.Create(context.Background(), addressFolder+"/10.0.0.5", obj, &networkingv1.IPAddress{}, 0); err != nil {
		t.Fatal(err)
	}
	r.pass(3)
	if ips, _ := r.allocated(); len(ips) != 1 {
		t.Errorf("left are %v", ips)
	}
}

// The last finalizer of a deleted Service is removed by an update.
func TestFinalizer(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	s := service("x", func(s *corev1.ServiceSpec) { s.Type = "NodePort" })
	s.Finalizers = []string{"example.com/a"}
	if _, err := r.create(s); err != nil {
		t.Fatal(err)
	}
	r.remove("x")
	r.consistent()
	if _, err := r.update("x", func(s *corev1.Service) { s.Finalizers = nil }); err != nil {
		t.Fatal(err)
	}
	if ips, ports := r.allocated(); len(ips) != 0 || len(ports) != 0 {
		t.Errorf("left are %v, %v", ips, ports)
	}
}

func TestRanges(t *testing.T) {
	for _, text := range []string{"", "10.0.0.0", "10.0.0.0/31", "10.0.0.0/24,10.1.0.0/24", "::ffff:10.0.0.0/120", dual + ",fd01::/112"} {
		if _, err := ParseClusterIPs(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	for _, text := range []string{"", "1", "5-4", "0-5", "1-70000", "70000-65535", "a-b", "1-2-3"} {
		if _, err := ParseNodePorts(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
	if got, err := ParseNodePorts("1-65535"); err != nil || got != (PortRange{1, 65535}) {
		t.Error(got, err)
	}
	if got, err := ParseNodePorts("5-5"); err != nil || got != (PortRange{5, 5}) {
		t.Error(got, err)
	}
	if got, err := ParseNodePorts(DefaultNodePortRange); err != nil || got != (PortRange{30000, 32767}) || got.String() != DefaultNodePortRange {
		t.Error(got, err)
	}
}
