package services

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/storage"
)

const (
	addressFolder = "/ipaddresses"
	// managedBy is the label by which kube-apiserver knows the IPAddresses of Services.
	managedBy = "ipallocator.k8s.io"
	// probes is how many addresses are tried at random before all are listed.
	probes = 8
)

var errAddressTaken = errors.New("provided IP is already allocated")

// addresses allocates cluster IPs of one family. The creation of an IPAddress is the
// allocation.
type addresses struct {
	storage storage.Interface
	within  netip.Prefix
}

func addressKey(a netip.Addr) string { return addressFolder + "/" + a.String() }

// family is the IP family.
func (a *addresses) family() corev1.IPFamily {
	if a.within.Addr().Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// usable reports whether an address may be a cluster IP: the first address of a range is
// that of the network, the last of an IPv4 range is for broadcast.
func (a *addresses) usable(ip netip.Addr) bool {
	return a.within.Contains(ip) && ip != a.within.Addr() && (!ip.Is4() || a.within.Contains(ip.Next()))
}

// size is the number of usable addresses. A larger IPv6 range counts as 2^62.
func (a *addresses) size() int64 {
	bits := a.within.Addr().BitLen() - a.within.Bits()
	if bits > 62 {
		bits = 62
	}
	if a.within.Addr().Is4() {
		return 1<<bits - 2
	}
	return 1<<bits - 1
}

// at is the usable address number i.
func (a *addresses) at(i int64) netip.Addr {
	base := new(big.Int).SetBytes(a.within.Addr().AsSlice())
	base.Add(base, big.NewInt(i+1))
	ip, _ := netip.AddrFromSlice(base.FillBytes(make([]byte, a.within.Addr().BitLen()/8)))
	return ip
}

// first is the address of the Service default/kubernetes.
func (a *addresses) first() netip.Addr { return a.at(0) }

// object is the IPAddress of a Service.
func (a *addresses) object(ip netip.Addr, s *corev1.Service) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{
			Name: ip.String(), UID: uuid.NewUUID(), CreationTimestamp: metav1.Now(),
			Labels: map[string]string{networkingv1.LabelIPAddressFamily: string(a.family()), networkingv1.LabelManagedBy: managedBy},
		},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: s.Namespace, Name: s.Name}},
	}
}

// allocate allocates an address.
func (a *addresses) allocate(ctx context.Context, ip netip.Addr, s *corev1.Service) (types.UID, error) {
	obj := a.object(ip, s)
	err := a.storage.Create(ctx, addressKey(ip), obj, &networkingv1.IPAddress{}, 0)
	if storage.IsExist(err) {
		return "", errAddressTaken
	}
	return obj.UID, err
}

// next allocates any address: one at random, and if those are taken, each that the
// list of all has not. Kubernetes leaves the lower part of a range to clients that ask for
// an address, as long as there are others.
func (a *addresses) next(ctx context.Context, s *corev1.Service) (netip.Addr, types.UID, error) {
	size := a.size()
	low := staticAddresses(size)
	for range probes {
		ip := a.at(low + rand.Int64N(size-low))
		uid, err := a.allocate(ctx, ip, s)
		if !errors.Is(err, errAddressTaken) {
			return ip, uid, err
		}
	}
	list, err := a.list(ctx)
	if err != nil {
		return netip.Addr{}, "", err
	}
	taken := make(map[string]bool, len(list))
	for i := range list {
		taken[list[i].Name] = true
	}
	for _, part := range [][2]int64{{low, size}, {0, low}} {
		n := part[1] - part[0]
		if n == 0 {
			continue
		}
		start := rand.Int64N(n)
		for i := range n {
			ip := a.at(part[0] + (start+i)%n)
			if taken[ip.String()] {
				continue
			}
			uid, err := a.allocate(ctx, ip, s)
			if !errors.Is(err, errAddressTaken) {
				return ip, uid, err
			}
		}
	}
	return netip.Addr{}, "", errFull
}

// staticAddresses is the number of addresses that are left to clients that ask for one:
// between 16 and 256, a 16th of the range, and none of a small range.
func staticAddresses(size int64) int64 {
	if size <= 16 {
		return 0
	}
	return min(max(16, size/16), 256)
}

// uid is the UID of the IPAddress of a Service; "" if the Service has none.
func (a *addresses) uid(ctx context.Context, ip netip.Addr, s *corev1.Service) (types.UID, error) {
	obj := &networkingv1.IPAddress{}
	if err := a.storage.Get(ctx, addressKey(ip), storage.GetOptions{IgnoreNotFound: true}, obj); err != nil {
		return "", err
	}
	if !owned(obj, s.Namespace, s.Name) {
		return "", nil
	}
	return obj.UID, nil
}

// owned reports whether an IPAddress is that of a Service.
func owned(obj *networkingv1.IPAddress, namespace, name string) bool {
	p := obj.Spec.ParentRef
	return p != nil && p.Group == "" && p.Resource == "services" && p.Namespace == namespace && p.Name == name
}

// release deletes the IPAddress with a UID. Another one of the same name stays.
func (a *addresses) release(ctx context.Context, ip netip.Addr, uid types.UID) error {
	err := a.storage.Delete(ctx, addressKey(ip), &networkingv1.IPAddress{}, &storage.Preconditions{UID: &uid}, storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	if err == nil || storage.IsNotFound(err) || storage.IsInvalidObj(err) { // gone, or another's
		return nil
	}
	return fmt.Errorf("releasing cluster IP %s failed: %w", ip, err)
}

// list is all IPAddresses, of both families.
func (a *addresses) list(ctx context.Context) ([]networkingv1.IPAddress, error) {
	list := &networkingv1.IPAddressList{}
	err := a.storage.GetList(ctx, addressFolder+"/", everything, list)
	return list.Items, err
}

// everything are the options of a list of all objects, as etcd has them.
var everything = storage.ListOptions{Recursive: true, Predicate: storage.SelectionPredicate{
	Label: labels.Everything(), Field: fields.Everything(), GetAttrs: storage.DefaultNamespaceScopedAttr,
}}
