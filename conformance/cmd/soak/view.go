package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// A view is one watcher's idea of all objects: the revision of each.
type view struct {
	conn *wire.Conn
	mu   sync.Mutex
	objs map[string]string // namespace/name → resourceVersion
	at   string            // resourceVersion up to which the view is complete
	// patient: as in load.
	patient bool
	counts
}

// counts are what happened to a watcher.
type counts struct{ events, resumed, relisted int }

// meta is what of an object or a list the view needs.
type meta struct {
	Metadata struct{ Name, Namespace, ResourceVersion string }
}

// follow keeps the view up to date until ctx ends. Now and then it breaks off and resumes where it was, as clients do whose connection breaks.
func (v *view) follow(ctx context.Context, fail func(error)) {
	for ctx.Err() == nil {
		if v.at == "" {
			err := v.list(ctx)
			if err != nil && v.patient && strings.Contains(err.Error(), ": 429,") {
				launch.Pause(ctx, time.Second)
				continue
			}
			if err != nil {
				if ctx.Err() == nil {
					fail(err)
				}
				return
			}
		}
		v.watch(ctx)
		v.resumed++
	}
}

func (v *view) list(ctx context.Context) error {
	answer, err := v.conn.Expect(ctx, http.StatusOK, http.MethodGet, everything, nil)
	if err != nil {
		return err
	}
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []meta
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.objs, v.at = map[string]string{}, list.Metadata.ResourceVersion
	for _, o := range list.Items {
		v.objs[o.Metadata.Namespace+"/"+o.Metadata.Name] = o.Metadata.ResourceVersion
	}
	v.relisted++
	return nil
}

func (v *view) watch(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second+rand.N(time.Minute))
	defer cancel()
	err := v.conn.Watch(ctx, everything+"?watch=1&allowWatchBookmarks=true&resourceVersion="+v.at, nil, v.event)
	if err != nil && strings.Contains(err.Error(), "410 Gone") {
		v.at = ""
	}
}

// event takes one line of the watch into the view.
func (v *view) event(line []byte) (stop bool) {
	var e struct {
		Type   string
		Object meta
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	o := e.Object.Metadata
	switch e.Type {
	case "ADDED", "MODIFIED":
		v.objs[o.Namespace+"/"+o.Name] = o.ResourceVersion
		v.events++
	case "DELETED":
		delete(v.objs, o.Namespace+"/"+o.Name)
		v.events++
	case "ERROR":
		// The server no longer has what happened since: only a new list can tell.
		v.at = ""
		return true
	}
	v.at = o.ResourceVersion
	return false
}

// differs says where the view is not what etcd holds.
func (v *view) differs(stored map[string]string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if maps.Equal(v.objs, stored) {
		return ""
	}
	for name, revision := range stored {
		if v.objs[name] != revision {
			return fmt.Sprintf("%s is at %s in etcd and at %q in the view (%d objects in etcd, %d in the view)", name, revision, v.objs[name], len(stored), len(v.objs))
		}
	}
	return fmt.Sprintf("%d objects in etcd, %d in the view", len(stored), len(v.objs))
}
