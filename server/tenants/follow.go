package tenants

import (
	"context"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// followPause is how long to wait before etcd is asked again.
const followPause = time.Second

func isGone(err error) bool { return apierrors.IsNotFound(err) }

// follow sends the names of objects in a folder that change, and an empty name when changes may
// have been missed: at the beginning, too. It reads keys, and keeps nothing.
func (r *registry) follow(ctx context.Context, folder string, changes chan<- string) {
	for ctx.Err() == nil {
		r.watch(ctx, folder, changes)
		select {
		case <-ctx.Done():
		case <-time.After(followPause):
		}
	}
}

// watch is follow until etcd ends the watch.
func (r *registry) watch(ctx context.Context, folder string, changes chan<- string) {
	ctx, cancel := context.WithCancel(store.OwnStream(clientv3.WithRequireLeader(ctx), "tenants"))
	defer cancel()
	send := func(name string) bool {
		select {
		case changes <- name:
			return true
		case <-ctx.Done():
			return false
		}
	}
	watch := r.etcd.Watch(ctx, folder, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	for answer := range watch {
		if answer.Err() != nil {
			return
		}
		if answer.Created && !send("") {
			return
		}
		for _, event := range answer.Events {
			if !send(strings.TrimPrefix(string(event.Kv.Key), folder)) {
				return
			}
		}
	}
}
