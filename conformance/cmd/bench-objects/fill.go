package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	prefix     = "/bench"
	group      = "bench.espalier.dev"
	plural     = "parcels"
	collection = "/apis/" + group + "/v1/" + plural
	namespaces = 20
	batch      = 100 // puts in one transaction; etcd allows 128
	labeled    = 50  // objects with the same value of the indexed label
	patience   = 5 * time.Minute
)

// parcelCRD is a CRD that prunes, defaults and validates, so that a create does what it usually does.
const parcelCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"parcels.bench.espalier.dev","annotations":{"espalier.dev/indexes":"label:batch"}},
"spec":{"group":"bench.espalier.dev","scope":"Namespaced","names":{"plural":"parcels","singular":"parcel","kind":"Parcel","listKind":"ParcelList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","required":["to"],
"properties":{"to":{"type":"string","minLength":1},"class":{"type":"string","enum":["first","second"],"default":"second"},"weight":{"type":"integer","minimum":1},
"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"count":{"type":"integer"},"note":{"type":"string"}}}}}}}}}}]}}`

// spaces are the names of all namespaces.
func spaces() []string {
	names := make([]string, namespaces)
	for n := range names {
		names[n] = namespace(n)
	}
	return names
}

func namespace(n int) string { return fmt.Sprintf("space-%02d", n%namespaces) }

// label is the value of the indexed label. Those of objects that are created later are other ones.
func label(n int) string { return fmt.Sprintf("batch-%d", n/labeled) }

func objectName(n int) string { return fmt.Sprintf("parcel-%08d", n) }

// parcel is an object as a client sends it; stored, with metadata and managed fields, it has about 1 KB.
func parcel(n int) []byte {
	const line = `{"sku":"XA-00017-B","count":3,"note":"wrapped twice"}`
	return fmt.Appendf(nil, `{"apiVersion":"bench.espalier.dev/v1","kind":"Parcel","metadata":{"name":%q,"labels":{"batch":%q,"carrier":"north"}},"spec":{"to":"7 Harbour Road","weight":%d,"lines":[%s]}}`,
		objectName(n), label(n), 10000000+n, strings.Join([]string{line, line, line, line, line, line}, ","))
}

func path(n int) string {
	return "/apis/" + group + "/v1/namespaces/" + namespace(n) + "/" + plural
}

func key(n int) string {
	return prefix + "/" + group + "/" + plural + "/" + namespace(n) + "/" + objectName(n)
}

// fill makes the CRD and one object through the server, and all others of what the server has stored for that one.
func (b *bench) fill(ctx context.Context) error {
	if _, err := b.conns[0].Expect(ctx, http.StatusCreated, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", []byte(parcelCRD)); err != nil {
		return err
	}
	// The first one is also the question whether the CRD is served; a list would be the first step to a watch cache.
	if err := b.conns[0].Until(ctx, patience, http.StatusCreated, http.MethodPost, path(0), parcel(0)); err != nil {
		return err
	}
	client, err := b.etcd.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	resp, err := client.Get(ctx, key(0))
	if err != nil {
		return err
	}
	if len(resp.Kvs) != 1 {
		return fmt.Errorf("etcd has no %s", key(0))
	}
	return b.copies(ctx, client, string(resp.Kvs[0].Value))
}

// copies puts the stored object under all other names.
func (b *bench) copies(ctx context.Context, client *clientv3.Client, stored string) error {
	uid, err := uidOf(stored)
	if err != nil {
		return err
	}
	const writers = 8
	var next atomic.Int64
	next.Store(1)
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for errs[w] == nil {
				from := int(next.Add(batch)) - batch
				if from >= b.objects {
					return
				}
				var puts []clientv3.Op
				for n := from; n < min(from+batch, b.objects); n++ {
					renamed := strings.NewReplacer(objectName(0), objectName(n), `"`+namespace(0)+`"`, `"`+namespace(n)+`"`, `"`+label(0)+`"`, `"`+label(n)+`"`,
						uid, fmt.Sprintf("%s%012d", uid[:len(uid)-12], n)).Replace(stored)
					puts = append(puts, clientv3.OpPut(key(n), renamed))
				}
				_, errs[w] = client.Txn(ctx).Then(puts...).Commit()
			}
		})
	}
	wg.Wait()
	b.stored = len(stored)
	return errors.Join(errs...)
}

// renew notes the newest revision: etcd forgets others after some minutes.
func (b *bench) renew(ctx context.Context) error {
	client, err := b.etcd.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	resp, err := client.Get(ctx, prefix, clientv3.WithCountOnly())
	if err == nil {
		b.revision = resp.Header.Revision
	}
	return err
}

// forget takes away what has been created since: the number of objects is what is measured.
func (b *bench) forget(ctx context.Context) error {
	made := b.serial.Swap(0)
	if made == 0 {
		return nil
	}
	client, err := b.etcd.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	var deleted int64
	for n := range namespaces {
		folder := strings.TrimSuffix(key(n), objectName(n))
		resp, err := client.Delete(ctx, folder+objectName(b.objects), clientv3.WithRange(clientv3.GetPrefixRangeEnd(folder)))
		if err != nil {
			return err
		}
		deleted += resp.Deleted
	}
	if deleted != made {
		return fmt.Errorf("%d objects were created, and %d are there", made, deleted)
	}
	return nil
}

func uidOf(stored string) (string, error) {
	var o struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal([]byte(stored), &o); err != nil {
		return "", err
	}
	if len(o.Metadata.UID) != 36 {
		return "", fmt.Errorf("the uid %q is none", o.Metadata.UID)
	}
	return o.Metadata.UID, nil
}

// fillCache asks for a watch, which needs the watch cache and is turned away until it is filled. Nothing that it would report happens.
func (b *bench) fillCache(ctx context.Context) error {
	return b.conns[0].Until(ctx, patience, http.StatusOK, http.MethodGet, collection+"?watch=1&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name%3Dnone", nil)
}
