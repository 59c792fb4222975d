package store

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Requirement is what must still be true when an object is stored: that a key, the
// CRD of the object, has not changed since the request began to rely on it. etcd
// decides that in the transaction of the write, so that it holds however long the
// request takes, and whatever happens to this process in between.
type Requirement struct {
	// Key is that of the CRD in etcd: see Backend.Key.
	Key string
	// Revision is that of the CRD which the request relies on.
	Revision int64
	// Bond is a second key, which must be at a revision; empty for none. If it is not, the error is
	// Unbound.
	Bond         string
	BondRevision int64
	Unbound      error
	// Changed is called if the CRD has another revision in etcd, 0 if it is gone. It
	// returns the revision to go on with, if nothing has changed that the request
	// relies on; or the error for the client. Nothing has been written.
	Changed func(ctx context.Context, now int64) (revision int64, err error)
}

// bond is what is required of a deletion: what is deleted has no schema, but where its key belongs
// depends on the bond.
func (r *Requirement) bond() *Requirement {
	if r == nil || r.Bond == "" {
		return nil
	}
	return &Requirement{Key: r.Bond, Revision: r.BondRevision, Changed: func(context.Context, int64) (int64, error) { return 0, r.Unbound }}
}

// conditions are what the writes of one request depend on, besides the revision of
// their key, and whether they move a mark. A request has one goroutine that writes.
type conditions struct {
	crd     *Requirement
	folders map[string]*Folder // by name
	marked  bool
}

type conditionsKey struct{}

// Conditional prepares the context of a request that writes for conditions that are
// found on its way, such as by admission.
func Conditional(ctx context.Context) context.Context {
	return context.WithValue(ctx, conditionsKey{}, &conditions{})
}

// Require has objects that are stored with the context stored only if a requirement
// is met. Deletions require the bond only.
func Require(ctx context.Context, r *Requirement) context.Context {
	return context.WithValue(ctx, conditionsKey{}, &conditions{crd: r})
}

// markFolder has the marks, below the prefix of all keys: that of a key has its name here.
const markFolder = "-espalier/marks"

// markable has the folders whose keys may have marks. A mark goes with its key.
var markable = []string{"resourcequotas/"}

// Mark has an object that is stored with the context stored together with its mark, an
// empty key of the same revision, or takes that back. A mark is for changes that others
// have to know of before they write: see [Folder]. The object's own revision says
// nothing of that if it changes with every write of others, as that of a quota does.
func Mark(ctx context.Context, marked bool) error {
	c := conditionsOf(ctx)
	if c == nil && marked {
		return errors.New("the context of this request is not prepared for marks")
	}
	if c != nil {
		c.marked = marked
	}
	return nil
}

// mark is what a write does to the mark of its key.
func (w *write) mark() (op clientv3.Op, ok bool) {
	if !w.marked && !w.done[0].IsDelete() {
		return op, false
	}
	name, ok := strings.CutPrefix(string(w.done[0].KeyBytes()), path.Join("/", w.prefix)+"/")
	key := path.Join("/", w.prefix, markFolder, name)
	switch {
	case !ok:
		return op, false
	case w.marked:
		return clientv3.OpPut(key, ""), true
	}
	return clientv3.OpDelete(key), slices.ContainsFunc(markable, func(folder string) bool { return strings.HasPrefix(name, folder) })
}

// A Folder is what a write relies on of all keys in a folder, as far as a cache knows
// them: that none of them was marked after what the cache has. etcd knows.
type Folder struct {
	// Name is without the prefix of all keys.
	Name string
	// Revision is the latest in the folder that the cache has; 0 if it has no key there.
	Revision int64
	// Unmarked says that the keys count in place of marks: every change of them is one that
	// others have to know of.
	Unmarked bool
	// Newer is called if there are newer marks, with the names of their keys in the
	// folder. It returns what to rely on instead, or the error for the client. Nothing has
	// been written.
	Newer func(ctx context.Context, marked []string) (Folder, error)
}

// RequireFolder has objects that are stored with the context stored only if what is
// relied on of a folder is true, in place of what was required of the same folder
// before. A folder without Newer takes that back. Nothing is required in a context
// that is not prepared for it.
func RequireFolder(ctx context.Context, f Folder) {
	c := conditionsOf(ctx)
	switch {
	case c == nil:
	case f.Newer == nil:
		delete(c.folders, f.Name)
	case c.folders == nil:
		c.folders = map[string]*Folder{f.Name: &f}
	default:
		c.folders[f.Name] = &f
	}
}

// condition is that no mark in the folder is newer, and newer are the marks that are.
func (f *Folder) condition(prefix string) (condition clientv3.Cmp, newer clientv3.Op) {
	key := f.marks(prefix)
	return clientv3.Compare(clientv3.ModRevision(key), "<", f.Revision+1).WithPrefix(),
		clientv3.OpGet(key, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithMinModRev(f.Revision+1))
}

// marks is what the keys of the marks in the folder begin with.
func (f *Folder) marks(prefix string) string {
	if f.Unmarked {
		return path.Join("/", prefix, f.Name) + "/"
	}
	return path.Join("/", prefix, markFolder, f.Name) + "/"
}

// again asks what to rely on instead, because of newer marks.
func (f *Folder) again(ctx context.Context, prefix string, marks []*mvccpb.KeyValue) (*Folder, error) {
	marked := make([]string, len(marks))
	for i, kv := range marks {
		marked[i] = strings.TrimPrefix(string(kv.Key), f.marks(prefix))
	}
	next, err := f.Newer(ctx, marked)
	return &next, err
}

func conditionsOf(ctx context.Context) *conditions {
	c, _ := ctx.Value(conditionsKey{}).(*conditions)
	return c
}

// The causes in the details of a Status that say what became of a write. They are
// for programs; the message says the same in words.
const (
	// CauseNothingWritten: the write has not been done, and will not be.
	CauseNothingWritten metav1.CauseType = "NothingWritten"
	// CauseOutcomeUnknown: the write may have been done.
	CauseOutcomeUnknown metav1.CauseType = "OutcomeUnknown"
	// CauseRequestUID has the UID of the request, which is its audit ID.
	CauseRequestUID metav1.CauseType = "RequestUID"
)

// nothingWritten is what the message says.
const nothingWritten = "nothing was written"

// NothingWritten is the error for a request that was not carried out and may be sent
// again as it is.
func NothingWritten(text string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable,
		Message: text + ": " + nothingWritten + "; send the request again",
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1, Causes: []metav1.StatusCause{{Type: CauseNothingWritten, Message: text}}},
	}}
}
