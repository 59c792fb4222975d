package migration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/status"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/espalier-dev/espalier/server/storage/scan"
)

const (
	// maxPage and minPage bound how many objects a page has; pageBytes is about how large
	// it should be, and mostBytes how large it becomes if its objects are larger than those
	// before, besides the last one.
	maxPage, minPage, pageBytes, mostBytes = 480, 16, 1 << 20, 4 << 20
)

// item is an object of a page.
type item struct {
	name     string // below the folder
	revision int64
	lease    int64
	raw      []byte // as etcd has it
	image    []byte // what undo puts back: raw, with the current encryption key
	fresh    []byte // to be stored instead, encrypted; nil if it stays
	version  string // that raw is in
	err      error  // why it is left as it is
}

// page is a part of the objects, in the order of their keys.
type page struct {
	items []item
	last  string // the name that the next page begins after
	err   error
	// trouble is why the next page takes so long.
	trouble error
}

// pages reads pages from a name on, one ahead of what is taken, and says what is to become
// of their objects. The channel is closed after the last page and after an error.
func (j *job) pages(ctx context.Context, after string) <-chan page {
	pages := make(chan page, 1)
	// This goroutine knows nothing of the progress, and does not write the status.
	tell := func(err error) {
		select {
		case pages <- page{trouble: err}:
		case <-ctx.Done():
		}
	}
	go func() {
		defer close(pages)
		limit := int64(minPage)
		for {
			p, more, err := j.page(ctx, after, limit)
			if err == nil {
				err = j.examine(ctx, p.items, tell)
			}
			p.err = err
			select {
			case pages <- p:
			case <-ctx.Done():
				return
			}
			if err != nil || !more {
				return
			}
			after, limit = p.last, j.pageSize(p.items, limit)
		}
	}()
	return pages
}

// pageSize is how many objects the next page has: as many as are about pageBytes, and not
// more than twice as many as before, since the next ones may be larger; the fewest while there
// are users.
func (j *job) pageSize(items []item, limit int64) int64 {
	if j.crowded.Load() {
		return minPage
	}
	size := 1
	for i := range items {
		size += len(items[i].raw)
	}
	fitting := int64(pageBytes) * int64(len(items)) / int64(size)
	return max(minPage, min(maxPage, 2*limit, fitting))
}

// page reads the objects after a name.
func (j *job) page(ctx context.Context, after string, limit int64) (p page, more bool, err error) {
	folder := j.folder()
	values, more, err := scan.Page(ctx, j.Etcd, folder+after+after0(after), clientv3.GetPrefixRangeEnd(folder), scan.Limit{Values: limit, Bytes: mostBytes})
	if err != nil {
		return page{}, false, fmt.Errorf("reading objects from etcd: %w", err)
	}
	p = page{items: make([]item, len(values)), last: after}
	for i, kv := range values {
		p.items[i] = newItem(folder, kv)
		p.last = p.items[i].name
	}
	return p, more, nil
}

// after0 makes a key the smallest one after it. The first page begins with the folder.
func after0(after string) string {
	if after == "" {
		return ""
	}
	return "\x00"
}

func newItem(folder string, kv *mvccpb.KeyValue) item {
	return item{name: strings.TrimPrefix(string(kv.Key), folder), revision: kv.ModRevision, lease: kv.Lease, raw: kv.Value}
}

// folder is what the keys of the objects begin with.
func (j *job) folder() string { return j.key(j.resource.Folder) + "/" }

// examine says what is to become of objects. It tells of failures that may pass.
func (j *job) examine(ctx context.Context, items []item, tell func(error)) error {
	values, at, stale := make([]Value, 0, len(items)), make([]int, 0, len(items)), make([]bool, len(items))
	for i := range items {
		one := &items[i]
		one.fresh, one.err, one.version = nil, nil, ""
		data, old, err := j.decrypt(ctx, one.name, one.raw)
		switch {
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil && passing(err):
			return fmt.Errorf("decrypting %s: %w", one.name, err)
		case err != nil:
			one.err = fmt.Errorf("decryption failed: %w", err)
			continue
		}
		stale[i] = old
		values, at = append(values, Value{one.name, data}), append(at, i)
	}
	if len(values) == 0 {
		return nil
	}
	results, err := j.convert(ctx, values, tell)
	if err != nil {
		return err
	}
	for k, result := range results {
		one := &items[at[k]]
		one.err, one.version = result.Err, result.Version
		data := result.Data
		if data == nil && stale[at[k]] {
			data = values[k].Data
		}
		if one.err != nil || data == nil || bytes.Equal(data, values[k].Data) && !stale[at[k]] {
			continue
		}
		if one.fresh, err = j.encrypt(ctx, one.name, data); err != nil {
			return fmt.Errorf("encrypting %s: %w", one.name, err)
		}
		if one.image = one.raw; stale[at[k]] && j.keep {
			// After a rotation of keys nothing has the old one, which may have leaked or may go.
			if one.image, err = j.encrypt(ctx, one.name, values[k].Data); err != nil {
				return fmt.Errorf("encrypting the pre-image of %s: %w", one.name, err)
			}
		}
	}
	return nil
}

