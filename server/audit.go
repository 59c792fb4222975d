package server

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/natefinch/lumberjack.v2"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/audit/log"
	"k8s.io/apiserver/plugin/pkg/audit/truncate"
	auditwebhook "k8s.io/apiserver/plugin/pkg/audit/webhook"
)

// RecordAudit turns the audit log on, as `espalier serve` has it: to standard output,
// where a container runtime and systemd collect and rotate it, without state on the
// machine. Events are written in the background: a reader of the log that does not
// read must not stop requests. Up to 10,000 events of together 64 MiB wait; more are
// dropped and counted in apiserver_audit_error_total.
func (o *Options) RecordAudit() {
	log := &o.Audit.LogOptions
	log.Path = "-"
	log.BatchOptions.Mode = options.ModeBatch
	// A log in a file takes at most 1.1 GB.
	log.MaxSize, log.MaxBackups, log.MaxAge = 100, 10, 30
}

// defaultAuditPolicy is in force without --audit-policy-file. It records which user
// changed an object and which user read a Secret, without contents. Most requests are
// reads and tell little; withDenials records the denied ones. Failed authentication is
// not recorded: any client that reaches the port could push everything else out of the log.
//
//go:embed audit-policy.yaml
var defaultAuditPolicy []byte

// records reports whether there is an audit log.
func records(o *options.AuditOptions) bool {
	return o.LogOptions.Path != "" || o.WebhookOptions.ConfigFile != ""
}

// applyAudit sets what is recorded, and where. k8s.io/apiserver builds nothing without
// a policy in a file, and bounds the number of events that wait, not their size.
func (s *signals) applyAudit(o *options.AuditOptions, c *genericapiserver.Config) error {
	if !records(o) {
		return nil
	}
	rules, err := policy.LoadPolicyFromBytes(defaultAuditPolicy)
	if o.PolicyFile != "" {
		rules, err = policy.LoadPolicyFromFile(o.PolicyFile)
	}
	if err != nil {
		return fmt.Errorf("--audit-policy-file: %w", err)
	}
	c.AuditPolicyRuleEvaluator = policy.NewPolicyRuleEvaluator(rules)
	var backends []audit.Backend
	if o.LogOptions.Path != "" {
		backend, err := logBackend(&o.LogOptions)
		if err != nil {
			return fmt.Errorf("--audit-log-path: %w", err)
		}
		backends = append(backends, backend)
	}
	if hook := &o.WebhookOptions; hook.ConfigFile != "" {
		version, _ := schema.ParseGroupVersion(hook.GroupVersionString) // Validate has
		backend, err := auditwebhook.NewBackend(hook.ConfigFile, version, webhook.DefaultRetryBackoffWithInitialDelay(hook.InitialBackoff), nil)
		if err != nil {
			return fmt.Errorf("--audit-webhook-config-file: %w", err)
		}
		backends = append(backends, wrapped(backend, &hook.BatchOptions, &hook.TruncateOptions, version))
	}
	c.AuditBackend = audit.Union(backends...)
	if o.PolicyFile == "" {
		s.denials = c.AuditBackend
	}
	return nil
}

func logBackend(o *options.AuditLogOptions) (audit.Backend, error) {
	var out io.Writer = os.Stdout
	if o.Path != "-" {
		if err := os.MkdirAll(filepath.Dir(o.Path), 0o700); err != nil {
			return nil, err
		}
		file, err := os.OpenFile(o.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		if out = file; o.MaxSize > 0 {
			if err := file.Close(); err != nil {
				return nil, err
			}
			out = &lumberjack.Logger{Filename: o.Path, MaxAge: o.MaxAge, MaxBackups: o.MaxBackups, MaxSize: o.MaxSize, Compress: o.Compress}
		}
	}
	version, err := schema.ParseGroupVersion(o.GroupVersionString)
	if err != nil {
		return nil, err
	}
	return wrapped(log.NewBackend(out, o.Format, version), &o.BatchOptions, &o.TruncateOptions, version), nil
}

// wrapped has a backend write in the background, or in the request whose answer waits
// for it. An event that cannot be recorded fails its request in the strict mode only.
func wrapped(b audit.Backend, batch *options.AuditBatchOptions, limit *options.AuditTruncateOptions, version schema.GroupVersion) audit.Backend {
	switch batch.Mode {
	case options.ModeBatch:
		b = newQueue(b, batch.BatchConfig)
	case options.ModeBlocking:
		b = tolerant{b}
	}
	if limit.Enabled {
		b = truncate.NewBackend(b, limit.TruncateConfig, version)
	}
	return b
}

// tolerant is a backend whose failures do not fail requests. They are counted.
type tolerant struct{ audit.Backend }

// ProcessEvents implements audit.Sink.
func (f tolerant) ProcessEvents(events ...*auditapi.Event) bool {
	f.Backend.ProcessEvents(events...)
	return true
}

// withDenials records denied read requests. The default policy omits reads, because the
// server evaluates it before it authorizes the request. It costs a look at the request's
// audit context.
func withDenials(handler http.Handler, sink audit.Sink, tenant string) http.Handler {
	if sink == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		handler.ServeHTTP(w, req)
		ac := audit.AuditContextFrom(req.Context())
		if ac == nil || ac.Enabled() {
			return
		}
		if status := ac.GetEventResponseStatus(); status != nil && (status.Code == http.StatusForbidden || status.Code == http.StatusInternalServerError) {
			event := denial(req, ac.AuditID(), status)
			if tenant != "" {
				event.Annotations[tenantAnnotation] = tenant
			}
			sink.ProcessEvents(event)
		}
	})
}

