package services

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// takesPorts reports whether a Service may have node ports, and whether those that the
// client did not set are allocated.
func takesPorts(s *corev1.Service) (may, auto bool) {
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		return true, true
	case corev1.ServiceTypeLoadBalancer:
		return true, ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true)
	}
	return false, false
}

// takesHealthCheck reports whether a Service has a port for health checks.
func takesHealthCheck(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// keepPorts restores the node ports that a client left out of an update. A port is known
// by its name.
func keepPorts(s, old *corev1.Service) {
	_, auto := takesPorts(s)
	if had, _ := takesPorts(old); auto && had {
		used := portsOf(s)
		was := map[string]int32{}
		for _, p := range old.Spec.Ports {
			was[p.Name] = p.NodePort
		}
		for i := range s.Spec.Ports {
			if p := &s.Spec.Ports[i]; p.NodePort == 0 && was[p.Name] != 0 && !used[int(was[p.Name])] {
				p.NodePort = was[p.Name]
			}
		}
	}
	if takesHealthCheck(s) && takesHealthCheck(old) && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

// dropByType drops fields that the new type of a Service does not have, unless the
// client changed them: validation rejects those.
func dropByType(s, old *corev1.Service) {
	if external(s) && !external(old) {
		if s.Spec.ClusterIP == old.Spec.ClusterIP && slices.Equal(s.Spec.ClusterIPs, old.Spec.ClusterIPs) {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		}
		if slices.Equal(s.Spec.IPFamilies, old.Spec.IPFamilies) {
			s.Spec.IPFamilies = nil
		}
		if ptr.Equal(s.Spec.IPFamilyPolicy, old.Spec.IPFamilyPolicy) {
			s.Spec.IPFamilyPolicy = nil
		}
	}
	may, _ := takesPorts(s)
	if had, _ := takesPorts(old); had && !may && slices.EqualFunc(s.Spec.Ports, old.Spec.Ports, func(p, q corev1.ServicePort) bool { return p.NodePort == 0 || p.NodePort == q.NodePort }) {
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = 0
		}
	}
	if takesHealthCheck(old) && !takesHealthCheck(s) && s.Spec.HealthCheckNodePort == old.Spec.HealthCheckNodePort {
		s.Spec.HealthCheckNodePort = 0
	}
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		if ptr.Equal(s.Spec.AllocateLoadBalancerNodePorts, old.Spec.AllocateLoadBalancerNodePorts) {
			s.Spec.AllocateLoadBalancerNodePorts = nil
		}
		if ptr.Equal(s.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
			s.Spec.LoadBalancerClass = nil
		}
	}
	if !may && len(s.Spec.ExternalIPs) == 0 && s.Spec.ExternalTrafficPolicy == old.Spec.ExternalTrafficPolicy {
		s.Spec.ExternalTrafficPolicy = ""
	}
}

// allocatePorts allocates the node ports that a Service needs and the old one has not,
// all in one write.
func (a *Allocator) allocatePorts(ctx context.Context, s, old *corev1.Service, dryRun bool) ([]int, error) {
	may, auto := takesPorts(s)
	if !may {
		return nil, nil
	}
	asked := slices.Clone(s.Spec.Ports)
	check, needed := s.Spec.HealthCheckNodePort, false
	for i := range asked {
		needed = needed || asked[i].NodePort != 0 || auto
	}
	if !needed && !takesHealthCheck(s) {
		return nil, nil
	}
	var got []int
	var refused error
	assign := func(b *bitmap) (bool, error) {
		copy(s.Spec.Ports, asked)
		s.Spec.HealthCheckNodePort = check
		got, refused = a.assign(b, s, old, auto)
		if refused != nil {
			return false, errStop
		}
		return len(got) > 0, nil
	}
	if dryRun {
		fakePorts(s, a.ports.ports.Last+2, auto)
		return nil, nil
	}
	err := a.ports.change(ctx, assign)
	switch {
	case refused != nil:
		return nil, refused
	case err != nil:
		return nil, failed(err, "failed to allocate a nodePort: %v", err)
	}
	return got, nil
}

