package server

import (
	"fmt"
	"net/http"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"

	"github.com/espalier-dev/espalier/server/admission/flowcontrol"
	"github.com/espalier-dev/espalier/server/auth/authentication"
	"github.com/espalier-dev/espalier/server/endpoints/limit"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/stackgrow"
	"github.com/espalier-dev/espalier/server/tenants"
)

// chain returns the filters that every request passes, in the order of
// k8s.io/apiserver's default chain (the last one added is the first to see a
// request). It differs where a filter costs and has no effect here:
//
//   - The latency of single filters is not tracked: each measurement is a span
//     and a metric, and no filter here does anything slow.
//   - Tracing is in the chain only if it is configured; otherwise each request
//     would make a span that is thrown away.
//   - A timeout needs no second goroutine (withTimeout), so the recorder of
//     warnings needs none either (withWarnings).
//   - Until roles and CRDs are known, withReady and the router answer 503. The
//     default chain marks the request's context instead.
//   - APIServingWithRoutine, an alpha feature, is not supported.
func (s *signals) chain(handler http.Handler, c *genericapiserver.Config) http.Handler {
	handler = s.watches.Handler(handler)
	if s.seats != nil {
		handler = s.seats.withRoom(handler)
	}
	handler = s.withReasons(handler, c.Authorization.Authorizer)
	var decide authorizer.UnconditionalAuthorizer = c.Authorization.Authorizer
	if s.denials != nil {
		decide = denying{decide}
	}
	handler = genericapifilters.WithAuthorization(handler, decide, c.Serializer)
	handler = s.withReady(handler)
	if s.seats == nil {
		handler = withLimit(handler, c, s.counts)
	}
	if c.FeatureGate.Enabled(features.ConstrainedImpersonation) {
		handler = impersonation.WithConstrainedImpersonation(handler, decide, c.Serializer)
	} else {
		handler = impersonation.WithImpersonation(handler, decide, c.Serializer)
	}
	handler = withDenials(handler, s.denials, s.tenant)
	handler = genericapifilters.WithAudit(handler, c.AuditBackend, c.AuditPolicyRuleEvaluator, c.LongRunningFunc)
	failed := genericapifilters.Unauthorized(c.Serializer)
	failed = genericapifilters.WithFailedAuthenticationAudit(failed, c.AuditBackend, c.AuditPolicyRuleEvaluator)
	if s.tracing {
		// After authentication, so that strangers do not decide what is traced.
		handler = genericapifilters.WithTracing(handler, c.TracerProvider)
	}
	handler = genericapifilters.WithAuthentication(handler, c.Authentication.Authenticator, failed, c.Authentication.APIAudiences, c.Authentication.RequestHeaderConfig)
	handler = genericfilters.WithCORS(handler, c.CorsAllowedOriginList, nil, nil, nil, "true")
	handler = withWarnings(handler, s.writes)
	handler = withTimeout(handler, answerGrace)
	handler = genericapifilters.WithRequestDeadline(handler, c.AuditBackend, c.AuditPolicyRuleEvaluator, c.LongRunningFunc, c.Serializer, c.RequestTimeout)
	handler = genericfilters.WithWaitGroup(handler, c.LongRunningFunc, c.NonLongRunningRequestWaitGroup)
	if c.ShutdownWatchTerminationGracePeriod > 0 {
		handler = genericfilters.WithWatchTerminationDuringShutdown(handler, s, c.WatchRequestWaitGroup)
	}
	if !c.SecureServing.DisableHTTP2 && c.GoawayChance > 0 {
		handler = genericfilters.WithProbabilisticGoaway(handler, c.GoawayChance)
	}
	handler = s.withGoAway(handler)
	if s.seats != nil {
		handler = s.withSeats(handler, c.LongRunningFunc)
	}
	handler = s.withCount(handler, c.LongRunningFunc)
	handler = genericapifilters.WithCacheControl(handler)
	handler = genericfilters.WithHSTS(handler, c.HSTSDirectives)
	if c.ShutdownSendRetryAfter {
		handler = genericfilters.WithRetryAfter(handler, s.ShuttingDown())
	}
	handler = genericfilters.WithHTTPLogging(handler)
	handler = genericapifilters.WithLatencyTrackers(handler)
	handler = genericapifilters.WithRequestInfo(handler, c.RequestInfoResolver)
	handler = genericapifilters.WithRequestReceivedTimestamp(handler)
	handler = genericfilters.WithPanicRecovery(handler, c.RequestInfoResolver)
	if s.tenant != "" {
		handler = withTenant(handler, s.tenant)
	}
	handler = genericapifilters.WithAuditInit(handler)
	if s.tenants != nil {
		handler = s.tenants.Handler(handler)
	}
	return withStack(s.withLast(withShortURI(handler)))
}