// denial is the event of a request that was denied.
func denial(req *http.Request, id types.UID, status *metav1.Status) *auditapi.Event {
	ctx := req.Context()
	received, ok := request.ReceivedTimestampFrom(ctx)
	if !ok {
		received = time.Now()
	}
	event := &auditapi.Event{
		Level: auditapi.LevelMetadata, Stage: auditapi.StageResponseComplete, AuditID: id,
		RequestURI: req.URL.RequestURI(), UserAgent: cut(req.UserAgent(), maxUserAgent),
		ResponseStatus: status, Annotations: map[string]string{"authorization.k8s.io/decision": "forbid"},
		RequestReceivedTimestamp: metav1.NewMicroTime(received), StageTimestamp: metav1.NewMicroTime(time.Now()),
	}
	for _, ip := range utilnet.SourceIPs(req) {
		event.SourceIPs = append(event.SourceIPs, ip.String())
	}
	attributes, err := filters.GetAuthorizerAttributes(ctx)
	if err != nil {
		return event
	}
	event.Verb = attributes.GetVerb()
	if u := attributes.GetUser(); u != nil {
		event.User = authenticationv1.UserInfo{Username: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups()}
	}
	if attributes.IsResourceRequest() {
		event.ObjectRef = &auditapi.ObjectReference{
			APIGroup: attributes.GetAPIGroup(), APIVersion: attributes.GetAPIVersion(), Resource: attributes.GetResource(), Subresource: attributes.GetSubresource(),
			Namespace: attributes.GetNamespace(), Name: attributes.GetName(),
		}
	}
	return event
}

// maxUserAgent is how much of a client's own name is recorded, as k8s.io/apiserver
// has it.
const maxUserAgent = 1024

func cut(text string, most int) string {
	if len(text) > most {
		return text[:most] + "...TRUNCATED"
	}
	return text
}

// denying is an authorizer that leaves a note in the audit context of what it denied,
// for withDenials. What others allow afterwards takes the note back. It has no other
// way to ask than the one that leaves notes: the filters need none.
type denying struct {
	next authorizer.UnconditionalAuthorizer
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (d denying) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := d.next.Authorize(ctx, a)
	ac := audit.AuditContextFrom(ctx)
	if ac == nil || ac.Enabled() {
		return decision, reason, err
	}
	switch {
	case decision != authorizer.DecisionAllow:
		status := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: deniedText(a, reason)}
		if err != nil {
			status.Message = deniedText(a, err.Error())
		}
		// The impersonation filter treats an error of the authorizer as a denial.
		if err != nil && !strings.HasPrefix(a.GetVerb(), "impersonate") {
			status.Reason, status.Code = metav1.StatusReasonInternalError, http.StatusInternalServerError
		}
		ac.SetEventResponseStatus(status)
	case ac.GetEventResponseStatus() != nil:
		ac.SetEventResponseStatus(nil)
	}
	return decision, reason, err
}

func deniedText(a authorizer.Attributes, reason string) string {
	name := "system:anonymous"
	if u := a.GetUser(); u != nil {
		name = u.GetName()
	}
	what := fmt.Sprintf("path %q", a.GetPath())
	if a.IsResourceRequest() {
		what = fmt.Sprintf("resource %q in API group %q", a.GetResource(), a.GetAPIGroup())
	}
	text := fmt.Sprintf("User %q cannot %s %s", name, a.GetVerb(), what)
	if reason != "" {
		text += ": " + reason
	}
	return text
}
