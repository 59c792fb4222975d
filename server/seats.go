package server

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/tenants"
	"github.com/espalier-dev/espalier/server/turns"
)

const (
	// queuePerSeat is how many requests may wait for each that is being worked on.
	queuePerSeat = 10
	// slowness is how long a request waits that is refused because its tenant has too many or is full, while other tenants send
	// requests: many clients send the same again at once. It is the mean: the next requests must not come all together.
	slowness = 500 * time.Millisecond
)

// seats bound how many requests there are at a time, of all users: priority and
// fairness and the limits of k8s.io/apiserver let members of system:masters pass, which
// every administrator of a tenant can impersonate.
type seats struct {
	free    chan struct{} // has as many places as there are seats
	waiting chan struct{}
	slowed  chan struct{} // of requests that are refused
	share   *turns.Share  // of the processors
	exempt  func(*http.Request) bool
	full    func() error // that no object can be created in the tenant; nil if that is not known
}

func newSeats(n int, share *turns.Share, exempt func(*http.Request) bool, full func() error) *seats {
	return &seats{
		free: make(chan struct{}, n), waiting: make(chan struct{}, n*queuePerSeat), slowed: make(chan struct{}, n*queuePerSeat),
		share: share, exempt: exempt, full: full,
	}
}

// seatKey is where the context of a request has the function that gives its seat and its turn to others.
type seatKey struct{}

var errWaited = apierrors.NewTimeoutError("the request has waited for a seat until its time was over", 1)

// watchStart is how long a watch keeps its seat at most: a client may be slow to read the
// objects that the watch begins with.
const watchStart = 5 * time.Second

// withSeats has requests wait for a seat, and refuses them if too many wait. Watches have one
// until they have sent what there is already, which costs as much as a list. Their number is
// limited apart from that.
func (s *signals) withSeats(next http.Handler, longRunning request.LongRunningRequestCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		watch := ok && info.Verb == "watch"
		if ok && longRunning(req, info) && !watch || s.seats.exempt(req) {
			next.ServeHTTP(w, req)
			return
		}
		select {
		case s.seats.free <- struct{}{}:
		default:
			if err := s.seats.wait(req); err != nil {
				reply.Error(w, req, err)
				return
			}
		}
		ctx, turn, err := s.seats.share.Take(req.Context())
		leave := sync.OnceFunc(func() {
			turn.Leave()
			<-s.seats.free
		})
		defer leave()
		if err != nil {
			reply.Error(w, req, errWaited)
			return
		}
		req = req.WithContext(context.WithValue(ctx, seatKey{}, leave))
		if watch {
			timer := time.AfterFunc(watchStart, leave)
			defer timer.Stop()
			req = req.WithContext(utilflowcontrol.WithInitializationSignal(req.Context(), started(leave)))
		}
		next.ServeHTTP(w, req)
	})
}

// started is told that a watch has sent what there was.
type started func()

// Signal implements flowcontrol.InitializationSignal.
func (s started) Signal() { s() }

// Wait implements flowcontrol.InitializationSignal. Nothing here calls it.
func (s started) Wait() {}

// wait waits for a seat.
func (s *seats) wait(req *http.Request) error {
	if tenants.VisitOf(req.Context()) != nil {
		// A visitor has a seat of its own tenant: two tenants that visit each other could wait for ever.
		return apierrors.NewTooManyRequests("the tenant has too many requests at the moment: send the request again", 1)
	}
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		s.slow(req)
		return apierrors.NewTooManyRequests("too many requests of this tenant are waiting (spec.requests of its tenants.espalier.dev): send fewer at a time", 1)
	}
	select {
	case s.free <- struct{}{}:
		return nil
	case <-req.Context().Done():
		return errWaited
	}
}

// slow has a request wait that is going to be refused. There are not many that wait: the others are refused at once.
func (s *seats) slow(req *http.Request) {
	if !s.share.Contended() || tenants.VisitOf(req.Context()) != nil { // a visitor would keep a seat of its own tenant
		return
	}
	select {
	case s.slowed <- struct{}{}:
		defer func() { <-s.slowed }()
	default:
		return
	}
	timer := time.NewTimer(slowness/2 + rand.N(slowness))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-req.Context().Done():
	}
}

// withRoom refuses to create objects in a tenant that is full, before anything is decoded or read. It comes after authorization:
// how full a tenant is, is not for everyone. While a request waits to be refused, others have its seat: those that delete, for example.
func (s *seats) withRoom(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if stores(req) {
			if err := s.full(); err != nil {
				if leave, ok := req.Context().Value(seatKey{}).(func()); ok {
					leave()
				}
				s.slow(req)
				reply.Error(w, req, err)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// stores reports whether a request that succeeds has created an object: reviews and dry runs store nothing.
func stores(req *http.Request) bool {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok || !info.IsResourceRequest || info.Verb != "create" || info.Subresource != "" {
		return false
	}
	if info.APIGroup == authenticationv1.GroupName || info.APIGroup == authorizationv1.GroupName {
		return false
	}
	return req.URL.RawQuery == "" || !req.URL.Query().Has("dryRun")
}
