package store

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// tooLargeText tells clients what to do. The limit is etcd's, which does not tell it.
const tooLargeText = "the object, with metadata.managedFields, is larger than etcd accepts (1.5 MiB unless etcd runs with another --max-request-bytes, at most 2 MiB); " +
	"split it into several objects, or keep large data elsewhere and refer to it"

// limiting is a storage that says with 413 that an object is too large for etcd.
type limiting struct{ storage.Interface }

// Create implements storage.Interface.
func (l limiting) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return explainSize(l.Interface.Create(ctx, key, obj, out, ttl))
}

// GuaranteedUpdate implements storage.Interface.
func (l limiting) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cachedExistingObject runtime.Object,
) error {
	return explainSize(l.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, tryUpdate, cachedExistingObject))
}

// explainSize returns a tooLarge for an error of etcd, or of the client before it
// asks etcd, about the size of a request.
func explainSize(err error) error {
	if TooLarge(err) {
		return tooLarge{}
	}
	return err
}

// TooLarge reports whether an error of etcd, or of the client before it asks etcd, says that a request is too large.
func TooLarge(err error) bool {
	return err != nil && (errors.Is(err, rpctypes.ErrRequestTooLarge) ||
		status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "trying to send message larger than max"))
}

// tooLarge is the error for clients, 413. For k8s.io/apiserver's handlers it is still
// etcd's: on seeing that, they drop the managed fields and try once more.
type tooLarge struct{}

var _ apierrors.APIStatus = tooLarge{}

// Error implements error.
func (tooLarge) Error() string { return rpctypes.ErrRequestTooLarge.Error() }

// Code is what handlers look for, with the text.
func (tooLarge) Code() codes.Code { return codes.InvalidArgument }

// Status implements apierrors.APIStatus.
func (tooLarge) Status() metav1.Status {
	return apierrors.NewRequestEntityTooLargeError(tooLargeText).Status()
}
