package services

import (
	"bytes"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// bitsOf is a bitmap of a range with some ports.
func bitsOf(of PortRange, taken ...int) *bitmap {
	b := &bitmap{of: of}
	for _, port := range taken {
		b.set(port, 1)
	}
	return b
}

// kube-apiserver stores the bitmap without a name, and our storage wants one.
func TestBitmapIsStoredWithoutName(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	codecs := serializer.NewCodecFactory(scheme)
	json, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	codec := namedCodec{codecs.CodecForVersions(json.Serializer, json.Serializer, corev1.SchemeGroupVersion, corev1.SchemeGroupVersion)}
	in := &corev1.RangeAllocation{ObjectMeta: metav1.ObjectMeta{Name: "servicenodeports"}, Range: "1-2", Data: []byte{3}}
	var data bytes.Buffer
	if err := codec.Encode(in, &data); err != nil || strings.Contains(data.String(), "servicenodeports") || in.Name == "" {
		t.Errorf("%s, %v", &data, err)
	}
	out, kind, err := codec.Decode(data.Bytes(), nil, nil)
	if r, ok := out.(*corev1.RangeAllocation); !ok || err != nil || r.Name != "servicenodeports" || r.Range != "1-2" || kind.Kind != "RangeAllocation" {
		t.Errorf("%v %v %v", out, kind, err)
	}
	if _, _, err := codec.Decode([]byte("{"), nil, nil); err == nil {
		t.Error("decoded")
	}
}

// An operator may change the range: what was allocated in both is kept.
func TestBitmapOfAnotherRange(t *testing.T) {
	p := &ports{ports: PortRange{100, 109}}
	for _, test := range []struct {
		stored PortRange
		taken  []int
		want   []int
	}{
		{PortRange{100, 109}, []int{100, 105, 109}, []int{100, 105, 109}},
		{PortRange{95, 105}, []int{95, 99, 100, 101, 105}, []int{100, 101, 105}},
		{PortRange{105, 120}, []int{105, 109, 110, 120}, []int{105, 109}},
		{PortRange{103, 104}, []int{103, 104}, []int{103, 104}},
		{PortRange{200, 210}, []int{200}, nil},
	} {
		stored := bitsOf(test.stored, test.taken...)
		got, err := p.read(&corev1.RangeAllocation{Range: test.stored.String(), Data: stored.Bytes()})
		if err != nil {
			t.Error(err)
			continue
		}
		var have []int
		for port := 90; port < 130; port++ {
			if port >= got.of.First && got.has(port) {
				have = append(have, port)
			}
		}
		if !slices.Equal(have, test.want) || got.of != p.ports {
			t.Errorf("%v: %v of %v, want %v", test.stored, have, got.of, test.want)
		}
	}
	if b, err := p.read(&corev1.RangeAllocation{}); err != nil || b.BitLen() > 0 {
		t.Errorf("nothing stored: %v %v", b, err)
	}
	for name, test := range map[string]struct {
		of   string
		bits int
		want string
	}{
		"no range":       {"x", 0, `reading /ranges/servicenodeports failed: "x" is not a range of ports`},
		"all bits":       {"100-109", 10, ""},
		"too many":       {"100-109", 11, "reading /ranges/servicenodeports failed: it has bits for 11 ports, and the range 100-109 has 10"},
		"too many there": {"100-108", 10, "it has bits for 10 ports, and the range 100-108 has 9"},
	} {
		data := new(big.Int).SetBit(new(big.Int), max(0, test.bits-1), uint(min(1, test.bits)))
		_, err := p.read(&corev1.RangeAllocation{Range: test.of, Data: data.Bytes()})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The lower part of a range is left to clients that ask for a port, while others are free.
func TestFreePorts(t *testing.T) {
	for size, want := range map[int]int{1: 0, 16: 0, 17: 16, 64: 16, 512: 16, 544: 17, 2768: 86, 4096: 128, 4128: 128, 60_000: 128} {
		if got := staticPorts(size); got != want {
			t.Errorf("%d of %d ports are left, want %d", got, size, want)
		}
	}
	p := &ports{ports: PortRange{30_000, 30_031}}
	b := bitsOf(p.ports)
	seen := map[int]bool{}
	for i := range 32 {
		port, err := p.free(b)
		if err != nil || seen[port] || port < 30_000 || port > 30_031 || (port >= 30_016) != (i < 16) {
			t.Fatalf("port %d is %d: %v", i, port, err)
		}
		seen[port] = true
		b.set(port, 1)
	}
	if _, err := p.free(b); !errors.Is(err, errFull) {
		t.Error(err)
	}
	for port, want := range map[int]string{
		29_999: "provided port is not in the valid range. The range of valid ports is 30000-30031",
		30_032: "provided port is not in the valid range. The range of valid ports is 30000-30031",
		30_000: "provided port is already allocated",
		30_031: "provided port is already allocated",
	} {
		if err := p.check(b, port); err == nil || err.Error() != want {
			t.Errorf("%d: %v", port, err)
		}
	}
	if err := p.check(bitsOf(p.ports), 30_000); err != nil {
		t.Error(err)
	}
}

func serviceOf(kind corev1.ServiceType, list ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, Ports: list}}
}

// local has a port for health checks.
func local(s *corev1.Service, check int32) *corev1.Service {
	s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, check
	return s
}

// The ports that clients ask for come first, ports of the old Service are kept, and
// protocols share a port.
func TestAssignment(t *testing.T) {
	const udp, tcp = corev1.ProtocolUDP, corev1.ProtocolTCP
	port := func(name string, port, node int32, protocol corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: port, NodePort: node, Protocol: protocol}
	}
	const nodePort, balancer = corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer
	for _, test := range []struct {
		name   string
		s, old *corev1.Service
		manual bool // ports that are not asked for are not allocated
		taken  []int
		got    []int
		nodes  []int32 // with that of health checks, if there is one
		want   string  // part of the error
	}{
		{name: "asked for", s: serviceOf(nodePort, port("a", 1, 31, tcp)), got: []int{31}, nodes: []int32{31}},
		{name: "taken", s: serviceOf(nodePort, port("a", 1, 31, tcp)), taken: []int{31}, want: "spec.ports[0].nodePort: Invalid value: 31: provided port is already allocated"},
		{name: "outside", s: serviceOf(nodePort, port("a", 1, 31, tcp), port("b", 2, 34, tcp)), want: "spec.ports[1].nodePort: Invalid value: 34: provided port is not in the valid range"},
		{name: "held", s: serviceOf(nodePort, port("a", 1, 31, tcp)), old: serviceOf(nodePort, port("a", 1, 31, tcp)), taken: []int{31}, nodes: []int32{31}},
		{name: "of two protocols", s: serviceOf(nodePort, port("a", 1, 31, tcp), port("b", 1, 31, udp)), got: []int{31}, nodes: []int32{31, 31}},
		{name: "twice", s: serviceOf(nodePort, port("a", 1, 31, tcp), port("b", 2, 31, tcp)), want: "spec.ports[1].nodePort: Invalid value: 31: provided port is already allocated"},
		{name: "any", s: serviceOf(nodePort, port("a", 1, 0, tcp)), taken: []int{30, 31, 33}, got: []int{32}, nodes: []int32{32}},
		{name: "any, after those asked for", s: serviceOf(nodePort, port("a", 1, 0, tcp), port("b", 2, 32, tcp)), taken: []int{30, 31}, got: []int{32, 33}, nodes: []int32{33, 32}},
		{name: "shared", s: serviceOf(nodePort, port("a", 1, 0, tcp), port("b", 1, 0, udp)), taken: []int{30, 31, 32}, got: []int{33}, nodes: []int32{33, 33}},
		{name: "not shared", s: serviceOf(nodePort, port("a", 1, 0, tcp), port("b", 2, 0, udp)), taken: []int{30, 31, 32}, want: "failed to allocate a nodePort: range is full"},
		{name: "not shared with the same protocol", s: serviceOf(nodePort, port("a", 1, 0, tcp), port("b", 1, 0, tcp)), taken: []int{30, 31, 32}, want: "failed to allocate a nodePort: range is full"},
		{name: "full", s: serviceOf(nodePort, port("a", 1, 0, tcp)), taken: []int{30, 31, 32, 33}, want: "failed to allocate a nodePort: range is full"},
		{name: "none", s: serviceOf(balancer, port("a", 1, 0, tcp), port("b", 2, 30, tcp)), manual: true, got: []int{30}, nodes: []int32{0, 30}},
		{name: "health checks", s: local(serviceOf(balancer), 0), taken: []int{30, 31, 33}, got: []int{32}, nodes: []int32{32}},
		{name: "health checks, asked for", s: local(serviceOf(balancer), 31), got: []int{31}, nodes: []int32{31}},
		{name: "health checks, held", s: local(serviceOf(balancer), 31), old: local(serviceOf(balancer), 31), taken: []int{31}, nodes: []int32{31}},
		{name: "health checks, taken", s: local(serviceOf(balancer), 31), taken: []int{31}, want: "failed to allocate requested HealthCheck NodePort 31: provided port is already allocated"},
		{
			name: "health checks, of a port", s: local(serviceOf(balancer, port("a", 1, 31, tcp)), 31), old: local(serviceOf(balancer), 31), taken: []int{31},
			want: "failed to allocate requested HealthCheck NodePort 31: provided port is already allocated",
		},
		{name: "health checks, full", s: local(serviceOf(balancer), 0), taken: []int{30, 31, 32, 33}, want: "failed to allocate a HealthCheck NodePort 0: range is full"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := &Allocator{ports: ports{ports: PortRange{30, 33}}}
			b := bitsOf(a.ports.ports, test.taken...)
			if test.old == nil {
				test.old = &corev1.Service{}
			}
			got, err := a.assign(b, test.s, test.old, !test.manual)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || got != nil {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			var nodes []int32
			for _, p := range test.s.Spec.Ports {
				nodes = append(nodes, p.NodePort)
			}
			if check := test.s.Spec.HealthCheckNodePort; check != 0 {
				nodes = append(nodes, check)
			}
			slices.Sort(got)
			if err != nil || !slices.Equal(got, test.got) || !slices.Equal(nodes, test.nodes) {
				t.Errorf("allocated %v, the Service has %v, %v", got, nodes, err)
			}
			for _, port := range slices.Concat(test.taken, test.got) {
				if !b.has(port) {
					t.Errorf("%d is not in the bitmap", port)
				}
			}
		})
	}
}

