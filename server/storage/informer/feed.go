package informer

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/storage/scan"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// pause is how long a feed waits before it asks etcd again.
const pause = 200 * time.Millisecond

// Kind says how the objects of a resource are stored.
type Kind struct {
	Resource schema.GroupResource
	// Folder is where they are, below the prefix of all keys: "/clusterroles".
	Folder string
	New    func() runtime.Object
	Codec  runtime.Codec
	// Complete has the feed fail if an object cannot be read. Without it, such an object
	// is left out.
	Complete bool
}

// Options say where objects are.
type Options struct {
	Etcd *clientv3.Client
	// Prefix is that of all keys.
	Prefix string
	// Transformers decrypt; nil if nothing is encrypted.
	Transformers value.ResourceTransformers
	// Stream names the connection of the watch: feeds with different names have
	// different ones.
	Stream string
}

// Feed keeps informers up to date. It is safe for concurrent use.
type Feed struct {
	options Options
	folder  string // of all keys
	wake    chan struct{}
	ended   atomic.Bool

	mu        sync.Mutex
	informers []*informer
	byFolder  map[string]*informer // by the folder's first part, or two
}

// New returns a feed for kinds that does not run yet.
func New(o Options, kinds []Kind) *Feed {
	f := &Feed{options: o, folder: path.Join("/", o.Prefix), wake: make(chan struct{}, 1), byFolder: map[string]*informer{}}
	for _, k := range kinds {
		i := newInformer(f, k)
		f.informers = append(f.informers, i)
		f.byFolder[k.Folder] = i
	}
	return f
}

// Register makes the informers those of a factory, which has none of these kinds yet.
func (f *Feed) Register(factory informers.SharedInformerFactory) {
	for _, i := range f.informers {
		factory.InformerFor(i.kind.New(), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return i })
	}
}

