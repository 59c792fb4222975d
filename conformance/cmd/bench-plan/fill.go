package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	prefix     = "/bench"
	namespaces = 20
	batch      = 100 // puts in one transaction; etcd allows 128
	patience   = time.Minute
	crds       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	name       = "parcels.bench.espalier.dev"
)

// parcelCRD is a CRD whose objects have the given fields besides those that never change.
func parcelCRD(fields string) []byte {
	return []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + name + `"},
"spec":{"group":"bench.espalier.dev","scope":"Namespaced","names":{"plural":"parcels","singular":"parcel","kind":"Parcel","listKind":"ParcelList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","required":["to"],
"properties":{"class":{"type":"string","enum":["first","second"],"default":"second"},"weight":{"type":"integer","minimum":1},
"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"count":{"type":"integer"},"note":{"type":"string"}}}},` + fields + `}}}}}}]}}`)
}

const (
	before = `"to":{"type":"string","minLength":1},"gift":{"type":"string"}`
	after  = `"to":{"type":"string","minLength":1,"maxLength":20}`
)

// samples are objects as clients send them: one that stays as it is, one that loses a field, one that is refused.
var samples = []struct{ name, to, more string }{
	{"sample-a", "7 Harbour Road", ""},
	{"sample-b", "7 Harbour Road", `,"gift":"yes"`},
	{"sample-c", "7 Harbour Road, third floor", ""},
}

// sampleOf is the sample that the object n is a copy of.
func sampleOf(n int) int {
	switch {
	case n%100 == 7:
		return 2
	case n%10 == 3:
		return 1
	}
	return 0
}

func namespace(n int) string { return fmt.Sprintf("space-%02d", n%namespaces) }

func key(namespace, name string) string {
	return prefix + "/bench.espalier.dev/parcels/" + namespace + "/" + name
}

// fill makes the CRD and the samples through the server, and all other objects of what the server has stored for these.
func fill(ctx context.Context, conn *wire.Conn, etcd *launch.Etcd, objects int) error {
	if _, err := conn.Expect(ctx, http.StatusCreated, http.MethodPost, crds, parcelCRD(before)); err != nil {
		return err
	}
	client, err := etcd.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	const line = `{"sku":"XA-00017-B","count":3,"note":"wrapped twice"}`
	var stored []string
	for _, s := range samples {
		body := fmt.Appendf(nil, `{"apiVersion":"bench.espalier.dev/v1","kind":"Parcel","metadata":{"name":%q,"labels":{"carrier":"north"}},"spec":{"to":%q,"weight":10000000,"lines":[%s]%s}}`,
			s.name, s.to, strings.Repeat(line+",", 6)+line, s.more)
		if err := conn.Until(ctx, patience, http.StatusCreated, http.MethodPost, "/apis/bench.espalier.dev/v1/namespaces/"+namespace(0)+"/parcels", body); err != nil {
			return err
		}
		found, err := client.Get(ctx, key(namespace(0), s.name))
		if err != nil {
			return err
		}
		if len(found.Kvs) != 1 {
			return fmt.Errorf("etcd has no %s", s.name)
		}
		stored = append(stored, string(found.Kvs[0].Value))
		if _, err := client.Delete(ctx, key(namespace(0), s.name)); err != nil {
			return err
		}
	}
	return copies(ctx, client, stored, objects)
}

// copies puts the stored samples under all names.
func copies(ctx context.Context, client *clientv3.Client, stored []string, objects int) error {
	const writers = 8
	var next atomic.Int64
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for errs[w] == nil {
				from := int(next.Add(batch)) - batch
				if from >= objects {
					return
				}
				var puts []clientv3.Op
				for n := from; n < min(from+batch, objects); n++ {
					s := sampleOf(n)
					named := fmt.Sprintf("parcel-%08d", n)
					value := strings.NewReplacer(samples[s].name, named, `"`+namespace(0)+`"`, `"`+namespace(n)+`"`).Replace(stored[s])
					puts = append(puts, clientv3.OpPut(key(namespace(n), named), value))
				}
				_, errs[w] = client.Txn(ctx).Then(puts...).Commit()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
