package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/espalier-dev/espalier/server/storage/scan"
)

// Walk says which values of a resource [Backend.Walk] reads.
type Walk struct {
	Resource schema.GroupResource
	Folder   string // "/group/plural", without the prefix of the backend
	After    string // the name after which it begins, as Stored has it; empty for the first one
	Revision int64  // at which everything is read; 0 is the newest
	Since    int64  // only what was written after this revision; 0 for everything
	Limit    int64  // how many values are read; 0 for all
}

// Stored is what etcd has at a key.
type Stored struct {
	Name  string // the key, without the folder: "namespace/name" or "name"
	Value []byte // decrypted
	Err   error  // why the value cannot be decrypted
}

// Walked is what a walk has read.
type Walked struct {
	Revision int64  // at which everything was read
	Last     string // the name of the last value that was visited
	More     bool   // there are values after it, or may be
}

// ErrStop is for functions that have seen enough.
var ErrStop = errors.New("the walk ends here")

const (
	// walkPage and walkBytes bound a page where etcd cannot stream. etcd counts the rest of the
	// folder for each page, so that small pages of a large folder are expensive.
	walkPage, walkBytes = 5000, 4 << 20
	firstPage           = 100
	// walkReads is how many values are read at a time that are not beside each other.
	walkReads = 8
)

// Walk reads the values of a resource as etcd has them, in the order of their keys and all at one
// revision, past watch caches and decoders. visit gets them in pieces of about one MiB, and may keep
// them. If it returns [ErrStop] the walk ends after these values, without an error.
//
// The error is 410 Expired if etcd has compacted the revision. That does not happen to a walk with
// Since: it reads the newest values, whenever that revision was.
func (b *Backend) Walk(ctx context.Context, w Walk, visit func([]Stored) error) (Walked, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &walker{backend: b, walk: w, folder: b.Key(w.Folder) + "/", transformer: b.transformer(w.Resource), visit: visit}
	r.done = Walked{Revision: w.Revision, Last: w.After}
	err := r.stream(ctx)
	if status.Code(err) == codes.Unimplemented { // etcd before 3.7, or a proxy
		err = r.pages(ctx)
	}
	switch {
	case errors.Is(err, ErrStop):
		r.done.More = true
		return r.done, nil
	case errors.Is(err, rpctypes.ErrCompacted):
		return r.done, apierrors.NewResourceExpired("etcd no longer has the revision at which the objects were read; start again")
	case errors.Is(err, rpctypes.ErrFutureRev):
		return r.done, apierrors.NewBadRequest(fmt.Sprintf("etcd has no revision %d yet", w.Revision))
	case err != nil && apierrors.ReasonForError(err) == "":
		return r.done, fmt.Errorf("failed to read %s from etcd: %w", w.Resource, err)
	}
	return r.done, err
}

// transformer decrypts the values of a resource.
func (b *Backend) transformer(r schema.GroupResource) value.Transformer {
	if b.config.Transformers != nil {
		if t := b.config.Transformers.TransformerForResource(r); t != nil {
			return t
		}
	}
	return identity.NewEncryptCheckTransformer()
}

// One reads one object as it is stored, and reports whether there is one. folder is without the prefix of
// the backend.
func (b *Backend) One(ctx context.Context, r schema.GroupResource, folder, name string) (one Stored, found bool, err error) {
	below := b.Key(folder) + "/"
	answer, err := b.client.KV.Get(ctx, below+name) // the name may be a client's: .. is none
	if err != nil || len(answer.Kvs) == 0 {
		return Stored{}, false, err
	}
	w := walker{folder: below, transformer: b.transformer(r), visit: func(all []Stored) error {
		one = all[0]
		return nil
	}}
	err = w.decrypt(ctx, answer.Kvs)
	return one, err == nil, err
}

// walker is a walk under way.
type walker struct {
	backend     *Backend
	walk        Walk
	folder      string
	transformer value.Transformer
	visit       func([]Stored) error
	read        int64 // how many values
	done        Walked
}

// begin is the first key that is still to be read.
func (r *walker) begin() string {
	if r.done.Last == "" {
		return r.folder
	}
	return r.folder + r.done.Last + "\x00"
}

