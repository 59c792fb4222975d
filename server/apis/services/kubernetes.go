package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// kubernetesName is the name of the Service by which programs in the cluster reach the
// server, and of the ServiceCIDR of the configured ranges.
const kubernetesName = "kubernetes"

// Address is the cluster IP of the Service default/kubernetes. A serving certificate
// should have it.
func (a *Allocator) Address() netip.Addr { return a.addresses[0].first() }

// EnsureKubernetes makes the ServiceCIDR of the ranges, and the Service
// default/kubernetes with its Endpoints and EndpointSlice. Servers are the addresses of
// all replicas, of one IP family. It changes only what differs.
func (a *Allocator) EnsureKubernetes(ctx context.Context, client kubernetes.Interface, servers ...netip.AddrPort) error {
	if len(servers) == 0 {
		return errors.New("the Service default/kubernetes needs the address of a server")
	}
	slices.SortFunc(servers, netip.AddrPort.Compare)
	for _, step := range []struct {
		what string
		do   func(context.Context, kubernetes.Interface, []netip.AddrPort) error
	}{
		{"ServiceCIDR kubernetes", a.ensureCIDR}, {"Service default/kubernetes", a.ensureService},
		{"Endpoints default/kubernetes", ensureEndpoints}, {"EndpointSlice default/kubernetes", ensureSlice},
	} {
		if err := step.do(ctx, client, servers); err != nil {
			return fmt.Errorf("creating %s failed: %w", step.what, err)
		}
	}
	return nil
}

// CreateKubernetes creates the Service default/kubernetes if there is none. Its Endpoints
// are for the one server that calls EnsureKubernetes.
func (a *Allocator) CreateKubernetes(ctx context.Context, client kubernetes.Interface, server netip.AddrPort) error {
	_, err := client.CoreV1().Services(corev1.NamespaceDefault).Get(ctx, kubernetesName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	return a.ensureService(ctx, client, []netip.AddrPort{server})
}

// EnsureRanges makes the ServiceCIDR of the ranges only.
func (a *Allocator) EnsureRanges(ctx context.Context, client kubernetes.Interface) error {
	return a.ensureCIDR(ctx, client, nil)
}

func (a *Allocator) ensureCIDR(ctx context.Context, client kubernetes.Interface, _ []netip.AddrPort) error {
	all := client.NetworkingV1().ServiceCIDRs()
	want := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: kubernetesName}}
	for _, one := range a.addresses {
		want.Spec.CIDRs = append(want.Spec.CIDRs, one.within.String())
	}
	obj, err := all.Get(ctx, kubernetesName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		obj, err = all.Create(ctx, want, metav1.CreateOptions{})
	}
	if err != nil || slices.ContainsFunc(obj.Status.Conditions, func(c metav1.Condition) bool { return c.Type == networkingv1.ServiceCIDRConditionReady }) {
		return ignoreExisting(err)
	}
	obj.Status.Conditions = append(obj.Status.Conditions, metav1.Condition{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Message: "Kubernetes default Service CIDR is ready",
		LastTransitionTime: metav1.NewTime(time.Now()),
	})
	_, err = all.UpdateStatus(ctx, obj, metav1.UpdateOptions{})
	return ignoreExisting(err)
}

// ignoreExisting drops the errors of a replica that came second.
func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (a *Allocator) ensureService(ctx context.Context, client kubernetes.Interface, servers []netip.AddrPort) error {
	all := client.CoreV1().Services(corev1.NamespaceDefault)
	ports := []corev1.ServicePort{{Name: "https", Protocol: corev1.ProtocolTCP, Port: 443, TargetPort: intstr.FromInt32(int32(servers[0].Port()))}}
	obj, err := all.Get(ctx, kubernetesName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = all.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: kubernetesName, Namespace: corev1.NamespaceDefault, Labels: map[string]string{"provider": "kubernetes", "component": "apiserver"}},
			Spec: corev1.ServiceSpec{
				Ports: ports, ClusterIP: a.Address().String(), IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack),
				SessionAffinity: corev1.ServiceAffinityNone, Type: corev1.ServiceTypeClusterIP,
			},
		}, metav1.CreateOptions{})
	case err == nil && !equality.Semantic.DeepEqual(obj.Spec.Ports, ports):
		obj.Spec.Ports = ports
		_, err = all.Update(ctx, obj, metav1.UpdateOptions{})
	}
	return ignoreExisting(err)
}

func ensureEndpoints(ctx context.Context, client kubernetes.Interface, servers []netip.AddrPort) error {
	all := client.CoreV1().Endpoints(corev1.NamespaceDefault)
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "https", Port: int32(servers[0].Port()), Protocol: corev1.ProtocolTCP}}} //nolint:staticcheck // older clients read Endpoints
	for _, server := range servers {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: server.Addr().String()}) //nolint:staticcheck // as above
	}
	want := []corev1.EndpointSubset{subset} //nolint:staticcheck // as above
	obj, err := all.Get(ctx, kubernetesName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = all.Create(ctx, &corev1.Endpoints{ //nolint:staticcheck // as above
			ObjectMeta: metav1.ObjectMeta{Name: kubernetesName, Namespace: corev1.NamespaceDefault, Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"}},
			Subsets:    want,
		}, metav1.CreateOptions{})
	case err == nil && !equality.Semantic.DeepEqual(obj.Subsets, want):
		obj.Subsets = want
		_, err = all.Update(ctx, obj, metav1.UpdateOptions{})
	}
	return ignoreExisting(err)
}

func ensureSlice(ctx context.Context, client kubernetes.Interface, servers []netip.AddrPort) error {
	all := client.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault)
	want := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: kubernetesName, Namespace: corev1.NamespaceDefault, Labels: map[string]string{discoveryv1.LabelServiceName: kubernetesName}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To(int32(servers[0].Port()))}},
	}
	if servers[0].Addr().Is6() {
		want.AddressType = discoveryv1.AddressTypeIPv6
	}
	for _, server := range servers {
		want.Endpoints = append(want.Endpoints, discoveryv1.Endpoint{Addresses: []string{server.Addr().String()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}})
	}
	obj, err := all.Get(ctx, kubernetesName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = all.Create(ctx, want, metav1.CreateOptions{})
	case err == nil && !(equality.Semantic.DeepEqual(obj.Endpoints, want.Endpoints) && equality.Semantic.DeepEqual(obj.Ports, want.Ports)):
		obj.Endpoints, obj.Ports = want.Endpoints, want.Ports
		_, err = all.Update(ctx, obj, metav1.UpdateOptions{})
	}
	return ignoreExisting(err)
}
