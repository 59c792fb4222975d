package services

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// full asks for all that can be allocated: two cluster IPs and two node ports.
func full(s *corev1.ServiceSpec) {
	s.Type, s.ExternalTrafficPolicy, s.IPFamilyPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal, ptr.To(corev1.IPFamilyPolicyRequireDualStack)
}

// Every request to etcd fails once, at each point of what a client does. Before the Service
// is written the client gets the error, and nothing stays allocated. Afterwards it gets the
// answer, and repair releases what could not be released.
func TestEveryRequestToEtcdFailsOnce(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	failing, log := etcdtest.NewFailing(r.options.Backend.Client(), r.options.Backend.Key("")), etcdtest.Capture(t)
	for _, c := range []struct {
		name   string
		before func(*corev1.ServiceSpec) // of the Service; nil if there is none
		do     func() error
	}{
		{"create", nil, func() error { _, err := r.create(service("x", full)); return err }},
		{"create with an address", nil, func() error {
			_, err := r.create(service("x", func(s *corev1.ServiceSpec) {
				full(s)
				s.ClusterIP, s.ClusterIPs = "10.0.0.7", []string{"10.0.0.7", "fd00::7"}
			}))
			return err
		}},
		{"grow", func(*corev1.ServiceSpec) {}, func() error {
			_, err := r.update("x", func(s *corev1.Service) { full(&s.Spec) })
			return err
		}},
		{"shrink", full, func() error {
			_, err := r.update("x", func(s *corev1.Service) {
				s.Spec.Type, s.Spec.IPFamilyPolicy = corev1.ServiceTypeClusterIP, ptr.To(corev1.IPFamilyPolicySingleStack)
			})
			return err
		}},
		{"delete", full, func() error { return r.delete("x") }},
	} {
		count := 0
		for n := 1; ; n++ {
			if c.before != nil {
				if _, err := r.create(service("x", c.before)); err != nil {
					t.Fatal(err)
				}
			}
			log.Reset()
			failing.Fail(n)
			err := c.do()
			sent, failed := failing.Stop()
			if left := failed != "" && err == nil; strings.Contains(log.String(), "repair tries again") != left {
				t.Errorf("%s: after %v, %q failed: the log is %s", c.name, sent, failed, log)
			}
			write := func(request string) bool { return strings.HasPrefix(request, "change "+servicesFolder) }
			if written := failed == "" || slices.ContainsFunc(sent, write); written != (err == nil) {
				t.Errorf("%s: after %v, %q failed: %v", c.name, sent, failed, err)
			} else if !written && !write(failed) {
				r.consistent()
			}
			if failed != "" {
				r.pass(2)
			}
			r.consistent()
			if list, err := r.listServices(t.Context()); err != nil || len(list) > 1 {
				t.Fatal(list, err)
			} else if len(list) == 1 {
				r.remove("x")
			}
			if failed == "" {
				count = n - 1
				break
			}
		}
		if count < 5 {
			t.Errorf("%s sends %d requests only", c.name, count)
		}
	}
}

// forget deletes a Service from etcd, so that what it held is leaked.
func (r *replica) forget(name string) {
	r.tb.Helper()
	key, _ := r.storage.KeyFunc(in(context.Background()), name)
	if _, err := r.options.Backend.Client().Delete(context.Background(), r.options.Backend.Key(key)); err != nil {
		r.tb.Fatal(err)
	}
}

// Repair reports each request to etcd that fails, and the next passes do what is left.
func TestEveryRequestOfRepairFailsOnce(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	failing := etcdtest.NewFailing(r.options.Backend.Client(), r.options.Backend.Key(""))
	s, err := r.create(service("x", full))
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; ; n++ {
		held, err := r.held(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if r.release(t.Context(), held); n > 1 { // x misses all that it has
			r.pass(1)
			r.consistent()
			r.release(t.Context(), held)
		}
		if _, err := r.create(service("gone", full)); err != nil {
			t.Fatal(err)
		}
		r.forget("gone")
		state, err := r.readState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		failing.Fail(n)
		_, err = r.repair(t.Context(), state.leaks(r.Allocator))
		sent, failed := failing.Stop()
		if (failed != "") != errors.Is(err, etcdtest.ErrFailed) {
			t.Errorf("after %v, %q failed: %v", sent, failed, err)
		}
		if failed != "" {
			r.pass(2)
		}
		r.consistent()
		if failed == "" {
			if n < 8 {
				t.Errorf("repair sends %d requests only", n)
			}
			return
		}
	}
}

// busy is a storage whose object others change before each of the next updates.
type busy struct {
	storage.Interface
	left   int
	change func()
}

func (b *busy) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, p *storage.Preconditions, try storage.UpdateFunc, cached runtime.Object) error {
	if b.left > 0 {
		b.left--
		b.change()
	}
	return b.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, p, try, cached)
}