const (
	// conversionTries is how often objects are tried that no call converts. Then they
	// are quarantined: the cause may be one of them.
	conversionTries = 8
	// probes is how many objects are tried one by one before a converter counts as broken.
	probes = 4
)

// convert is Rewrite, which it tries again while a webhook does not answer. If one
// object makes the call for all fail, it is found, and the others are converted.
func (j *job) convert(ctx context.Context, values []Value, tell func(error)) ([]Rewritten, error) {
	for try := 0; ; try++ {
		results, err := j.resource.Rewrite(ctx, values)
		if err == nil || errors.Is(err, errAgain) || ctx.Err() != nil {
			return results, err
		}
		if results, ok := j.separately(ctx, values); ok || try >= conversionTries && ctx.Err() == nil {
			return results, nil
		}
		tell(err)
		if err := j.sleep(ctx, min(time.Second<<try, time.Minute)); err != nil {
			return nil, err
		}
	}
}

// separately converts each object by itself, and reports whether that worked for any. An object counts as the cause of its
// failure only if another one works after that: otherwise nothing is known of those that failed.
func (j *job) separately(ctx context.Context, values []Value) (results []Rewritten, worked bool) {
	results = make([]Rewritten, len(values))
	good := -1 // one that worked
	alone := func(i int) (outage error) {
		one, err := j.resource.Rewrite(ctx, values[i:i+1])
		if err == nil {
			results[i], good = one[0], i
			return nil
		}
		if results[i] = (Rewritten{Err: err}); good >= 0 {
			_, outage = j.resource.Rewrite(ctx, values[good:good+1])
		}
		return outage
	}
	for i := range values {
		if i >= probes && good < 0 {
			results[i].Err = results[0].Err
			continue
		}
		first := good < 0
		outage := alone(i)
		for k := 0; first && good >= 0 && k < i && outage == nil; k++ { // those that failed before
			outage = alone(k)
		}
		if outage != nil {
			for k := range results {
				results[k] = Rewritten{Err: outage}
			}
			return results, false
		}
	}
	return results, good >= 0
}

// passing reports whether a failure to decrypt says nothing about the value: a key
// management service did not answer.
func passing(err error) bool {
	var remote interface{ GRPCStatus() *status.Status }
	return errors.As(err, &remote) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (j *job) decrypt(ctx context.Context, name string, raw []byte) (data []byte, stale bool, err error) {
	return j.transformer.TransformFromStorage(ctx, raw, value.DefaultContext(j.folder()+name))
}

func (j *job) encrypt(ctx context.Context, name string, data []byte) ([]byte, error) {
	return j.transformer.TransformToStorage(ctx, data, value.DefaultContext(j.folder()+name))
}

// rewrite walks through all objects and rewrites those that need it. It continues where
// the progress is.
func (j *job) rewrite(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	pages := j.pages(reading, j.progress.Next)
	defer func() {
		stop()
		for range pages { // nothing of it is left
		}
	}()
	for p := range pages {
		if p.err != nil {
			return p.err
		}
		if p.trouble != nil {
			j.trouble(ctx, p.trouble)
			if err := j.interrupted(); err != nil {
				return err
			}
			continue
		}
		if err := j.store(ctx, p); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// verify reads all objects again. It returns the first that is not in the storage version
// or is encrypted with an old key, and "" if there is none.
func (j *job) verify(ctx context.Context) (found string, err error) {
	after, limit := "", int64(minPage)
	j.throttle = throttle{begun: j.Begun} // reads take another time than writes
	for {
		began := time.Now()
		p, more, err := j.page(ctx, after, limit)
		if err != nil {
			return "", err
		}
		for i := range p.items {
			one := &p.items[i]
			data, stale, err := j.decrypt(ctx, one.name, one.raw)
			if err != nil && (ctx.Err() != nil || passing(err)) {
				return "", fmt.Errorf("decrypting %s: %w", one.name, err)
			}
			if err != nil || stale || !j.resource.Current(data) {
				return one.name, nil
			}
		}
		if !more {
			return "", ctx.Err()
		}
		if err := j.interrupted(); err != nil {
			return "", err
		}
		after, limit = p.last, j.pageSize(p.items, limit)
		pause := j.throttle.after(time.Since(began), len(p.items), time.Now())
		j.crowded.Store(j.throttle.level > 0)
		if err := j.sleep(ctx, pause); err != nil {
			return "", err
		}
	}
}
