package limit

import (
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

// retryAfter is how many seconds a client is asked to wait whose watch is refused.
const retryAfter = 5

// Watches bounds how many watches a user has open. It is safe for concurrent use.
type Watches struct {
	perUser int
	all     bool // users count as one
	exempt  func(*http.Request) bool

	mu   sync.Mutex
	open map[string]int
}

// NewWatches returns a limit per user name; 0 is no limit. Requests that are
// exempt are neither counted nor refused.
func NewWatches(perUser int, exempt func(*http.Request) bool) *Watches {
	register()
	return &Watches{perUser: perUser, exempt: exempt, open: map[string]int{}}
}

// NewWatchesOfAll returns a limit for all users together: a user who may impersonate others, or
// create service accounts, is any number of users.
func NewWatchesOfAll(most int, exempt func(*http.Request) bool) *Watches {
	l := NewWatches(most, exempt)
	l.all = true
	return l
}

// Handler answers watches that are too many with 429.
func (l *Watches) Handler(next http.Handler) http.Handler {
	if l.perUser <= 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if !ok || info.Verb != "watch" || l.exempt(req) {
			next.ServeHTTP(w, req)
			return
		}
		name := ""
		if user, ok := request.UserFrom(req.Context()); ok && !l.all {
			name = user.GetName()
		}
		if !l.begin(name) {
			watchesRefused.Inc()
			who, of := fmt.Sprintf("user %q has", name), "user"
			if l.all {
				who, of = "the users of this tenant together have", "tenant"
			}
			reply.Error(w, req, apierrors.NewTooManyRequests(
				fmt.Sprintf("%s %d watches open on this server, the most that one %s may have (--max-watches-per-user): close some of them, or have the limit raised", who, l.perUser, of), retryAfter))
			return
		}
		defer l.end(name)
		next.ServeHTTP(w, req)
	})
}

func (l *Watches) begin(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name] >= l.perUser {
		return false
	}
	l.open[name]++
	return true
}

func (l *Watches) end(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[name]--; l.open[name] == 0 {
		delete(l.open, name)
	}
}
