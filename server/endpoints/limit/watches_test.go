package limit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// One person may be many users.
func TestWatchesOfAll(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	handler := NewWatchesOfAll(1, func(*http.Request) bool { return false }).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-end
	}))
	watch := func(name string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
		ctx = request.WithRequestInfo(ctx, &request.RequestInfo{Verb: "watch"})
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		return w
	}
	done := make(chan struct{})
	go func() { defer close(done); watch("one") }()
	<-begun
	if w := watch("two"); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "the users of this tenant together have 1 watches open") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	close(end)
	<-done
}
