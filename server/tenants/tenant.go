package tenants

import (
	"context"
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/server/storage/meter"
)

// CRD is the CustomResourceDefinition of tenants, as YAML.
//
//go:embed crd.yaml
var CRD []byte

// Resource is where tenants are.
var Resource = schema.GroupVersionResource{Group: "espalier.dev", Version: "v1alpha1", Resource: "tenants"}

// Finalizer keeps the object of a tenant until nothing of the tenant is left.
const Finalizer = "espalier.dev/tenant"

// Tenant is what the server needs to know of one.
type Tenant struct {
	Name string
	UID  types.UID
	// Requests is how many requests of the tenant one replica works on at a time.
	Requests int
	// Limit is how much the tenant may have in etcd.
	Limit meter.Usage
	Place
	// awaits is that the tenant was created for an import. It matters until the guard exists.
	awaits bool
	// etcd and generation are those of the object of its etcd: when it changes, another
	// connection is needed.
	etcd       types.UID
	generation int64
	next       string // the etcd that it is being moved to
}

// Holder is what the guard of the tenant has as its value, while the tenant is where Place says.
func (t Tenant) Holder() string {
	if t.Epoch == 0 {
		return t.Name
	}
	return fmt.Sprintf("%s/%d", t.Name, t.Epoch)
}

// Path is where a tenant is in URLs.
func Path(name string) string { return "/clusters/" + name }

// folders is what the keys of all tenants begin with.
func folders(prefix string) string { return path.Join("/", prefix) + "-tenants/" }

// Prefix is the prefix of the keys of a tenant, if that of the server is given.
func Prefix(prefix string, uid types.UID) string { return folders(prefix) + string(uid) }

// Guard is the key that exists while something may be written below Prefix.
func Guard(prefix string, uid types.UID) string { return Prefix(prefix, uid) }

// What a tenant has if its object does not say.
const (
	DefaultRequests = 20
	DefaultObjects  = 100_000
	DefaultStorage  = 500 << 20
)

// tenantOf reads an object.
func tenantOf(o *unstructured.Unstructured) Tenant {
	t := Tenant{Name: o.GetName(), UID: o.GetUID(), Requests: DefaultRequests, Limit: meter.Usage{Keys: DefaultObjects, Bytes: DefaultStorage}, Place: placeOf(o)}
	t.awaits = o.GetAnnotations()[AwaitsImport] != ""
	if n, found, err := unstructured.NestedInt64(o.Object, "spec", "requests"); err == nil && found && n > 0 {
		t.Requests = int(n)
	}
	if n, found, err := unstructured.NestedInt64(o.Object, "spec", "objects"); err == nil && found && n > 0 {
		t.Limit.Keys = n
	}
	if n, err := bytesOf(o); err == nil && n > 0 {
		t.Limit.Bytes = n
	}
	return t
}

// bytesOf reads a quantity, which is a text or a number.
func bytesOf(o *unstructured.Unstructured) (int64, error) {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, "spec", "storage")
	if err != nil {
		return 0, err
	}
	q, err := resource.ParseQuantity(fmt.Sprint(value))
	if err != nil {
		return 0, err
	}
	return q.Value(), nil
}

// errGone is that there is no such tenant, or not for much longer.
var errGone = apierrors.NewNotFound(Resource.GroupResource(), "")

// registry finds tenants.
type registry struct {
	client dynamic.ResourceInterface
	etcd   *clientv3.Client // of the server
	pool   *Pool
	prefix string
}

// objects is the folder of the tenants' objects in etcd, and etcds that of those of etcds.
func (r *registry) objects() string {
	return path.Join("/", r.prefix, Resource.Group, Resource.Resource) + "/"
}

func (r *registry) etcds() string {
	return path.Join("/", r.prefix, EtcdResource.Group, EtcdResource.Resource) + "/"
}

// open returns a tenant into whose folder may be written from now on, and the etcd that it is
// in, which the caller must release.
func (r *registry) open(ctx context.Context, name string) (Tenant, *Use, error) {
	return r.openBy(ctx, name, r.guard)
}

// guarding sees to it that the guard of a tenant exists, whose object has a resourceVersion. It
// returns false if the object must be read again.
type guarding func(ctx context.Context, use *Use, t Tenant, version string) (bool, error)

// openBy is open with another way to create the guard.
func (r *registry) openBy(ctx context.Context, name string, guard guarding) (_ Tenant, _ *Use, err error) {
	for {
		o, err := r.client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return Tenant{}, nil, err
		}
		if o.GetDeletionTimestamp() != nil {
			return Tenant{}, nil, errGone
		}
		if m := moveOf(o); m != nil && m.Phase == switching {
			return Tenant{}, nil, &movingError{m.To, m.Attempt}
		}
		if o, err = r.choose(ctx, o); err != nil {
			return Tenant{}, nil, err
		} else if o == nil {
			continue
		}
		if !slices.Contains(o.GetFinalizers(), Finalizer) {
			o.SetFinalizers(append(o.GetFinalizers(), Finalizer))
			if o, err = r.client.Update(ctx, o, metav1.UpdateOptions{}); apierrors.IsConflict(err) {
				continue
			} else if err != nil {
				return Tenant{}, nil, fmt.Errorf("add the finalizer: %w", err)
			}
		}
		t := tenantOf(o)
		use, err := r.pool.Use(ctx, t.Etcd)
		if err != nil {
			return Tenant{}, nil, err
		}
		t.etcd, t.generation = use.Of.UID, use.Of.Generation
		if m := moveOf(o); m != nil {
			t.next = m.To
		}
		asking, end := use.patient(ctx)
		done, err := guard(asking, use, t, o.GetResourceVersion())
		err = ended(asking, err)
		end()
		if err == nil && done {
			return t, use, nil
		}
		use.Release()
		if err != nil {
			return Tenant{}, nil, err
		}
		select { // something is being done to the tenant
		case <-ctx.Done():
			return Tenant{}, nil, ctx.Err()
		case <-time.After(movePoll):
		}
	}
}

// split takes the tenant out of a path. A name that is written in another way than it is
// compared is none.
func split(p, raw string) (name, rest, rawRest string, ok bool) {
	name, rest, rawRest, ok = Split(p, raw)
	return name, rest, rawRest, ok && name != "*"
}

// Split is split for the path within a tenant, where * stands for all.
func Split(p, raw string) (name, rest, rawRest string, ok bool) {
	below, ok := strings.CutPrefix(p, Path(""))
	if !ok {
		return "", "", "", false
	}
	name, rest, _ = strings.Cut(below, "/")
	if !valid(name) && name != "*" {
		return "", "", "", false
	}
	if raw != "" {
		after, ok := strings.CutPrefix(raw, Path(name))
		if !ok || after != "" && after[0] != '/' {
			return "", "", "", false
		}
		rawRest = after
	}
	return name, "/" + rest, rawRest, true
}

// valid reports whether a name is one that a tenant can have: a DNS label.
func valid(name string) bool {
	if name == "" || len(name) > 63 || name[0] == '-' || name[len(name)-1] == '-' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}
