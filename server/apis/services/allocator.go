package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// servicesFolder is where kube-apiserver has the Services.
const servicesFolder = "/services/specs"

// An Allocator allocates the cluster IPs and node ports of Services. It is safe for
// concurrent use, also with those of other processes on the same etcd.
type Allocator struct {
	options   Options
	addresses []*addresses // of the default family first
	ports     ports
	services  storage.Interface
	// epochKey is the repair key, and epoch a revision that it has had; -1 if not known.
	epochKey string
	epoch    atomic.Int64
	// deleting has what Services hold that are being deleted, by UID.
	deleting sync.Map
	stop     []func()
}

// New returns an allocator. It reads and writes nothing yet.
func New(o Options) (*Allocator, error) {
	if o.Backend == nil {
		return nil, errors.New("allocation of cluster IPs and node ports needs a backend")
	}
	if err := checkRanges(o.ClusterIPs); err != nil {
		return nil, err
	}
	if p := o.NodePorts; p.First < 1 || p.Last > 65535 || p.First > p.Last {
		return nil, fmt.Errorf("%s is not a range of node ports", p)
	}
	o.RepairInterval = cmp.Or(o.RepairInterval, DefaultRepairInterval)
	a := &Allocator{options: o, ports: ports{ports: o.NodePorts}, epochKey: o.Backend.Key("-espalier/services-repair")}
	a.epoch.Store(-1)
	ips, err := a.open(networkingv1.SchemeGroupVersion, "ipaddresses", addressFolder, func() runtime.Object { return &networkingv1.IPAddress{} }, func() runtime.Object { return &networkingv1.IPAddressList{} })
	if err != nil {
		return nil, err
	}
	for _, within := range o.ClusterIPs {
		a.addresses = append(a.addresses, &addresses{storage: ips, within: within})
	}
	if a.ports.storage, err = a.open(corev1.SchemeGroupVersion, "rangeallocations", "/ranges", func() runtime.Object { return &corev1.RangeAllocation{} }, func() runtime.Object { return &corev1.List{} }); err != nil {
		return nil, err
	}
	a.services, err = a.open(corev1.SchemeGroupVersion, "services", servicesFolder, func() runtime.Object { return &corev1.Service{} }, func() runtime.Object { return &corev1.ServiceList{} })
	return a, err
}

// open returns the storage of a resource, without a watch cache: allocations need what
// etcd has now.
func (a *Allocator) open(version schema.GroupVersion, resource, prefix string, create, list func() runtime.Object) (storage.Interface, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		return nil, fmt.Errorf("there is no serializer for %s", runtime.ContentTypeProtobuf)
	}
	s, stop, err := a.options.Backend.Storage(store.Spec{
		Resource: version.WithResource(resource).GroupResource(), ResourcePrefix: prefix, Version: version.Version,
		Codec:   namedCodec{scheme.Codecs.CodecForVersions(info.Serializer, scheme.Codecs.UniversalDeserializer(), version, version)},
		NewFunc: create, NewListFunc: list, Complete: true, // what cannot be read may hold an address
	})
	if err == nil {
		a.stop = append(a.stop, stop)
	}
	return s, err
}

// Close releases the storages.
func (a *Allocator) Close() {
	for _, stop := range a.stop {
		stop()
	}
}

// of returns the addresses of a family; nil if there are none.
func (a *Allocator) of(family corev1.IPFamily) *addresses {
	for _, one := range a.addresses {
		if one.family() == family {
			return one
		}
	}
	return nil
}

// withAddress returns the addresses of the family of an address.
func (a *Allocator) withAddress(ip netip.Addr) *addresses {
	if ip.Is4() {
		return a.of(corev1.IPv4Protocol)
	}
	return a.of(corev1.IPv6Protocol)
}

// ipsOf are the cluster IPs that a Service holds.
func ipsOf(s *corev1.Service) map[netip.Addr]bool {
	held := map[netip.Addr]bool{}
	if s == nil || external(s) || headless(s) {
		return held
	}
	for _, text := range s.Spec.ClusterIPs {
		if ip, ok := parseIP(text); ok {
			held[ip] = true
		}
	}
	if ip, ok := parseIP(s.Spec.ClusterIP); ok { // older than clusterIPs
		held[ip] = true
	}
	return held
}

// portsOf are the node ports that a Service holds. One of type ExternalName may have the
// fields, as in kube-apiserver, but holds nothing: the port may be another Service's.
func portsOf(s *corev1.Service) map[int]bool {
	held := map[int]bool{}
	if s == nil {
		return held
	}
	if may, _ := takesPorts(s); !may {
		return held
	}
	for i := range s.Spec.Ports {
		if port := int(s.Spec.Ports[i].NodePort); port != 0 {
			held[port] = true
		}
	}
	if port := int(s.Spec.HealthCheckNodePort); port != 0 {
		held[port] = true
	}
	return held
}

// allocateIPs allocates the cluster IPs that a Service needs and the old one has not.
func (a *Allocator) allocateIPs(ctx context.Context, s, old *corev1.Service, dryRun bool, got map[netip.Addr]types.UID) error {
	if headless(s) {
		return nil
	}
	held := ipsOf(old)
	for i, text := range s.Spec.ClusterIPs {
		ip, ok := parseIP(text)
		if !ok || held[ip] || dryRun {
			continue
		}
		from, err := a.withAddress(ip), errors.New("the provided network does not match the current range")
		var uid types.UID
		if from != nil && from.usable(ip) {
			uid, err = from.allocate(ctx, ip, s)
		} else {
			ok = false
		}
		if err != nil && (!ok || errors.Is(err, errAddressTaken)) {
			return invalid(s, field.Invalid(ipsPath, s.Spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %v: %v", s.Spec.ClusterIPs[i], err)))
		}
		if err != nil {
			return failed(err, "failed to allocate IP %v: %v", ip, err)
		}
		got[ip] = uid
	}
	for i := len(s.Spec.ClusterIPs); i < len(s.Spec.IPFamilies); i++ {
		from := a.of(s.Spec.IPFamilies[i])
		ip := from.within.Addr() // kube-apiserver answers a dry run with it
		if !dryRun {
			var uid types.UID
			var err error
			if ip, uid, err = from.next(ctx, s); err != nil {
				return failed(err, "failed to allocate a serviceIP for Service %q: %v", s.Name, err)
			}
			got[ip] = uid
		}
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs[:i:i], ip.String())
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	return nil
}

// failed is an internal error in the words of kube-apiserver. What storage says of the
// outcome of a write stays.
func failed(err error, format string, args ...any) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return err
	}
	return apierrors.NewInternalError(fmt.Errorf(format, args...))
}