// Requests that allocate ports again and again make repair give up, and say so.
func TestRepairGivesUp(t *testing.T) {
	prefix := etcdtest.Prefix(t)
	r, other := start(t, prefix, "10.0.0.0/28"), start(t, prefix, "10.0.0.0/28")
	for left, wanted := range map[int]bool{freeAttempts - 1: true, freeAttempts: false} {
		if _, err := r.create(service("x", nodePort)); err != nil {
			t.Fatal(err)
		}
		r.forget("x")
		state, err := r.readState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		inner := r.ports.storage
		r.ports.storage = &busy{inner, left, func() {
			if _, err := other.create(service("y", nodePort)); err != nil {
				t.Error(err)
			}
			other.remove("y")
		}}
		err = r.free(t.Context(), state, state.leaks(r.Allocator))
		if r.ports.storage = inner; (err == nil) != wanted || err != nil && !errors.Is(err, errPortsChanged) {
			t.Errorf("after %d changes: %v", left, err)
		}
		r.pass(2)
		r.consistent()
	}
}

// Repair runs at the interval that is configured.
func TestRepairRepeats(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	o := r.options
	o.RepairInterval = 0
	if a, err := New(o); err != nil || a.options.RepairInterval != DefaultRepairInterval {
		t.Error(a, err)
	}
	o.RepairInterval = time.Millisecond
	a, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.create(service("x", nodePort)); err != nil {
		t.Fatal(err)
	}
	r.forget("x")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- a.Repair(ctx) }()
	for ips, ports := r.allocated(); len(ips)+len(ports) > 0 && ctx.Err() == nil; ips, ports = r.allocated() {
		time.Sleep(time.Millisecond)
	}
	if cancel(); !errors.Is(<-ended, context.Canceled) {
		t.Error("the leaks are still there")
	}
}

// An update that finds that another one came first keeps nothing of its first attempt.
func TestConflictingUpdates(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	if _, err := r.create(service("x", nil)); err != nil {
		t.Fatal(err)
	}
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		s := old.DeepCopyObject().(*corev1.Service)
		full(&s.Spec)
		return s, nil
	})
	tries := 0
	another := func(ctx context.Context, _, _ runtime.Object) error {
		if tries++; tries > 1 {
			return nil
		}
		_, err := r.update("x", func(s *corev1.Service) { s.Labels = map[string]string{"a": "b"} })
		return err
	}
	obj, _, err := r.storage.Update(in(t.Context()), "x", info, rest.ValidateAllObjectFunc, another, false, &metav1.UpdateOptions{})
	if err != nil || tries != 2 || obj.(*corev1.Service).Labels["a"] != "b" || len(obj.(*corev1.Service).Spec.ClusterIPs) != 2 {
		t.Errorf("after %d tries: %v, %v", tries, obj, err)
	}
	r.consistent()
}

// The first and the last port of the range are allocated and released like others.
func TestEndsOfTheRange(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	for _, port := range []int32{30000, 30063} {
		if _, err := r.create(service("x", func(s *corev1.ServiceSpec) { nodePort(s); s.Ports[0].NodePort = port })); err != nil {
			t.Error(err)
		}
		r.consistent()
		r.remove("x")
		r.consistent()
	}
}

// Services without node ports do not depend on the bitmap.
func TestUnreadableBitmap(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), dual)
	if _, err := r.options.Backend.Client().Put(t.Context(), r.options.Backend.Key(portsKey), "no bitmap"); err != nil {
		t.Fatal(err)
	}
	balancer := func(port int32) func(*corev1.ServiceSpec) {
		return func(s *corev1.ServiceSpec) {
			s.Type, s.AllocateLoadBalancerNodePorts, s.Ports[0].NodePort = corev1.ServiceTypeLoadBalancer, ptr.To(false), port
		}
	}
	for name, c := range map[string]struct {
		change func(*corev1.ServiceSpec)
		wanted bool
	}{
		"a cluster IP":                       {nil, true},
		"a load balancer without node ports": {balancer(0), true},
		"a load balancer that asks for one":  {balancer(30001), false},
		"a load balancer with a health check": {func(s *corev1.ServiceSpec) {
			balancer(0)(s)
			s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}, false},
		"a load balancer that gets a node port": {func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer }, false},
	} {
		_, err := r.create(service("x", c.change))
		if (err == nil) != c.wanted || err != nil && !strings.Contains(err.Error(), "/ranges/servicenodeports in etcd") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			r.remove("x")
		}
	}
}

// unlucky finds taken what it is asked for at random, and then cannot write.
type unlucky struct {
	storage.Interface
	tries int
}

func (u *unlucky) Create(_ context.Context, key string, _, _ runtime.Object, _ uint64) error {
	if u.tries++; u.tries <= probes {
		return storage.NewKeyExistsError(key, 0)
	}
	return etcdtest.ErrFailed
}

func TestLastAddressCannotBeWritten(t *testing.T) {
	r := start(t, etcdtest.Prefix(t), "10.0.0.0/28")
	a := &addresses{storage: &unlucky{Interface: r.addresses[0].storage}, within: netip.MustParsePrefix("10.0.0.0/28")}
	if ip, _, err := a.next(t.Context(), service("x", nil)); !errors.Is(err, etcdtest.ErrFailed) {
		t.Errorf("%v, %v", ip, err)
	}
}
