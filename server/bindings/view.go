package bindings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/apis/customresource"
	"github.com/espalier-dev/espalier/server/storage/scan"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// View is what a provider sees: the objects of its resources in all tenants that have bound them
// and let it list and watch them.
type View struct {
	of    tenants.Shared
	etcd  *clientv3.Client // of the provider
	inner value.ResourceTransformers
	life  context.Context

	mu        sync.Mutex
	audiences map[schema.GroupResource]*audience
}

// NewView returns the view of a provider until a context ends.
func NewView(life context.Context, of tenants.Shared, etcd *clientv3.Client, transformers value.ResourceTransformers) *View {
	return &View{of: of, etcd: etcd, inner: transformers, life: life, audiences: map[schema.GroupResource]*audience{}}
}

// Part is where the objects of the view seem to be.
func (v *View) Part() store.Part {
	return store.Part{
		Prefix: v.of.Marks(), Guard: v.of.Guard(), Transformers: v,
		Rule:    readOnly,
		Wrap:    func(kv clientv3.KV) clientv3.KV { return markedKV{kv, v} },
		Watcher: markedWatcher{v.etcd.Watcher, markedKV{v.etcd.KV, v}},
	}
}

// readOnly refuses to write.
func readOnly(done []clientv3.Op) (a store.Addition) {
	if slices.ContainsFunc(done, func(op clientv3.Op) bool { return !op.IsGet() }) {
		a.Refused = errReadOnly
	}
	return a
}

var errReadOnly = errors.New("objects of several tenants are only read")

// Key is that of an object in the view.
func (v *View) Key(r schema.GroupResource, o *object.Object) (string, error) {
	uid, err := v.uid(o.GetAnnotations()[customresource.TenantAnnotation], r)
	if err != nil {
		return "", err
	}
	key := "/" + r.Group + "/" + r.Resource + "/" + string(uid) + "/"
	if namespace := o.GetNamespace(); namespace != "" {
		key += namespace + "/"
	}
	return key + o.GetName(), nil
}

// uid returns the UID of a tenant that has bound a resource.
func (v *View) uid(tenant string, r schema.GroupResource) (types.UID, error) {
	a, err := v.members(v.life, r)
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for uid, g := range a.known {
		if g.Tenant == tenant {
			return uid, nil
		}
	}
	return "", fmt.Errorf("the tenant %q has not bound %s", tenant, r)
}

// seen reports whether the provider may see the object of a mark.
func (v *View) seen(ctx context.Context, mark string) (bool, error) {
	key, consumer := v.of.Object(mark)
	if key == "" {
		return false, nil
	}
	a, err := v.members(ctx, v.of.Resource(mark))
	if err != nil {
		return false, err
	}
	grant, err := a.find(ctx, consumer)
	return grant != nil && grant.Seen(), err
}

// TransformerForResource implements value.ResourceTransformers.
func (v *View) TransformerForResource(r schema.GroupResource) value.Transformer {
	var inner value.Transformer
	if v.inner != nil {
		inner = v.inner.TransformerForResource(r)
	}
	if inner == nil {
		inner = identity.NewEncryptCheckTransformer()
	}
	return &labelling{inner, v, r}
}

// labelling names the tenant in each object that is read.
type labelling struct {
	value.Transformer
	view     *View
	resource schema.GroupResource
}

// TransformFromStorage implements value.Transformer.
func (l *labelling) TransformFromStorage(ctx context.Context, data []byte, about value.Context) ([]byte, bool, error) {
	key, consumer := l.view.of.Object(string(about.AuthenticatedData()))
	if key == "" {
		return nil, false, fmt.Errorf("the key %q is not that of a mark", about.AuthenticatedData())
	}
	plain, stale, err := l.Transformer.TransformFromStorage(ctx, data, value.DefaultContext(key))
	if err != nil || len(plain) == 0 {
		return plain, stale, err
	}
	a, err := l.view.members(ctx, l.resource)
	if err != nil {
		return nil, false, err
	}
	grant, err := a.find(ctx, consumer)
	if err != nil {
		return nil, false, err
	}
	tenant := ""
	if grant != nil && grant.Seen() {
		tenant = grant.Tenant
	}
	labelled, err := label(plain, tenant)
	return labelled, stale, err
}

// TransformToStorage implements value.Transformer.
func (l *labelling) TransformToStorage(context.Context, []byte, value.Context) ([]byte, error) {
	return nil, errReadOnly
}

// label names a tenant in an object; none if it is empty.
func label(data []byte, tenant string) ([]byte, error) {
	o, err := object.FromJSON(bytes.TrimRight(data, "\n"))
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{}
	for key, value := range o.GetAnnotations() {
		annotations[key] = value
	}
	delete(annotations, customresource.TenantAnnotation)
	if tenant != "" {
		annotations[customresource.TenantAnnotation] = tenant
	}
	o.SetAnnotations(annotations)
	return append(o.AppendJSON(nil), '\n'), nil
}

