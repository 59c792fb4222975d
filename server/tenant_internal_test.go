package server

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/loopback"
)

// A tenant is not closed for want of requests before its controllers lead. Renewing their lease does not keep it open.
func TestTenantIsOpenUntilItsControllersLead(t *testing.T) {
	loop := loopback.New()
	one := &tenant{Server: &Server{controlPlane: &controlPlane{loop: loop}}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = loop.Serve(ctx, one.watched(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	}()
	t.Cleanup(func() { cancel(); <-ended })
	client, err := rest.HTTPClientFor(loop.Config())
	if err != nil {
		t.Fatal(err)
	}
	const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	send := func(method, path string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, loop.Config().Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	one.expectControllers()
	send(http.MethodGet, leases+"/espalier-controllers") // another replica may lead
	send(http.MethodPost, "/api/v1/namespaces")          // default objects are repaired meanwhile
	if open := -one.Quiet(); open < 2*controllersDelay { // the first part of it they wait
		t.Errorf("open for %v more before the controllers lead", open)
	}
	send(http.MethodPost, leases)
	if quiet := one.Quiet(); quiet < 0 {
		t.Errorf("open for %v more after the controllers lead", -quiet)
	}
	led := one.last.Load()
	send(http.MethodPut, leases+"/espalier-controllers")
	if one.last.Load() != led {
		t.Error("renewing the lease keeps the tenant open")
	}
	send(http.MethodPost, "/api/v1/namespaces/default/serviceaccounts")
	if one.last.Load() == led {
		t.Error("a write of a controller does not keep the tenant open")
	}
}
