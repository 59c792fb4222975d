package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/klog/v2"
)

const (
	// DefaultMaxUnreadable bounds the unreadable objects that a process remembers.
	DefaultMaxUnreadable = 10_000
	// maxNamed is how many of them a warning or a condition names, and maxReason how many bytes of
	// each reason it has.
	maxNamed, maxReason = 3, 160
)

// Unreadable is an object in etcd that cannot be read: it cannot be decrypted or
// decoded, or is not the object that its key says it is.
type Unreadable struct {
	Resource schema.GroupResource
	// Version is one that requests for the resource are made in.
	Version string
	// Key is the whole key in etcd. Namespace and Name are those that the key has.
	Key, Namespace, Name string
	// Revision is that of the last change of the key.
	Revision int64
	// Reason is why it cannot be read.
	Reason string
	// Fatal says that lists and watches fail because of the object. Otherwise they leave
	// it out.
	Fatal bool
}

// Removal is a command that deletes the object. kubectl has no flag for the option
// (v1.37), and asks for the object first unless it is given the path.
func (u *Unreadable) Removal() string {
	path := "/apis/" + u.Resource.Group + "/" + u.Version + "/"
	if u.Resource.Group == "" {
		path = "/api/" + u.Version + "/"
	}
	if u.Namespace != "" {
		path += "namespaces/" + url.PathEscape(u.Namespace) + "/"
	}
	return `echo '{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}' | kubectl delete -f - --raw '` +
		path + u.Resource.Resource + "/" + url.PathEscape(u.Name) + "'"
}

// title is what clients know the object by.
func (u *Unreadable) title() string {
	if u.Namespace == "" {
		return u.Name
	}
	return u.Namespace + "/" + u.Name
}

// describe says in one line which objects cannot be read, why, and how to
// remove them. It names a few and counts the others.
func describe(all []Unreadable) string {
	var text strings.Builder
	for i := range all[:min(len(all), maxNamed)] {
		if i > 0 {
			text.WriteString("; ")
		}
		fmt.Fprintf(&text, "%s (%s)", all[i].Key, cut(all[i].Reason))
	}
	if more := len(all) - maxNamed; more > 0 {
		fmt.Fprintf(&text, "; and %d more", more)
	}
	return printable(fmt.Sprintf("%s. Repair in etcd, or remove with: %s", text.String(), all[0].Removal()))
}

// unreadableError is the error for a request about an object that cannot be read.
type unreadableError struct {
	Unreadable
	cause error
	// undecrypted says that it is the decryption that failed.
	undecrypted bool
}

// Error implements error.
func (e *unreadableError) Error() string {
	of, advice := "", "If it cannot be repaired there"
	if e.Revision != 0 { // events of watches do not tell it
		of = fmt.Sprintf(", of revision %d,", e.Revision)
	}
	if e.undecrypted {
		advice = "Check the keys in --encryption-provider-config of this replica. If the key is lost"
	}
	return printable(fmt.Sprintf("%s in etcd%s cannot be read: %s. "+
		"%s, remove it without its finalizers and dependents with: %s "+
		"(needs the verb unsafe-delete-ignore-read-errors)", e.Key, of, cut(e.Reason), advice, e.Removal()))
}

// Unwrap returns why.
func (e *unreadableError) Unwrap() error { return e.cause }

// Status implements apierrors.APIStatus. The reason is upstream's.
func (e *unreadableError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: e.Error(),
		Details: &metav1.StatusDetails{
			Group: e.Resource.Group, Kind: e.Resource.Resource, Name: e.Name,
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Field: e.Key, Message: e.Reason}},
		},
	}
}

var _ apierrors.APIStatus = (*unreadableError)(nil)

// unreadables are the unreadable objects that this process has come across, by
// resource and key, up to a limit. Nearly always there are none: then nothing is
// locked.
type unreadables struct {
	limit int64
	count atomic.Int64
	mu    sync.Mutex
	known map[schema.GroupResource]map[string]*Unreadable
	full  bool // there are more than are known
}

// any reports whether there is any.
func (u *unreadables) any() bool { return u.count.Load() > 0 }

// note remembers an object, and logs it once per revision.
func (u *unreadables) note(found *Unreadable) {
	metrics.RecordDecodeError(found.Resource)
	u.mu.Lock()
	defer u.mu.Unlock()
	of := u.known[found.Resource]
	if old := of[found.Key]; old != nil {
		if old.Revision >= found.Revision {
			return
		}
	} else if u.count.Load() >= u.limit {
		u.overflow(found)
		return
	}
	if of == nil {
		if u.known == nil {
			u.known = map[schema.GroupResource]map[string]*Unreadable{}
		}
		of = map[string]*Unreadable{}
		u.known[found.Resource] = of
	}
	if of[found.Key] == nil {
		u.count.Add(1)
	}
	of[found.Key] = found
	consequence := "lists and watches leave it out and serve the others"
	if found.Fatal {
		consequence = "lists and watches of the resource fail"
	}
	klog.ErrorS(nil, "Reading an object from etcd failed; "+consequence+". "+
		"Repair it in etcd, or remove it as \"An object that cannot be read\" in docs/guides/production.md says",
		"key", found.Key, "revision", found.Revision, "reason", found.Reason, "remove", found.Removal())
}