// nudge has Run look for kinds that are wanted.
func (f *Feed) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run reads and follows until the context ends.
func (f *Feed) Run(ctx context.Context) error {
	defer f.ended.Store(true)
	for {
		err := f.follow(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		klog.V(2).InfoS("Reading the built-in resources of a tenant again", "prefix", f.folder, "cause", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// follow reads everything that is wanted, and follows it until etcd ends the watch.
func (f *Feed) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(store.OwnStream(clientv3.WithRequireLeader(ctx), f.options.Stream))
	defer cancel()
	revision, err := f.load(ctx, f.wanted(false))
	if err != nil {
		return err
	}
	events := f.options.Etcd.Watch(ctx, f.folder+"/", clientv3.WithPrefix(), clientv3.WithRev(revision+1))
	for {
		select {
		case answer, ok := <-events:
			if !ok {
				return errors.New("the watch has ended")
			}
			if err := answer.Err(); err != nil {
				return err
			}
			for _, event := range answer.Events {
				if err := f.apply(ctx, event); err != nil {
					return err
				}
			}
		case <-f.wake:
			if _, err := f.load(ctx, f.wanted(true)); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wanted are the informers that something has asked for; only those that were never loaded,
// if asked.
func (f *Feed) wanted(unloaded bool) []*informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*informer
	for _, i := range f.informers {
		if i.wanted.Load() && (!unloaded || i.revision == 0) {
			all = append(all, i)
		}
	}
	return all
}

// atOnce is how many ranges are read in one transaction, and small how many objects of each:
// most kinds have a few.
const atOnce, small = 64, 100

// load reads all objects of informers and returns the revision that they are of.
func (f *Feed) load(ctx context.Context, wanted []*informer) (revision int64, err error) {
	for len(wanted) > 0 {
		some := wanted[:min(atOnce, len(wanted))]
		wanted = wanted[len(some):]
		ops := make([]clientv3.Op, len(some))
		for k, i := range some {
			ops[k] = clientv3.OpGet(f.folder+i.kind.Folder+"/", clientv3.WithPrefix(), clientv3.WithLimit(small), clientv3.WithRev(revision))
		}
		answer, err := f.options.Etcd.Txn(ctx).Then(ops...).Commit()
		if err != nil {
			return 0, fmt.Errorf("reading the built-in resources of a tenant: %w", err)
		}
		if revision == 0 {
			revision = answer.Header.Revision
		}
		for k, i := range some {
			found := answer.Responses[k].GetResponseRange()
			if err := f.fill(ctx, i, found.Kvs, found.More, revision); err != nil {
				return 0, err
			}
		}
	}
	if revision == 0 {
		return scan.Revision(ctx, f.options.Etcd, f.folder)
	}
	return revision, nil
}

// fill gives an informer the objects of a revision. first are the first ones of them.
func (f *Feed) fill(ctx context.Context, i *informer, first []*mvccpb.KeyValue, more bool, revision int64) error {
	objects := make([]any, 0, len(first))
	add := func(kv *mvccpb.KeyValue) error {
		o, err := f.decode(ctx, i, kv)
		if err != nil && (i.kind.Complete || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			klog.ErrorS(err, "Leaving out an object of a tenant that cannot be read", "key", string(kv.Key))
			return nil
		}
		objects = append(objects, o)
		return nil
	}
	for _, kv := range first {
		if err := add(kv); err != nil {
			return err
		}
	}
	if more {
		folder := f.folder + i.kind.Folder + "/"
		begin := string(first[len(first)-1].Key) + "\x00"
		if _, err := scan.All(ctx, f.options.Etcd, begin, clientv3.GetPrefixRangeEnd(folder), revision, add); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i.replace(objects, revision)
	return nil
}

// apply tells the informer of its kind about a change.
func (f *Feed) apply(ctx context.Context, event *clientv3.Event) error {
	below := strings.TrimPrefix(string(event.Kv.Key), f.folder)
	i, name := f.find(below)
	if i == nil {
		return nil
	}
	f.mu.Lock()
	known := i.revision
	f.mu.Unlock()
	if known == 0 || event.Kv.ModRevision <= known { // not read yet, or read with the change
		return nil
	}
	var o runtime.Object
	if event.Type != clientv3.EventTypeDelete {
		var err error
		if o, err = f.decode(ctx, i, event.Kv); err != nil && (i.kind.Complete || ctx.Err() != nil) {
			return err
		} else if err != nil {
			klog.ErrorS(err, "Leaving out an object of a tenant that cannot be read", "key", string(event.Kv.Key))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if o == nil {
		i.remove(name)
	} else {
		i.set(o)
	}
	return nil
}

// find returns the informer of a key below the prefix, and what follows its folder.
func (f *Feed) find(below string) (*informer, string) {
	at := 1
	for range 2 { // "/clusterroles", "/services/specs"
		slash := strings.IndexByte(below[min(at, len(below)):], '/')
		if slash < 0 {
			return nil, ""
		}
		at += slash
		if i := f.byFolder[below[:at]]; i != nil {
			return i, below[at+1:]
		}
		at++
	}
	return nil, ""
}

// decode reads an object.
func (f *Feed) decode(ctx context.Context, i *informer, kv *mvccpb.KeyValue) (runtime.Object, error) {
	data := kv.Value
	if f.options.Transformers != nil {
		if t := f.options.Transformers.TransformerForResource(i.kind.Resource); t != nil {
			var err error
			if data, _, err = t.TransformFromStorage(ctx, data, value.DefaultContext(kv.Key)); err != nil {
				return nil, fmt.Errorf("decrypting %s: %w", kv.Key, err)
			}
		}
	}
	o, _, err := i.kind.Codec.Decode(data, nil, i.kind.New())
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", kv.Key, err)
	}
	return o, storage.APIObjectVersioner{}.UpdateObject(o, uint64(kv.ModRevision)) //nolint:gosec // revisions are not negative
}
