package store

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/klog/v2"
)

// explained is a storage whose errors all have a Status. Those of etcd have none,
// and k8s.io/apiserver logs each of them as unhandled and answers with the bare text.
type explained struct {
	storage.Interface
	space *space
}

// Create implements storage.Interface.
func (e *explained) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	ctx = withDoubt(ctx)
	return e.written(ctx, e.Interface.Create(ctx, key, obj, out, ttl))
}

// Delete implements storage.Interface. It needs no space.
func (e *explained) Delete(ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions,
) error {
	ctx = withDoubt(ctx)
	return ofMany(ctx, explainWrite(ctx, e.Interface.Delete(ctx, key, out, preconditions, validate, cached, opts)))
}

// GuaranteedUpdate implements storage.Interface.
func (e *explained) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, try storage.UpdateFunc, cached runtime.Object,
) error {
	ctx = withDoubt(ctx)
	return ofMany(ctx, e.written(ctx, e.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, preconditions, try, cached)))
}

// Get implements storage.Interface.
func (e *explained) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	return explainRead(e.Interface.Get(ctx, key, opts, out))
}

// GetList implements storage.Interface.
func (e *explained) GetList(ctx context.Context, key string, opts storage.ListOptions, out runtime.Object) error {
	return explainRead(e.Interface.GetList(ctx, key, opts, out))
}

// Watch implements storage.Interface.
func (e *explained) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	w, err := e.Interface.Watch(ctx, key, opts)
	return w, explainRead(err)
}

// written notes whether etcd has space.
func (e *explained) written(ctx context.Context, err error) error {
	switch {
	case err == nil:
		e.space.note(false)
	case Full(err):
		e.space.note(true)
		if !isDoubtful(err) {
			return &etcdError{outOfSpace, err}
		}
	}
	return explainWrite(ctx, err)
}

// space remembers whether etcd refused the last write for want of space. The lease of
// the controllers' leader is written every two seconds: it is up to date.
type space struct{ full atomic.Bool }

// note logs a change.
func (s *space) note(full bool) {
	if s.full.Load() == full || s.full.Swap(full) == full {
		return
	}
	if full {
		klog.ErrorS(nil, "etcd is out of space and refuses writes; reads and deletes go on. "+
			"Delete objects, compact and defragment etcd, then disarm its alarm: see \"When etcd is full\" in docs/guides/production.md")
	} else {
		klog.InfoS("etcd has space again and accepts writes")
	}
}

// OutOfSpace reports whether etcd refuses writes because it is full.
func (b *Backend) OutOfSpace() bool { return b.space.full.Load() }

// Full reports whether etcd has refused to write because it is full.
func Full(err error) bool {
	return errors.Is(err, rpctypes.ErrNoSpace) || status.Code(err) == codes.ResourceExhausted && status.Convert(err).Message() == rpctypes.ErrorDesc(rpctypes.ErrGRPCNoSpace)
}

// outOfSpace is what clients are told.
var outOfSpace = metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
	Message: "etcd is out of space (etcdserver: mvcc: database space exceeded): objects can be read and deleted, but not created or changed, " +
		"until the operator makes room: delete objects, compact and defragment etcd, and disarm its NOSPACE alarm",
	Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: CauseNothingWritten, Message: "etcd is out of space"}}},
}

// etcdError is an error of etcd with a Status for clients.
type etcdError struct {
	status metav1.Status
	cause  error
}

// Error implements error.
func (e *etcdError) Error() string { return e.status.Message }

// Status implements apierrors.APIStatus.
func (e *etcdError) Status() metav1.Status { return e.status }

// Unwrap returns etcd's own error.
func (e *etcdError) Unwrap() error { return e.cause }

// explainRead is for errors of reads. They may be made again.
func explainRead(err error) error {
	text, ok := ofEtcd(err)
	if !ok {
		return err
	}
	status := apierrors.NewServiceUnavailable("reading from etcd failed: " + text).ErrStatus
	status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	if isTimeout(err) {
		status = apierrors.NewTimeoutError("reading from etcd failed: etcd did not answer in the time of the request", 1).ErrStatus
	}
	return &etcdError{status, err}
}

// explainWrite is for errors of writes: it says whether the write may have been done.
func explainWrite(ctx context.Context, err error) error {
	text, ok := ofEtcd(err)
	if !ok {
		return err
	}
	var unanswered *unansweredError
	if !isDoubtful(err) && (errors.As(err, &unanswered) || isRefusal(err) || inDoubtOf(ctx).none()) {
		return &etcdError{NothingWritten("etcd did not take the write (" + text + ")").ErrStatus, err}
	}
	status := apierrors.NewTimeoutError("the outcome of this write is unknown: etcd did not confirm it ("+text+
		"), and it may have been done; read the object before you send the request again", 0).ErrStatus
	status.Details.Causes = []metav1.StatusCause{{Type: CauseOutcomeUnknown, Message: text}}
	if id := audit.GetAuditIDTruncated(ctx); id != "" {
		status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{Type: CauseRequestUID, Message: id})
	}
	return &etcdError{status, err}
}

// isDoubtful reports whether a write may have been done though etcd has answered with an
// error: it can be full after the write.
func isDoubtful(err error) bool {
	var unanswered *unansweredError
	return errors.As(err, &unanswered) && !unanswered.nothing
}

// ofMany takes back that nothing was written if the write was one of those of a request
// that deletes many objects: the error of one is the answer to all.
func ofMany(ctx context.Context, err error) error {
	info, ok := request.RequestInfoFrom(ctx)
	var known apierrors.APIStatus
	if err == nil || !ok || info.Verb != "deletecollection" || !errors.As(err, &known) {
		return err
	}
	status := known.Status()
	nothing := func(c metav1.StatusCause) bool { return c.Type == CauseNothingWritten }
	if status.Details == nil || !slices.ContainsFunc(status.Details.Causes, nothing) {
		return err
	}
	status.Details = status.Details.DeepCopy()
	status.Details.Causes = slices.DeleteFunc(status.Details.Causes, nothing)
	status.Message = strings.ReplaceAll(status.Message, nothingWritten, "other objects may have been deleted")
	return &etcdError{status, err}
}

// ofEtcd reports whether an error is one of etcd, of the connection to it, or of the
// context of a request, and returns its words. Other errors, which the registries
// understand, stay as they are.
func ofEtcd(err error) (text string, ok bool) {
	var known apierrors.APIStatus
	var etcd rpctypes.EtcdError
	var unanswered *unansweredError
	switch {
	case err == nil, errors.As(err, &known):
		return "", false
	case isTimeout(err):
		return "etcd did not answer in the time of the request", true
	case errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled:
		return "the request ended before etcd had answered", true
	case errors.As(err, &unanswered):
		return words(unanswered.cause), true
	case errors.As(err, &etcd), fromGRPC(err):
		return words(err), true
	}
	return "", false
}

// words are those of an error without what gRPC puts before them.
func words(err error) string {
	var etcd rpctypes.EtcdError
	if s, ok := status.FromError(err); ok && !errors.As(err, &etcd) {
		return s.Message()
	}
	return err.Error()
}

func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded
}

// isRefusal reports whether etcd has answered that it does not do what it was asked.
func isRefusal(err error) bool {
	var etcd rpctypes.EtcdError
	if !errors.As(err, &etcd) {
		return false
	}
	switch etcd.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Unknown, codes.Internal, codes.Aborted, codes.DataLoss:
		return false
	}
	return true
}

// fromGRPC reports whether an error is one of gRPC.
func fromGRPC(err error) bool {
	_, ok := status.FromError(err)
	return ok || errors.Is(err, context.Canceled)
}
