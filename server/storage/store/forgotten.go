package store

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// forgotten is for the end of a watch because etcd has forgotten what an object was
// before its deletion: the watch goes on at the very revision up to which etcd was
// compacted. etcd3 calls that an internal error, after which caches and informers ask
// for the same revision again, for half a minute or for ever. It is that the
// revision is too old: they list, and go on.
func forgotten(event watch.Event) watch.Event {
	if event.Type != watch.Error {
		return event
	}
	if status, ok := event.Object.(*metav1.Status); ok && strings.Contains(status.Message, "PrevKv=nil") {
		expired := apierrors.NewResourceExpired("too old resource version: etcd was compacted while this watch was away").ErrStatus
		event.Object = &expired
	}
	return event
}
