package tenants

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/internal/archive"
	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/scan"
)

// exportBuffer is how much of an archive is kept back: until that is full, an error is an answer of
// its own.
const exportBuffer = 64 << 10

// portsFolder has the node ports that Services have. The server finds them out again.
const portsFolder = "/ranges/"

// export sends everything in a tenant, as it is at one revision of etcd.
func (t *Transfer) export(w http.ResponseWriter, req *http.Request, name string) error {
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	o, err := t.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	e := exporter{Transfer: t, tenant: tenantOf(o), object: o}
	answer := &answer{w: w}
	buffer := bufio.NewWriterSize(answer, exportBuffer)
	if err = e.write(ctx, buffer); err != nil {
		klog.ErrorS(err, "Exporting a tenant failed", "tenant", name)
		if !answer.begun {
			return err
		}
		err = e.to.Fail(err)
	}
	// Errors from here on are those of the connection: the client sees that the archive ends early.
	if err = errors.Join(err, buffer.Flush()); err != nil {
		klog.V(2).InfoS("Sending the archive of a tenant failed", "tenant", name, "err", err)
	}
	return nil
}

// answer is the answer to a request, which begins with the first byte.
type answer struct {
	w     http.ResponseWriter
	begun bool
}

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun = true
		a.w.Header().Set("Content-Type", "application/gzip")
		a.w.Header().Set("Cache-Control", "no-store")
	}
	return a.w.Write(p)
}

// exporter writes the archive of one tenant.
type exporter struct {
	*Transfer
	tenant   Tenant
	object   *unstructured.Unstructured
	prefix   string
	revision int64
	all      *resources
	to       *archive.Writer
	end      archive.End
	sample   string // a key that is left out
}

func (e *exporter) write(ctx context.Context, to io.Writer) (err error) {
	if e.object.GetDeletionTimestamp() != nil {
		return conflict(e.tenant.Name, "the tenant is being deleted")
	}
	if e.all, err = e.newResources(); err != nil {
		return err
	}
	if !slices.Contains(e.object.GetFinalizers(), Finalizer) { // it was never used
		if err := e.begin(to); err != nil {
			return err
		}
		return e.to.Close(e.end)
	}
	uid := e.tenant.UID
	var use *Use
	if e.tenant, use, err = e.open(ctx, e.tenant.Name); err != nil {
		return err
	}
	defer use.Release()
	etcd := use.Client()
	guard, err := etcd.Get(ctx, Guard(e.registry.prefix, e.tenant.UID))
	if err != nil {
		return err
	}
	// With this guard, all of the tenant is here at the revision of the answer.
	if len(guard.Kvs) == 0 || string(guard.Kvs[0].Value) != e.tenant.Holder() || e.tenant.UID != uid {
		return conflict(e.tenant.Name, "the tenant was moved, deleted or created again at this moment; export it again")
	}
	e.revision, e.prefix = guard.Header.Revision, Prefix(e.registry.prefix, e.tenant.UID)
	if err := e.begin(to); err != nil {
		return err
	}
	first := e.all.byName[archive.CRDs].folder + "/"
	if _, err := scan.All(ctx, etcd, e.prefix+first, clientv3.GetPrefixRangeEnd(e.prefix+first), e.revision, func(kv *mvccpb.KeyValue) error { return e.crd(ctx, kv) }); err != nil {
		return e.explain(err)
	}
	_, err = scan.All(ctx, etcd, e.prefix+"/", clientv3.GetPrefixRangeEnd(e.prefix+"/"), e.revision, func(kv *mvccpb.KeyValue) error {
		key := strings.TrimPrefix(string(kv.Key), e.prefix)
		if strings.HasPrefix(key, first) || strings.HasPrefix(key, "/"+replica.OwnFolder) || strings.HasPrefix(key, portsFolder) {
			return nil
		}
		_, err := e.add(ctx, kv)
		return err
	})
	if err != nil {
		return e.explain(err)
	}
	if e.end.Unserved > 0 {
		klog.InfoS("Exported a tenant without objects that no API serves", "tenant", e.tenant.Name, "objects", e.end.Unserved, "for example", e.sample)
	}
	return e.to.Close(e.end)
}

