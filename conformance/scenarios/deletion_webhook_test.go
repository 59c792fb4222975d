package scenarios

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// curse defines a kind whose objects no client can read: they are stored in a version that is not the storage version any more, and the
// webhook that would convert them is dead. objects are made before.
func (g *grove) curse(plural, webhook string, objects func(), bundle ...byte) {
	g.Helper()
	g.define(plural, groveKinds[plural], "Namespaced")
	objects()
	g.merge(crdsPath+"/"+plural+"."+groveGroup, fmt.Sprintf(`{"spec":{"versions":[
{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}],
"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%s}}}}}`, webhook, encode(g.T, bundle)))
}

// lift takes the curse away: no object needs conversion any more.
func (g *grove) lift(plural string) {
	g.Helper()
	g.merge(crdsPath+"/"+plural+"."+groveGroup, `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
}

// A kind whose conversion webhook is dead keeps its own objects from being collected, and no others: whether the webhook refuses connections, or
// takes requests and never answers.
func TestDeadWebhookDoesNotBlockCollection(t *testing.T) {
	g := newGrove(t)
	t.Run("refuses connections", func(t *testing.T) { g.in(t).collectBeside("hexes", "https://127.0.0.1:1/") })
	t.Run("is silent", func(t *testing.T) {
		over := make(chan struct{})
		silent := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-over:
			case <-r.Context().Done():
			}
		}))
		t.Cleanup(silent.Close)
		t.Cleanup(func() { close(over) })
		bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: silent.Certificate().Raw})
		g.in(t).collectBeside("jinxes", silent.URL, bundle...)
	})
}

// collectBeside collects objects of kinds with nothing wrong beside those of one that cannot be read: more than there are workers.
func (g *grove) collectBeside(plural, webhook string, bundle ...byte) {
	const each = 40
	client := etcdClient(g.T)
	owner := g.plant(of("forests", ""), "owner-of-"+plural)
	var others []plant
	g.curse(plural, webhook, func() {
		for i := range each {
			g.plant(of(plural, "default"), fmt.Sprintf("bad-%d", i), owner.ties())
		}
	}, bundle...)
	for i := range each {
		others = append(others, g.plant(of([]string{"trees", "configmaps"}[i%2], "default"), fmt.Sprintf("of-%s-%d", plural, i), owner.ties()))
	}
	g.passes()
	began := time.Now()
	g.fell(owner, background)
	eventually(g.T, time.Minute, "the others are collected", func() bool {
		for _, p := range others {
			if g.look(p) != nil {
				return false
			}
		}
		return true
	})
	g.passes() // what is deleted later does not have to wait either
	took := time.Since(began)
	g.Logf("%d others were collected in %.1f s", each, took.Seconds())
	if took > 5*time.Second {
		g.Errorf("others had to wait for %v", took)
	}
	if n := g.count(client, plural, "default"); n != each {
		g.Errorf("%d of %d objects are left that could not be read", n, each)
	}
	if plural == "hexes" { // of those that hang some do so for half a minute more
		g.lift(plural)
		eventually(g.T, time.Minute, "the last objects are collected", func() bool { return g.count(client, plural, "default") == 0 })
	}
}