// errStop ends a change of the bitmap without a write.
var errStop = errors.New("nothing to write")

// fakePorts gives a Service the ports that kube-apiserver answers a dry run with: those
// behind the range.
func fakePorts(s *corev1.Service, next int, auto bool) {
	for i := range s.Spec.Ports {
		if p := &s.Spec.Ports[i]; auto && p.NodePort == 0 {
			p.NodePort, next = int32(next), next+1
		}
	}
	if takesHealthCheck(s) && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort = int32(next)
	}
}

// assignment is the state of one attempt to give a Service its ports.
type assignment struct {
	*ports
	bits *bitmap
	held map[int]bool // by the old Service
	// used has the protocols of a node port in the new Service. Ports of different
	// protocols may share one.
	used map[int]map[corev1.Protocol]bool
	got  []int
}

// assign sets the node ports of a Service, and their bits. First those that the client
// asks for, so that none of the others takes them.
func (a *Allocator) assign(b *bitmap, s, old *corev1.Service, auto bool) ([]int, error) {
	t := &assignment{ports: &a.ports, bits: b, held: portsOf(old), used: map[int]map[corev1.Protocol]bool{}}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.NodePort == 0 {
			continue
		}
		if err := t.take(int(p.NodePort), p.Protocol); err != nil {
			return nil, invalid(s, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), p.NodePort, err.Error()))
		}
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.NodePort != 0 || !auto {
			continue
		}
		port, err := t.shared(s, p)
		if err != nil {
			return nil, failed(err, "failed to allocate a nodePort: %v", err)
		}
		p.NodePort = int32(port)
	}
	if !takesHealthCheck(s) {
		return t.got, nil
	}
	if want := int(s.Spec.HealthCheckNodePort); want != 0 {
		if len(t.used[want]) > 0 || !t.held[want] {
			if err := t.fresh(want); err != nil {
				return nil, failed(err, "failed to allocate requested HealthCheck NodePort %v: %v", want, err)
			}
		}
		return t.got, nil
	}
	port, err := t.any()
	if err != nil {
		return nil, failed(err, "failed to allocate a HealthCheck NodePort %v: %v", 0, err)
	}
	s.Spec.HealthCheckNodePort = int32(port)
	return t.got, nil
}

// take takes the port that a client asks for.
func (t *assignment) take(port int, protocol corev1.Protocol) error {
	protocols := t.used[port]
	switch {
	case protocols[protocol]:
		return errPortTaken
	case len(protocols) > 0 || t.held[port]:
	default:
		if err := t.fresh(port); err != nil {
			return err
		}
	}
	t.note(port, protocol)
	return nil
}

func (t *assignment) note(port int, protocol corev1.Protocol) {
	if t.used[port] == nil {
		t.used[port] = map[corev1.Protocol]bool{}
	}
	t.used[port][protocol] = true
}

// fresh allocates one port.
func (t *assignment) fresh(port int) error {
	if err := t.check(t.bits, port); err != nil {
		return err
	}
	t.bits.set(port, 1)
	t.got = append(t.got, port)
	return nil
}

// any allocates any port.
func (t *assignment) any() (int, error) {
	port, err := t.free(t.bits)
	if err != nil {
		return 0, err
	}
	return port, t.fresh(port)
}

// shared returns the node port of the same port with another protocol, or a new one.
func (t *assignment) shared(s *corev1.Service, p *corev1.ServicePort) (int, error) {
	for i := range s.Spec.Ports {
		q := &s.Spec.Ports[i]
		if node := int(q.NodePort); node != 0 && q.Port == p.Port && !t.used[node][p.Protocol] {
			t.note(node, p.Protocol)
			return node, nil
		}
	}
	port, err := t.any()
	if err == nil {
		t.note(port, p.Protocol)
	}
	return port, err
}

// sortedPorts are the ports of a set.
func sortedPorts(set map[int]bool) []int { return slices.Sorted(maps.Keys(set)) }