// A dry run answers with ports behind the range.
func TestFakePorts(t *testing.T) {
	s := local(serviceOf(corev1.ServiceTypeLoadBalancer, corev1.ServicePort{}, corev1.ServicePort{NodePort: 5}, corev1.ServicePort{}), 0)
	fakePorts(s, 100, true)
	if p := s.Spec.Ports; p[0].NodePort != 100 || p[1].NodePort != 5 || p[2].NodePort != 101 || s.Spec.HealthCheckNodePort != 102 {
		t.Errorf("%+v", s.Spec)
	}
	s = local(serviceOf(corev1.ServiceTypeLoadBalancer, corev1.ServicePort{}), 7)
	fakePorts(s, 100, false)
	if s.Spec.Ports[0].NodePort != 0 || s.Spec.HealthCheckNodePort != 7 {
		t.Errorf("%+v", s.Spec)
	}
	s = serviceOf(corev1.ServiceTypeNodePort)
	if fakePorts(s, 100, true); s.Spec.HealthCheckNodePort != 0 {
		t.Errorf("%+v", s.Spec)
	}
}

// Errors that say that nothing was written release what was allocated.
func TestCertainErrors(t *testing.T) {
	r := schema.GroupResource{Resource: "services"}
	unwritten := apierrors.NewServiceUnavailable("etcd")
	unwritten.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: store.CauseNothingWritten}}}
	for _, err := range []error{
		apierrors.NewAlreadyExists(r, "a"), apierrors.NewConflict(r, "a", nil), apierrors.NewNotFound(r, "a"),
		apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "a", nil), apierrors.NewForbidden(r, "a", nil), unwritten,
	} {
		if !certain(err) {
			t.Errorf("%v may have written something", err)
		}
	}
	for _, err := range []error{errors.New("x"), apierrors.NewTimeoutError("x", 0), apierrors.NewInternalError(errors.New("x")), apierrors.NewServiceUnavailable("x")} {
		if certain(err) {
			t.Errorf("%v has written nothing for certain", err)
		}
	}
}

