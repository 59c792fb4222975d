package server

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/espalier-dev/espalier/server/turns"
)

// A watch has a seat until it has sent what there is. Otherwise watches would be lists
// without a limit.
func TestWatchesBeginWithASeat(t *testing.T) {
	s := &signals{seats: newSeats(1, nil, func(*http.Request) bool { return false }, nil)}
	sent, end := make(chan struct{}), make(chan struct{})
	begun := make(chan string, 2)
	handler := s.withSeats(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		info, _ := request.RequestInfoFrom(req.Context())
		begun <- info.Verb
		if info.Verb == "watch" {
			<-sent
			flowcontrol.WatchInitialized(req.Context())
			<-end
		}
	}), func(_ *http.Request, info *request.RequestInfo) bool { return info.Verb == "watch" })
	done := make(chan struct{}, 2)
	send := func(verb string) {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		req = req.WithContext(request.WithRequestInfo(req.Context(), &request.RequestInfo{IsResourceRequest: true, Verb: verb}))
		go func() { handler.ServeHTTP(httptest.NewRecorder(), req); done <- struct{}{} }()
	}
	send("watch")
	<-begun
	send("get")
	select {
	case verb := <-begun:
		t.Errorf("%s begins while a watch sends what there is", verb)
	case <-time.After(50 * time.Millisecond):
	}
	close(sent)
	select {
	case <-begun:
	case <-time.After(3 * time.Second): // less than watchStart
		t.Error("a watch keeps its seat")
	}
	close(end)
	<-done
	<-done
	if len(s.seats.free) != 0 {
		t.Error("a seat is still taken")
	}
}

// Requests that are refused wait, while other tenants send requests. They keep no seat from others, and only some of them wait.
func TestRefusedRequestsAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := turns.New(2)
		mine, other := all.Share(), all.Share()
		full := false
		s := &signals{seats: newSeats(1, mine, func(*http.Request) bool { return false }, func() error {
			if full {
				return apierrors.NewForbidden(corev1.Resource("configmaps"), "", nil)
			}
			return nil
		})}
		release := make(chan struct{})
		handler := s.withSeats(s.seats.withRoom(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Query().Has("slow") {
				<-release
			}
		})), func(*http.Request, *request.RequestInfo) bool { return false })
		send := func(path string, info request.RequestInfo) (code int, took time.Duration) {
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
			info.IsResourceRequest = true
			req = req.WithContext(request.WithRequestInfo(req.Context(), &info))
			began, w := time.Now(), httptest.NewRecorder()
			handler.ServeHTTP(w, req)
			return w.Code, time.Since(began)
		}
		create := request.RequestInfo{Verb: "create", Resource: "configmaps"}
		expect := func(what, path string, info request.RequestInfo, wantCode int, want time.Duration) {
			t.Helper()
			if code, took := send(path, info); code != wantCode || took < want/2 || took > want*3/2 {
				t.Errorf("%s: %d after %v, want %d after %v", what, code, took, wantCode, want)
			}
		}
		contend := func() { // another tenant sends a request
			if _, turn, err := other.Take(t.Context()); err == nil {
				turn.Leave()
			}
		}
		expect("a create", "/", create, http.StatusOK, 0)
		full = true
		expect("a create in a full tenant that is alone", "/", create, http.StatusForbidden, 0)
		contend()
		expect("a create in a full tenant", "/", create, http.StatusForbidden, slowness)
		contend()
		for what, info := range map[string]request.RequestInfo{
			"a delete": {Verb: "delete", Resource: "configmaps"}, "a change": {Verb: "update", Resource: "configmaps"},
			"a token":             {Verb: "create", Resource: "serviceaccounts", Subresource: "token"},
			"a review":            {Verb: "create", APIGroup: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
			"a review of a token": {Verb: "create", APIGroup: "authentication.k8s.io", Resource: "tokenreviews"},
		} {
			expect(what, "/", info, http.StatusOK, 0)
		}
		expect("a dry run", "/?dryRun=All", create, http.StatusOK, 0)

		go send("/", create) // waits to be refused, without a seat
		synctest.Wait()
		expect("a delete beside it", "/", request.RequestInfo{Verb: "delete"}, http.StatusOK, 0)
		time.Sleep(2 * slowness)

		contend()
		read := request.RequestInfo{Verb: "get"}
		for range 1 + queuePerSeat { // one has the seat, the others wait for it
			go send("/?slow", read)
		}
		synctest.Wait()
		for range queuePerSeat {
			go expect("one too many", "/", read, http.StatusTooManyRequests, slowness)
		}
		synctest.Wait()
		expect("far too many", "/", read, http.StatusTooManyRequests, 0)
		time.Sleep(2 * slowness)
		close(release)
		synctest.Wait()
		if len(s.seats.free)+len(s.seats.waiting)+len(s.seats.slowed) > 0 {
			t.Error("something is still taken")
		}
	})
}
