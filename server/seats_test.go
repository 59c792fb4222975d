package server_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// TestSeats: a list takes seats by its size, the first one already; one of an
// empty namespace beside it takes one.
func TestSeats(t *testing.T) {
	var prefix string
	r := start(t, func(o *server.Options) { prefix = o.Etcd.StorageConfig.Prefix })
	define(t, r.dynamic(t))
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{etcdtest.Endpoint(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = etcd.Close() }()
	for i := 0; i < 10_000; i += 100 {
		var puts []clientv3.Op
		for j := range 100 {
			name := fmt.Sprintf("w%d", i+j)
			puts = append(puts, clientv3.OpPut(prefix+"/example.com/webs/full/"+name,
				`{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"`+name+`","namespace":"full","uid":"`+name+`"},"spec":{"host":"h","port":1}}`))
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := etcd.Txn(ctx).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	client, err := rest.HTTPClientFor(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path     string
		from, to float64
	}{
		{"/apis/example.com/v1/namespaces/empty/webs", 1, 1},
		{"/apis/example.com/v1/namespaces/full/webs", 5, 100},
		{"/apis/example.com/v1/webs", 5, 100},
		{"/apis/example.com/v1/webs?limit=10", 1, 1},
		{"/apis/example.com/v1/webs?resourceVersion=0", 5, 100}, // from the watch cache
		{"/apis/example.com/v1/namespaces/full/webs/w1", 1, 1},
		{"/api/v1/configmaps", 1, 1},
	} {
		var got float64
		for range 5 { // the server's own requests take seats, too
			before := seats(t)
			if code, body := get(t, client, r.url+c.path); code != http.StatusOK {
				t.Fatalf("%s: %d %.200s", c.path, code, body)
			}
			if got = seats(t) - before; got >= c.from && got <= c.to {
				break
			}
		}
		if got < c.from || got > c.to {
			t.Errorf("%s takes %v seats, and not %v to %v", c.path, got, c.from, c.to)
		}
	}
}

// seats is the sum of the seats that requests of the group that passes everything
// have taken. It is read from the registry: the page of the metrics of all servers in
// this process is large.
func seats(t *testing.T) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		if family.GetName() != "apiserver_flowcontrol_work_estimated_seats" {
			continue
		}
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "priority_level" && label.GetValue() == "exempt" {
					sum += m.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return sum
}