// begin writes the header.
func (e *exporter) begin(to io.Writer) (err error) {
	spec, err := json.Marshal(e.object.Object["spec"])
	if err != nil {
		return err
	}
	e.to, err = archive.NewWriter(to, archive.Header{
		Server: e.options.Version, Tenant: e.tenant.Name, UID: string(e.tenant.UID), Spec: spec, Revision: e.revision, Created: time.Now().UTC().Truncate(time.Second),
	})
	return err
}

// explain says what to do about an error.
func (e *exporter) explain(err error) error {
	if errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("etcd no longer has revision %d, at which the export began: it took longer than the server keeps revisions (--etcd-compaction-interval); export again, from a machine with a faster connection to the server", e.revision)
	}
	return err
}

// crd writes a CRD, and remembers its resource.
func (e *exporter) crd(ctx context.Context, kv *mvccpb.KeyValue) error {
	text, err := e.add(ctx, kv)
	if err != nil || text == nil {
		return err
	}
	if err := e.define(e.all, text); err != nil {
		return fmt.Errorf("the CRD at the key %s: %w", kv.Key, err)
	}
	return nil
}

// crdView is what is read of a CRD.
type crdView struct {
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Plural string `json:"plural"`
			Kind   string `json:"kind"`
		} `json:"names"`
	} `json:"spec"`
}

// define adds the resource of a CRD.
func (t *Transfer) define(all *resources, text []byte) error {
	var crd crdView
	if err := json.Unmarshal(text, &crd); err != nil {
		return err
	}
	s := crd.Spec
	if s.Group == "" || s.Names.Plural == "" || s.Names.Kind == "" || crd.Metadata.Name != s.Names.Plural+"."+s.Group || strings.Contains(crd.Metadata.Name, "/") {
		return errors.New("metadata.name must be spec.names.plural, a dot and spec.group, and spec.names.kind must be set")
	}
	r := &resourceInfo{folder: "/" + s.Group + "/" + s.Names.Plural, namespaced: s.Scope == "Namespaced", kind: s.Names.Kind}
	r.Group, r.Resource = s.Group, s.Names.Plural
	t.add(all, r)
	return nil
}

// of returns the resource of a key below the prefix of the tenant.
func (r *resources) of(key string) (*resourceInfo, string) {
	const mostSegments = 3 // of the folder of a resource
	var ends []int
	for i := 1; i < len(key) && len(ends) < mostSegments; i++ {
		if key[i] == '/' {
			ends = append(ends, i)
		}
	}
	for _, end := range slices.Backward(ends) {
		if found := r.byFolder[key[:end]]; found != nil {
			return found, key[end+1:]
		}
	}
	return nil, ""
}

// add writes an object. It returns nothing if the object is left out.
func (e *exporter) add(ctx context.Context, kv *mvccpb.KeyValue) ([]byte, error) {
	r, name := e.all.of(strings.TrimPrefix(string(kv.Key), e.prefix))
	switch {
	case r == nil:
		e.end.Unserved++
		e.sample = string(kv.Key)
		return nil, nil
	case kv.Lease != 0 || r.expires:
		e.end.Expiring++
		return nil, nil
	}
	text, err := r.json(ctx, kv, name)
	if err != nil {
		return nil, fmt.Errorf("the object at the key %s cannot be read: %w; fix or delete it, and export again", kv.Key, err)
	}
	return text, e.to.Write(r.String(), text)
}

// json returns the JSON of an object.
func (r *resourceInfo) json(ctx context.Context, kv *mvccpb.KeyValue, name string) ([]byte, error) {
	plain, _, err := r.transformer.TransformFromStorage(ctx, kv.Value, value.DefaultContext(kv.Key))
	if err != nil {
		return nil, err
	}
	if r.builtin != nil {
		return r.builtin.JSON(plain, name)
	}
	return r.custom(plain, name)
}