// maxRequestURI bounds the path and query of a request, which logs, traces and audit
// events keep. Go bounds all headers together by 1 MB; with that, 10,000 queued audit
// events would take 10 GB. The longest URIs of real clients have selectors and names, of
// a few KB.
const maxRequestURI = 16 << 10

// withShortURI refuses requests with a longer URI, before anything looks at it.
func withShortURI(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if len(req.RequestURI) <= maxRequestURI {
			handler.ServeHTTP(w, req)
			return
		}
		reply.Error(w, req, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusRequestURITooLong, Reason: "RequestURITooLong",
			Message: fmt.Sprintf("the path and query of a request are limited to %d bytes, these have %d; select by fewer values, in several requests", maxRequestURI, len(req.RequestURI)),
		}})
	})
}

// withLimit bounds the number of requests at a time: shared out by flow schemas, or
// with --enable-priority-and-fairness=false to all alike.
func withLimit(handler http.Handler, c *genericapiserver.Config, counts *flowcontrol.Counts) http.Handler {
	if c.FlowControl == nil {
		return genericfilters.WithMaxInFlightLimit(handler, c.MaxRequestsInFlight, c.MaxMutatingRequestsInFlight, c.LongRunningFunc)
	}
	estimate := counts.Estimator(c.FlowControl.GetInterestedWatchCount, c.FlowControl.GetMaxSeats)
	return counts.Before(genericfilters.WithPriorityAndFairness(handler, c.LongRunningFunc, c.FlowControl, estimate, c.RequestTimeout/4))
}

// withReady asks clients to come back until the roles are known: they would be
// told that they may not. The server itself, and the health paths, do not wait.
func (s *signals) withReady(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if s.controlPlane.ready() || s.controlPlane.loop.Has(req) || authentication.IsHealth(req.URL.Path) {
			handler.ServeHTTP(w, req)
			return
		}
		notYet(w, req, "the server does not know roles and bindings yet, please try again")
	})
}

// withGoAway moves clients to another replica while this one still answers: with the
// answer to a request, an HTTP/2 connection gets GOAWAY, an HTTP/1 connection is closed.
// Clients that come later than that are asked to wait for a second.
func (s *signals) withGoAway(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		select {
		case <-s.leaving:
			w.Header().Set("Connection", "close")
		default:
		}
		handler.ServeHTTP(w, req)
	})
}

// withCount counts the requests and watches under way, but for the server's own: a few
// atomic additions for each.
func (s *signals) withCount(handler http.Handler, longRunning request.LongRunningRequestCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if s.controlPlane.loop.Has(req) {
			handler.ServeHTTP(w, req)
			return
		}
		count := &s.requests
		if info, ok := request.RequestInfoFrom(req.Context()); ok && longRunning(req, info) {
			count = &s.watching
		}
		if count == &s.requests {
			s.begun.Add(1)
		}
		count.Add(1)
		defer count.Add(-1)
		handler.ServeHTTP(w, req)
	})
}

// withLast bounds how long the end of an answer may be blocked, also of those that a
// filter gives. The server itself reads its answers.
func (s *signals) withLast(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		handler.ServeHTTP(w, req)
		if !s.controlPlane.loop.Has(req) {
			s.writes.Last(w, req)
		}
	})
}

// withStack makes the stack of a request large enough for what follows.
func withStack(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		stackgrow.Reserve()
		handler.ServeHTTP(w, req)
	})
}

// signals are what the filters know of the server's life. The library's own
// are not exported.
type signals struct {
	tracing      bool
	controlPlane *controlPlane
	counts       *flowcontrol.Counts
	// watches and writes bound what clients hold.
	watches  *limit.Watches
	writes   *limit.Writes
	listener *limit.Listener
	// tenants serves what is below /clusters/; nil if there are no tenants.
	tenants *tenants.Set
	tenant  string // that requests are for; empty for the server itself
	// denials is where denied reads are recorded, if that is wanted.
	denials audit.Sink
	// leaving is closed when half of the shutdown's delay has passed.
	leaving chan struct{}
	// notAccepting is closed when new requests are no longer accepted: the
	// shutdown was asked for, and its delay has passed.
	notAccepting chan struct{}
	*traffic
	// seats are how many requests there may be at a time; nil leaves that to flow control.
	seats *seats
	// outOfSpace reports that etcd is full.
	outOfSpace func() bool
	// members says which members of etcd need attention.
	members func() string
}

// traffic are the requests and watches under way, and all requests that have begun so far.
type traffic struct{ requests, watching, begun atomic.Int64 }

// ShuttingDown implements request.ServerShutdownSignal.
func (s *signals) ShuttingDown() <-chan struct{} { return s.notAccepting }