// Ports that a client leaves out of an update are those of the port of the same name.
func TestKeptPorts(t *testing.T) {
	const nodePort, cluster, balancer = corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer
	port := func(name string, node int32) corev1.ServicePort {
		return corev1.ServicePort{Name: name, NodePort: node}
	}
	manual := serviceOf(balancer, port("a", 0))
	manual.Spec.AllocateLoadBalancerNodePorts = ptr.To(false)
	for _, test := range []struct {
		name   string
		s, old *corev1.Service
		nodes  []int32
		check  int32
	}{
		{"by name", serviceOf(nodePort, port("b", 0), port("a", 0)), serviceOf(nodePort, port("a", 1), port("b", 2)), []int32{2, 1}, 0},
		{"changed", serviceOf(nodePort, port("a", 3)), serviceOf(nodePort, port("a", 1)), []int32{3}, 0},
		{"used by another", serviceOf(nodePort, port("a", 0), port("b", 1)), serviceOf(nodePort, port("a", 1)), []int32{0, 1}, 0},
		{"new", serviceOf(nodePort, port("c", 0)), serviceOf(nodePort, port("a", 1)), []int32{0}, 0},
		{"of a type without", serviceOf(cluster, port("a", 0)), serviceOf(nodePort, port("a", 1)), []int32{0}, 0},
		{"after a type without", serviceOf(nodePort, port("a", 0)), serviceOf(cluster, port("a", 1)), []int32{0}, 0},
		{"not allocated", manual, serviceOf(nodePort, port("a", 1)), []int32{0}, 0},
		{"health checks", local(serviceOf(balancer), 0), local(serviceOf(balancer), 9), nil, 9},
		{"health checks, changed", local(serviceOf(balancer), 8), local(serviceOf(balancer), 9), nil, 8},
		{"no health checks", serviceOf(balancer), local(serviceOf(balancer), 9), nil, 0},
		{"no health checks before", local(serviceOf(balancer), 0), local(serviceOf(nodePort), 9), nil, 0},
	} {
		keepPorts(test.s, test.old)
		var nodes []int32
		for _, p := range test.s.Spec.Ports {
			nodes = append(nodes, p.NodePort)
		}
		if !slices.Equal(nodes, test.nodes) || test.s.Spec.HealthCheckNodePort != test.check {
			t.Errorf("%s: %v, %d", test.name, nodes, test.s.Spec.HealthCheckNodePort)
		}
	}
}
