package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// unstreamed is an etcd that cannot stream, such as 3.6.
type unstreamed struct{ clientv3.KV }

func (unstreamed) GetStream(context.Context, string, ...clientv3.OpOption) (clientv3.GetStreamChan, error) {
	return nil, status.Error(codes.Unimplemented, "unknown method RangeStream")
}

func TestWalk(t *testing.T) { // not parallel: it compacts the etcd of all tests
	for name, streamed := range map[string]bool{"stream": true, "pages": false} {
		t.Run(name, func(t *testing.T) {
			b := open(t, func(c *store.Config) { c.Transformers = prefixer{} })
			if !streamed {
				b.Client().KV = unstreamed{b.Client().KV}
			}
			put := func(name, value string) (revision int64) {
				t.Helper()
				answer, err := b.Client().Put(t.Context(), b.Key(prefix)+"/"+name, value)
				if err != nil {
					t.Fatal(err)
				}
				return answer.Header.Revision
			}
			var all []string
			for i := range 350 {
				all = append(all, fmt.Sprintf("ns/%03d", i))
				put(all[i], "x:"+strings.Repeat("v", i))
			}
			at := put("ns/100", "plain")
			if _, err := b.Client().Put(t.Context(), b.Key(prefix)+"andmore/a", "x:"); err != nil {
				t.Fatal(err)
			}
			later := put("zz/new", "x:new")
			put("ns/005", "x:changed")

			var names []string
			visit := func(list []store.Stored) error {
				for _, s := range list {
					names = append(names, s.Name)
					if (s.Err != nil) != (s.Name == "ns/100" || s.Name == "ns/000") {
						t.Errorf("%s: %v", s.Name, s.Err)
					}
				}
				return nil
			}
			walk := func(w store.Walk) store.Walked {
				t.Helper()
				names = nil
				w.Resource, w.Folder = spec("v1").Resource, prefix
				done, err := b.Walk(t.Context(), w, visit)
				if err != nil {
					t.Fatal(err)
				}
				return done
			}
			if done := walk(store.Walk{}); !slices.Equal(names, append(slices.Clone(all), "zz/new")) || done.More || done.Revision <= later || done.Last != "zz/new" {
				t.Errorf("%+v %q", done, names)
			}
			if done := walk(store.Walk{Revision: at}); !slices.Equal(names, all) || done.Revision != at {
				t.Errorf("%+v %q", done, names)
			}
			if done := walk(store.Walk{Revision: at, Limit: 120}); !slices.Equal(names, all[:120]) || !done.More || done.Last != all[119] {
				t.Errorf("%+v %q", done, names)
			}
			if done := walk(store.Walk{Revision: at, After: all[119]}); !slices.Equal(names, all[120:]) || done.More {
				t.Errorf("%+v %q", done, names)
			}
			if done := walk(store.Walk{After: "zz/new"}); names != nil || done.More {
				t.Errorf("%+v %q", done, names)
			}
			if done := walk(store.Walk{Since: at}); !slices.Equal(names, []string{"ns/005", "zz/new"}) || done.More || done.Last != "zz/new" {
				t.Errorf("%+v %q", done, names)
			}
			if walk(store.Walk{Since: later + 1}); names != nil {
				t.Errorf("%q", names)
			}
			resource := store.Walk{Resource: spec("v1").Resource, Folder: prefix}
			done, err := b.Walk(t.Context(), resource, func([]store.Stored) error { return store.ErrStop })
			if err != nil || !done.More || done.Last == "" {
				t.Errorf("%+v %v", done, err)
			}
			failed := errors.New("failed")
			if _, err := b.Walk(t.Context(), resource, func([]store.Stored) error { return failed }); !errors.Is(err, failed) {
				t.Error(err)
			}
			resource.Revision = 1 << 50
			if _, err := b.Walk(t.Context(), resource, visit); !apierrors.IsBadRequest(err) {
				t.Error(err)
			}
			if _, err := b.Client().Compact(t.Context(), later); err != nil {
				t.Fatal(err)
			}
			resource.Revision = at
			if _, err := b.Walk(t.Context(), resource, visit); !apierrors.IsResourceExpired(err) {
				t.Error(err)
			}
			if walk(store.Walk{Since: at}); !slices.Equal(names, []string{"ns/005", "zz/new"}) {
				t.Errorf("%q", names)
			}
		})
	}
}
