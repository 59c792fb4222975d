package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

const (
	// pageSize bounds what a list holds in memory at a time.
	pageSize = 100
	// The delays between attempts to reach etcd.
	firstDelay, lastDelay = 50 * time.Millisecond, 10 * time.Second
	// maxResumptions is how often a watch is taken up again in vain.
	maxResumptions = 5
)

// errRelist says that a watch cannot be continued where it ended.
var errRelist = errors.New("the watch cannot be continued")

// Run fills the catalog and keeps it up to date until the context ends, whose
// error it returns. It is called once.
func (c *Catalog) Run(ctx context.Context) error {
	var failures int
	listed := false
	for ctx.Err() == nil {
		var err error
		if !listed {
			if err = c.list(ctx); err == nil {
				listed, failures = true, 0
				c.syncOnce.Do(func() { close(c.synced) })
			}
		} else {
			before := c.Revision()
			err = c.follow(ctx)
			if c.Revision() > before {
				failures = 0
			}
			// A watch that keeps failing at the same revision needs a new list.
			if errors.Is(err, errRelist) || failures >= maxResumptions {
				listed = false
			}
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		klog.FromContext(ctx).V(2).Info("Watch of CRDs ended, retrying", "revision", c.Revision(), "reason", err.Error())
		pause(ctx, failures)
		failures++
	}
	return ctx.Err()
}

// pause waits with exponential backoff and jitter.
func pause(ctx context.Context, failures int) {
	delay := min(firstDelay<<min(failures, 20), lastDelay)
	select {
	case <-ctx.Done():
	case <-time.After(delay/2 + rand.N(delay/2)):
	}
}

// list reads all CRDs at one revision. Entries that are not in the list were deleted.
func (c *Catalog) list(ctx context.Context) error {
	everything := storage.Everything
	everything.Limit = pageSize
	seen := make(map[string]struct{}, c.Len())
	ctx, report := store.Reporting(ctx)
	for {
		var page object.List
		opts := storage.ListOptions{Predicate: everything, Recursive: true}
		if err := c.storage.GetList(ctx, Key, opts, &page); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		for i := range page.Items {
			seen[page.Items[i].GetName()] = struct{}{}
			if err := c.read(&page.Items[i], false); err != nil {
				return fmt.Errorf("list: %w", err)
			}
		}
		for i := range report.Unreadable {
			seen[report.Unreadable[i].Name] = struct{}{}
			c.broken(ofStore(&report.Unreadable[i]), false)
		}
		report.Unreadable = nil
		if everything.Continue = page.GetContinue(); everything.Continue != "" {
			continue
		}
		revision, err := strconv.ParseUint(page.GetResourceVersion(), 10, 64)
		if err != nil {
			return fmt.Errorf("list: resourceVersion: %w", err)
		}
		for e := range c.All() {
			if _, ok := seen[e.Name]; !ok {
				c.remove(e.Name, revision)
			}
		}
		for _, u := range c.unread.all() {
			if _, ok := seen[u.Name]; !ok {
				c.remove(u.Name, revision)
			}
		}
		c.revision.advance(revision)
		return nil
	}
}

// read makes an entry of an object. One CRD that cannot be decoded must not stop the
// others from being served.
func (c *Catalog) read(o *object.Object, followed bool) error {
	e, err := newEntry(o)
	if err == nil {
		c.put(e)
		return nil
	}
	revision, unversioned := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if unversioned != nil {
		return unversioned
	}
	c.broken(&Unreadable{Name: o.GetName(), Revision: revision, Reason: err.Error()}, followed)
	return nil
}

// follow watches from where the catalog is, until the watch ends. The error
// says why, and is errRelist if the next one cannot begin from here.
func (c *Catalog) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ownStream(ctx))
	defer cancel()
	ctx, _ = store.Reporting(ctx) // what cannot be read is an event
	w, err := c.storage.Watch(ctx, Key, storage.ListOptions{
		ResourceVersion: strconv.FormatUint(c.Revision(), 10),
		Predicate:       storage.Everything,
		Recursive:       true,
		ProgressNotify:  true,
	})
	if err != nil {
		return watchError(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error {
			return watchError(apierrors.FromObject(event.Object))
		}
		if unread, ok := store.UnreadableOf(event); ok {
			c.applyUnreadable(event.Type, &unread)
			continue
		}
		o, ok := event.Object.(*object.Object)
		if !ok {
			return fmt.Errorf("watch: unexpected %T", event.Object)
		}
		if err := c.apply(event.Type, o); err != nil {
			return err
		}
	}
	return errors.New("watch: closed")
}

// ownStream keeps the watch of the catalog, and its requests for progress, off the gRPC
// stream that other watches of this process share. Clients watch CRDs directly in etcd,
// without a watch cache. A client watch from a future revision would block every CatchUp
// until it fails, and one that reads megabytes of past events would delay the
// acknowledgement of changes.
func ownStream(ctx context.Context) context.Context {
	return store.OwnStream(ctx, "catalog")
}

// apply makes the change of an event.
func (c *Catalog) apply(what watch.EventType, o *object.Object) error {
	revision, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("watch: resourceVersion: %w", err)
	}
	switch what {
	case watch.Added, watch.Modified:
		if err := c.read(o, true); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	case watch.Deleted:
		c.remove(o.GetName(), revision)
	}
	c.revision.advance(revision) // bookmarks bring nothing else
	return nil
}

// applyUnreadable is apply for a CRD that cannot be read.
func (c *Catalog) applyUnreadable(what watch.EventType, u *store.Unreadable) {
	if what == watch.Deleted {
		c.remove(u.Name, uint64(u.Revision))
	} else {
		c.broken(ofStore(u), true)
	}
	c.revision.advance(uint64(u.Revision))
}

// watchError tells whether a watch can be taken up again where it ended.
func watchError(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || storage.IsTooLargeResourceVersion(err) {
		return fmt.Errorf("%w: %w", errRelist, err)
	}
	return fmt.Errorf("watch: %w", err)
}