func (r *walker) options(limit int64) []clientv3.OpOption {
	options := []clientv3.OpOption{clientv3.WithRev(r.done.Revision), clientv3.WithLimit(limit)}
	if r.walk.Since > 0 {
		// etcd finds revisions in its index, without reading values. A filter by revision would have
		// it read all of the folder at once.
		options = append(options, clientv3.WithKeysOnly())
	}
	return options
}

// stream reads all in one request. etcd sends a piece when there is room for it.
func (r *walker) stream(ctx context.Context) error {
	if r.done.Revision == 0 { // a stream names it at its end
		newest, err := scan.Revision(ctx, r.backend.client.KV, r.folder)
		if err != nil {
			return err
		}
		r.done.Revision = newest
	}
	return scan.Stream(ctx, r.backend.client.KV, r.begin(), clientv3.GetPrefixRangeEnd(r.folder), func(piece clientv3.RangeStreamResponse) (bool, error) {
		return true, r.take(ctx, piece.Kvs, piece.More)
	}, r.options(r.walk.Limit)...)
}

// pages reads page by page. It begins with few values: they may be large.
func (r *walker) pages(ctx context.Context) error {
	for size := int64(firstPage); ; {
		limit := size
		if r.walk.Limit > 0 {
			limit = min(size, r.walk.Limit-r.read)
		}
		answer, err := r.backend.client.KV.Get(ctx, r.begin(), append(r.options(limit), clientv3.WithRange(clientv3.GetPrefixRangeEnd(r.folder)))...)
		if err != nil {
			return err
		}
		bytes := 0
		for _, kv := range answer.Kvs {
			bytes += len(kv.Value)
		}
		if err := r.take(ctx, answer.Kvs, answer.More); err != nil || !answer.More || r.walk.Limit > 0 && r.read >= r.walk.Limit {
			return err
		}
		switch {
		case bytes < walkBytes/2:
			size = min(size*2, walkPage)
		case bytes > walkBytes:
			size = max(size/2, 1)
		}
	}
}

// take visits values.
func (r *walker) take(ctx context.Context, kvs []*mvccpb.KeyValue, more bool) error {
	if len(kvs) == 0 {
		return nil
	}
	r.read += int64(len(kvs))
	r.done.More = more
	if r.walk.Since > 0 {
		return r.changed(ctx, kvs)
	}
	return r.decrypt(ctx, kvs)
}

// decrypt decrypts values and visits them.
func (r *walker) decrypt(ctx context.Context, kvs []*mvccpb.KeyValue) error {
	list := make([]Stored, len(kvs))
	for i, kv := range kvs {
		s := &list[i]
		s.Name = strings.TrimPrefix(string(kv.Key), r.folder)
		plain, _, err := r.transformer.TransformFromStorage(ctx, kv.Value, value.DefaultContext(kv.Key))
		switch {
		case err != nil && passing(ctx, err):
			return err
		case err != nil:
			s.Err = &undecryptedError{err}
		case len(plain) == 0:
			s.Err = errEmpty
		}
		s.Value = plain
	}
	r.done.Last = list[len(list)-1].Name
	return r.visit(list)
}

// changed reads the values of those keys that were written since the revision of the walk, a few at
// a time: the keys of one piece may be many, and their values large.
func (r *walker) changed(ctx context.Context, keys []*mvccpb.KeyValue) error {
	last := strings.TrimPrefix(string(keys[len(keys)-1].Key), r.folder)
	keys = slices.DeleteFunc(keys, func(kv *mvccpb.KeyValue) bool { return kv.ModRevision <= r.walk.Since })
	for some := range slices.Chunk(keys, walkReads*8) {
		group, inner := errgroup.WithContext(ctx)
		group.SetLimit(walkReads)
		for i, kv := range some {
			group.Go(func() error {
				answer, err := r.backend.client.KV.Get(inner, string(kv.Key), clientv3.WithRev(r.done.Revision))
				if err != nil {
					return err
				}
				if len(answer.Kvs) != 1 {
					return fmt.Errorf("etcd lists the key %s at revision %d and has no value for it", kv.Key, r.done.Revision)
				}
				some[i] = answer.Kvs[0]
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		if err := r.decrypt(ctx, some); err != nil {
			return err
		}
	}
	r.done.Last = last
	return nil
}