// overflow says once that there are more unreadable objects than are remembered. Lists
// and watches treat the others in the same way, but warnings, the log and the metric
// lack them.
func (u *unreadables) overflow(found *Unreadable) {
	if u.full {
		return
	}
	u.full = true
	klog.ErrorS(nil, "More objects in etcd cannot be read than are logged and counted; check etcd's disk and the keys in --encryption-provider-config",
		"counted", u.limit, "key", found.Key, "reason", found.Reason)
}

// overflowed reports whether there are more than are known.
func (u *unreadables) overflowed() bool {
	if !u.any() {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.full
}

// forget is for an object that can be read, or is gone.
func (u *unreadables) forget(resource schema.GroupResource, key string) {
	if !u.any() {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop(resource, key)
}

// drop is forget with the lock held.
func (u *unreadables) drop(resource schema.GroupResource, key string) {
	of := u.known[resource]
	if of[key] == nil {
		return
	}
	u.count.Add(-1)
	u.full = false // the next one that is found has room, or says so again
	if delete(of, key); len(of) == 0 {
		delete(u.known, resource)
	}
}

// only forgets those of a resource below a folder that are not among some.
func (u *unreadables) only(resource schema.GroupResource, folder string, some []*unreadableError) {
	if !u.any() {
		return
	}
	left := map[string]bool{}
	for _, e := range some {
		left[e.Key] = true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for key := range maps.Clone(u.known[resource]) {
		if within(key, folder) && !left[key] {
			u.drop(resource, key)
		}
	}
}

// has reports whether an object is known to be unreadable.
func (u *unreadables) has(resource schema.GroupResource, key string) bool {
	if !u.any() {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.known[resource][key] != nil
}

// below returns those of a resource below a folder, or at it, by key.
func (u *unreadables) below(resource schema.GroupResource, folder string) (found []Unreadable) {
	if !u.any() {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, one := range u.known[resource] {
		if within(key, folder) {
			found = append(found, *one)
		}
	}
	slices.SortFunc(found, func(a, b Unreadable) int { return cmp.Compare(a.Key, b.Key) })
	return found
}

// counts returns how many there are of each resource.
func (u *unreadables) counts() map[schema.GroupResource]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	counts := make(map[schema.GroupResource]int, len(u.known))
	for resource, of := range u.known {
		counts[resource] = len(of)
	}
	return counts
}

// within reports whether a key is a folder, or below it.
func within(key, folder string) bool {
	rest, ok := strings.CutPrefix(key, strings.TrimSuffix(folder, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// Unreadable returns the objects of a resource that could not be read when this
// process last read them, and are still as they were. below is a folder of keys
// without the prefix of the backend.
func (b *Backend) Unreadable(ctx context.Context, resource schema.GroupResource, below string) ([]Unreadable, error) {
	var still []Unreadable
	for _, one := range b.unreadable.below(resource, b.Key(below)) {
		now, err := b.client.KV.Get(ctx, one.Key, clientv3.WithKeysOnly())
		if err != nil {
			return nil, fmt.Errorf("looking for %s in etcd: %w", one.Key, err)
		}
		if len(now.Kvs) == 0 || now.Kvs[0].ModRevision != one.Revision {
			b.unreadable.forget(resource, one.Key)
			continue
		}
		still = append(still, one)
	}
	return still, nil
}

// UnreadableError counts the objects of a resource below a folder that cannot be read,
// and returns an error that names them; nil if there are none.
func (b *Backend) UnreadableError(ctx context.Context, resource schema.GroupResource, below string) (int, error) {
	all, err := b.Unreadable(ctx, resource, below)
	if err == nil && len(all) > 0 {
		err = fmt.Errorf("%d objects cannot be read: %s", len(all), describe(all))
	}
	return len(all), err
}

// warn tells a client what its list lacks.
func warn(ctx context.Context, missing []Unreadable) {
	if len(missing) == 0 {
		return
	}
	texts := make([]string, 0, maxNamed)
	for i := range missing[:min(len(missing), maxNamed)] {
		texts = append(texts, missing[i].title()+" ("+cut(missing[i].Reason)+")")
	}
	text := strings.Join(texts, ", ")
	if more := len(missing) - maxNamed; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	warning.AddWarning(ctx, "", printable(fmt.Sprintf("%d of %s cannot be read from etcd and are left out: %s", len(missing), missing[0].Resource, text)))
}

// cut bounds a reason. Decoders quote what they cannot decode.
func cut(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	return reason[:maxReason] + "…"
}

// printable is for headers and logs: keys and values in etcd may be any bytes.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