// audience are the tenants that have bound a resource. It is in memory while the view of the
// resource is in use.
type audience struct {
	view   *View
	folder string
	r      schema.GroupResource

	mu    sync.Mutex
	known map[types.UID]Grant
	// gone are grants that were deleted lately. Watches go by them until they have read that the
	// objects are deleted, too: that comes by another stream.
	gone map[types.UID]Grant
	// floor is a revision at which others were seen than now. again is closed when it changes: from
	// then on clients list again.
	floor    int64
	again    chan struct{}
	expired  time.Time // when it changed
	expiring bool      // it will change
}

const (
	// goneTime is how long a deleted grant is known.
	goneTime = time.Minute
	// expirePause is how often clients are told to list again, at most: each consumer can cause it,
	// and all others are listed, too. What is taken back is not seen from the first moment.
	expirePause = 5 * time.Second
)

// since returns the floor, and what is closed when it changes.
func (a *audience) since() (int64, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.floor, a.again
}

// expire has clients list again, now or soon.
func (a *audience) expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.expiring {
		return
	}
	a.expiring = true
	time.AfterFunc(time.Until(a.expired.Add(expirePause)), func() {
		ctx, cancel := context.WithTimeout(a.view.life, expirePause)
		defer cancel()
		// Lists up to now may have gone by what was known before.
		now, err := scan.Revision(ctx, a.view.etcd, a.folder)
		a.mu.Lock()
		defer a.mu.Unlock()
		if err == nil {
			a.floor = max(a.floor, now)
		}
		close(a.again)
		a.again, a.expired, a.expiring = make(chan struct{}), time.Now(), false
	})
}

// members returns the audience of a resource, which is followed from the first use on.
func (v *View) members(ctx context.Context, r schema.GroupResource) (*audience, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.audiences[r]; a != nil {
		return a, nil
	}
	a := &audience{view: v, folder: v.of.Grant(r, ""), r: r, gone: map[types.UID]Grant{}, again: make(chan struct{})}
	revision, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	v.audiences[r] = a
	go a.follow(v.life, revision)
	return a, nil
}

// load reads all grants.
func (a *audience) load(ctx context.Context) (revision int64, err error) {
	found, err := a.view.etcd.Get(ctx, a.folder, clientv3.WithPrefix())
	if err != nil {
		return 0, fmt.Errorf("reading which tenants have bound %s: %w", a.r, err)
	}
	known, floor := map[types.UID]Grant{}, int64(0)
	for _, kv := range found.Kvs {
		known[a.consumer(kv.Key)] = readGrant(kv.Value)
		if kv.Version > 1 { // it may have been changed since a client has listed by another replica
			floor = max(floor, kv.ModRevision)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known, a.floor = known, max(a.floor, floor)
	return found.Header.Revision, nil
}

func (a *audience) consumer(key []byte) types.UID {
	return types.UID(strings.TrimPrefix(string(key), a.folder))
}

// readGrant reads a grant. One that is damaged grants nothing.
func readGrant(data []byte) (g Grant) {
	if err := json.Unmarshal(data, &g); err != nil {
		return Grant{}
	}
	return g
}

// find returns the grant of a tenant, nil if there is none. What is not known is read: the watch
// may be behind that of the objects.
func (a *audience) find(ctx context.Context, consumer types.UID) (*Grant, error) {
	a.mu.Lock()
	g, ok := a.known[consumer]
	a.mu.Unlock()
	if ok {
		return &g, nil
	}
	found, err := a.view.etcd.Get(ctx, a.folder+string(consumer))
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(found.Kvs) == 0 {
		if g, ok := a.gone[consumer]; ok {
			return &g, nil
		}
		return nil, nil
	}
	g = readGrant(found.Kvs[0].Value)
	if newer, ok := a.known[consumer]; ok {
		return &newer, nil
	}
	a.known[consumer] = g
	return &g, nil
}

// follow follows the grants until the context ends.
func (a *audience) follow(ctx context.Context, revision int64) {
	for ctx.Err() == nil {
		inner, cancel := context.WithCancel(clientv3.WithRequireLeader(store.OwnStream(ctx, string(a.view.of.Provider))))
		for answer := range a.view.etcd.Watch(inner, a.folder, clientv3.WithPrefix(), clientv3.WithRev(revision+1)) {
			if answer.Err() != nil {
				break
			}
			for _, event := range answer.Events {
				a.apply(event)
				revision = event.Kv.ModRevision
			}
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPause):
		}
		if now, err := a.load(ctx); err == nil {
			revision = now
			a.expire() // of what was missed, something may concern it
		}
	}
}

// apply makes a change. If it shows objects that were not seen, or the other way round, watches end:
// they begin again with a list.
func (a *audience) apply(event *clientv3.Event) {
	consumer := a.consumer(event.Kv.Key)
	a.mu.Lock()
	old, known := a.known[consumer]
	var now Grant
	if event.Type == clientv3.EventTypeDelete {
		delete(a.known, consumer)
		if known {
			a.gone[consumer] = old
			time.AfterFunc(goneTime, func() {
				a.mu.Lock()
				defer a.mu.Unlock()
				delete(a.gone, consumer)
			})
		}
	} else {
		now = readGrant(event.Kv.Value)
		a.known[consumer] = now
	}
	a.mu.Unlock()
	if known && event.Type != clientv3.EventTypeDelete && (old.Seen() != now.Seen() || old.Tenant != now.Tenant) {
		a.expire()
	}
}
