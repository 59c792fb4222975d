package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/admission"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	fq "k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	flowrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// observing is the key of the observation of a request in its context.
type observing struct{}

func observationOf(ctx context.Context) *observation {
	o, _ := ctx.Value(observing{}).(*observation)
	return o
}

// observation is what happens within one request.
type observation struct {
	cancel context.CancelFunc

	mu          sync.Mutex
	authorized  []authorizer.Attributes
	admitted    []admission.Attributes
	touched     []touch
	digest      *request.RequestInfo
	event       *auditinternal.Event
	differences []string
}

// touch is an operation of etcd. A range ends in a slash.
type touch struct {
	key    string // without the prefix of the server
	writes bool
	makes  bool // it creates the key
}

func (o *observation) differ(format string, args ...any) {
	o.differences = append(o.differences, fmt.Sprintf(format, args...))
}

// recorder writes down what happens within requests.
type recorder struct {
	prefix  string
	last    atomic.Int64
	pending sync.Map // audit ID → *observation
}

func (r *recorder) begin(o *observation) string {
	id := strconv.FormatInt(r.last.Add(1), 10)
	r.pending.Store(id, o)
	return id
}

func (r *recorder) end(id string) { r.pending.Delete(id) }

// watch puts the recorder around what is told about requests.
func (r *recorder) watch(c *genericapiserver.Config) {
	c.Authentication.Authenticator = recordedUser{c.Authentication.Authenticator}
	c.Authorization.Authorizer = recordingAuthorizer{c.Authorization.Authorizer}
	c.FlowControl = recordingFlow{c.FlowControl}
	c.AuditPolicyRuleEvaluator = policy.NewFakePolicyRuleEvaluator(auditinternal.LevelMetadata, nil)
	c.AuditBackend = recordingAudit{r}
}

// plug adds an admission plugin that records.
func (r *recorder) plug(o *options.AdmissionOptions) {
	o.Plugins.Register("Recorder", func(io.Reader) (admission.Interface, error) { return recordingPlugin{}, nil })
	o.RecommendedPluginOrder = append(o.RecommendedPluginOrder, "Recorder")
}

// recordedUser authenticates observed requests as an administrator.
type recordedUser struct{ authenticator.Request }

func (a recordedUser) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if observationOf(req.Context()) == nil {
		return a.Request.AuthenticateRequest(req)
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "tester", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}}, true, nil
}

type recordingAuthorizer struct{ authorizer.Authorizer }

func (a recordingAuthorizer) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if o := observationOf(ctx); o != nil {
		o.mu.Lock()
		o.authorized = append(o.authorized, attributes)
		o.mu.Unlock()
		if attributes.GetVerb() == "watch" {
			time.AfterFunc(25*time.Millisecond, o.cancel) // the test needs no events
		}
	}
	return a.Authorizer.Authorize(ctx, attributes)
}

type recordingFlow struct{ utilflowcontrol.Interface }

func (f recordingFlow) Handle(ctx context.Context, digest utilflowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	estimate func() flowrequest.WorkEstimate, queue fq.QueueNoteFn, execute func(),
) {
	if o := observationOf(ctx); o != nil {
		o.mu.Lock()
		o.digest = digest.RequestInfo
		o.mu.Unlock()
	}
	f.Interface.Handle(ctx, digest, note, estimate, queue, execute)
}

type recordingAudit struct{ *recorder }

func (a recordingAudit) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, e := range events {
		if o, ok := a.pending.Load(string(e.AuditID)); ok && e.Stage == auditinternal.StageResponseComplete {
			o := o.(*observation)
			o.mu.Lock()
			o.event = e.DeepCopy()
			o.mu.Unlock()
		}
	}
	return true
}

func (recordingAudit) Run(<-chan struct{}) error { return nil }
func (recordingAudit) Shutdown()                 {}
func (recordingAudit) String() string            { return "recorder" }

// recordingPlugin is an admission plugin that has nothing to say.
type recordingPlugin struct{}

func (recordingPlugin) Handles(admission.Operation) bool { return true }

func (recordingPlugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if o := observationOf(ctx); o != nil {
		o.mu.Lock()
		o.admitted = append(o.admitted, a)
		o.mu.Unlock()
	}
	return nil
}

type recordingWatcher struct {
	clientv3.Watcher
	*recorder
}

func (w recordingWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	w.record(ctx, clientv3.OpGet(key, opts...), false)
	return w.Watcher.Watch(ctx, key, opts...)
}

type recordingKV struct {
	clientv3.KV
	*recorder
}

func (k recordingKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	k.record(ctx, clientv3.OpGet(key, opts...), false)
	return k.KV.Get(ctx, key, opts...)
}

func (k recordingKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	k.record(ctx, clientv3.OpPut(key, value, opts...), false)
	return k.KV.Put(ctx, key, value, opts...)
}

func (k recordingKV) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	k.record(ctx, clientv3.OpDelete(key, opts...), false)
	return k.KV.Delete(ctx, key, opts...)
}

func (k recordingKV) Txn(ctx context.Context) clientv3.Txn {
	return &recordingTxn{Txn: k.KV.Txn(ctx), recorder: k.recorder, ctx: ctx}
}

type recordingTxn struct {
	clientv3.Txn
	*recorder
	ctx   context.Context
	makes bool
}

func (t *recordingTxn) If(conditions ...clientv3.Cmp) clientv3.Txn {
	for i := range conditions {
		absent := clientv3.Compare(clientv3.ModRevision(string(conditions[i].KeyBytes())), "=", 0)
		t.makes = t.makes || reflect.DeepEqual(conditions[i], absent)
	}
	t.Txn = t.Txn.If(conditions...)
	return t
}

func (t *recordingTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		t.record(t.ctx, op, t.makes)
	}
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *recordingTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	for _, op := range ops {
		t.record(t.ctx, op, false)
	}
	t.Txn = t.Txn.Else(ops...)
	return t
}

// record writes an operation down. The range of a page of a list begins after the
// last key of the page before.
func (r *recorder) record(ctx context.Context, op clientv3.Op, makes bool) {
	o := observationOf(ctx)
	if o == nil {
		return
	}
	key := strings.TrimPrefix(string(op.KeyBytes()), r.prefix)
	if end := op.RangeBytes(); len(end) > 0 {
		folder := strings.TrimPrefix(string(end[:len(end)-1])+string(end[len(end)-1]-1), r.prefix)
		if strings.HasPrefix(key, folder) {
			key = folder
		} else {
			key += " to " + string(end)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.touched = append(o.touched, touch{key: key, writes: op.IsPut() || op.IsDelete(), makes: makes && op.IsPut()})
}

// findKind returns the resource of a name, nil if there is none.
func findKind(group, plural string) *kind {
	i := slices.IndexFunc(urlKinds, func(k kind) bool { return k.group == group && k.plural == plural })
	if i < 0 {
		return nil
	}
	return &urlKinds[i]
}

// compareTouched looks for operations that were not authorized.
func (o *observation) compareTouched(sum *tally) {
	for _, t := range o.touched {
		sum.touched.Add(1)
		why := "nobody was asked"
		for _, a := range o.authorized {
			if why = covers(a, t); why == "" {
				break
			}
		}
		if why != "" && !o.guards(t) {
			o.differ("touched %s (writes %t, creates %t): %s", t.key, t.writes, t.makes, why)
		}
	}
}

// guards reports whether an operation is the look at the objects of a CRD that is
// about to be deleted.
func (o *observation) guards(t touch) bool {
	a := o.authorized[0]
	if a.GetResource() != "customresourcedefinitions" || t.writes || !strings.HasPrefix(a.GetVerb(), "delete") {
		return false
	}
	return strings.HasSuffix(t.key, "/") && strings.Count(t.key, "/") == 3
}

// covers says why an operation is not what was authorized, "" if it is.
func covers(a authorizer.Attributes, t touch) string {
	k := findKind(a.GetAPIGroup(), a.GetResource())
	if k == nil || !a.IsResourceRequest() {
		return fmt.Sprintf("authorized was %s %s.%s %s", a.GetVerb(), a.GetResource(), a.GetAPIGroup(), a.GetPath())
	}
	if t.key+"/" == k.prefix && !t.writes {
		return "" // nothing is there: the answer says at which revision etcd is
	}
	rest, ok := strings.CutPrefix(t.key, k.prefix)
	if !ok {
		return "authorized was " + k.plural + "." + k.group
	}
	verb := a.GetVerb()
	switch changes := !slices.Contains([]string{"get", "list", "watch"}, verb); {
	case t.makes && verb != "create":
		return "authorized was to " + verb
	case t.writes && !changes:
		return "authorized was to " + verb
	}
	namespace, name := "", rest
	if k.namespaced {
		namespace, name, _ = strings.Cut(rest, "/")
	}
	many := slices.Contains([]string{"list", "watch", "deletecollection"}, verb)
	switch {
	case k.namespaced && namespace != a.GetNamespace() && (!many || a.GetNamespace() != ""):
		return fmt.Sprintf("authorized was namespace %q", a.GetNamespace())
	case !k.namespaced && a.GetNamespace() != "" && (k.plural != "namespaces" || a.GetNamespace() != name):
		return fmt.Sprintf("authorized was namespace %q, and there are none", a.GetNamespace())
	case name == "" && !many:
		return fmt.Sprintf("authorized was to %s %q", verb, a.GetName())
	case name == "" && a.GetName() != "" && (!k.namespaced || a.GetNamespace() != ""):
		return fmt.Sprintf("authorized was %q alone", a.GetName())
	case name != "" && name != a.GetName() && !many && (verb != "create" || a.GetName() != ""):
		return fmt.Sprintf("authorized was to %s %q", verb, a.GetName())
	}
	return ""
}

// operations are what admission is told for a verb.
var operations = map[string][]admission.Operation{
	"create": {admission.Create}, "update": {admission.Update, admission.Create}, "patch": {admission.Update, admission.Create},
	"delete": {admission.Delete}, "deletecollection": {admission.Delete},
}

// compareAdmitted looks for admission of something else than what was authorized.
func (o *observation) compareAdmitted(sum *tally) {
	for _, m := range o.admitted {
		sum.admitted.Add(1)
		a := o.authorized[0]
		r, name := m.GetResource(), m.GetName()
		switch {
		case r.Group != a.GetAPIGroup() || r.Version != a.GetAPIVersion() || r.Resource != a.GetResource() || m.GetSubresource() != a.GetSubresource():
			o.differ("admission is told %s/%s", r, m.GetSubresource())
		case m.GetNamespace() != a.GetNamespace() && (a.GetVerb() != "create" || r.Resource != "namespaces" || r.Group != "" || m.GetNamespace() != name):
			o.differ("admission is told namespace %q, authorized was %q", m.GetNamespace(), a.GetNamespace())
		case a.GetName() != "" && name != a.GetName():
			o.differ("admission is told %q, authorized was %q", name, a.GetName())
		case !slices.Contains(operations[a.GetVerb()], m.GetOperation()):
			o.differ("admission is told %s, authorized was to %s", m.GetOperation(), a.GetVerb())
		}
	}
}

// compareAudit looks whether the audit event says what was authorized.
func (o *observation) compareAudit(sum *tally) {
	if o.event == nil || len(o.authorized) == 0 {
		return
	}
	sum.audited.Add(1)
	a, e := o.authorized[0], o.event
	if e.Verb != a.GetVerb() {
		o.differ("the audit event has the verb %s, authorized was %s", e.Verb, a.GetVerb())
	}
	if (e.ObjectRef != nil) != a.IsResourceRequest() {
		o.differ("the audit event is about %v", e.ObjectRef)
		return
	}
	if r := e.ObjectRef; r != nil && (r.APIGroup != a.GetAPIGroup() || r.APIVersion != a.GetAPIVersion() || r.Resource != a.GetResource() ||
		r.Subresource != a.GetSubresource() || r.Namespace != a.GetNamespace() || a.GetName() != "" && r.Name != a.GetName()) {
		o.differ("the audit event is about %v", *r)
	}
}

// compareFlow looks whether flow control was told what was authorized.
func (o *observation) compareFlow(sum *tally) {
	if o.digest == nil || len(o.authorized) == 0 {
		return
	}
	sum.flows.Add(1)
	a, d := o.authorized[0], o.digest
	if d.IsResourceRequest != a.IsResourceRequest() || d.Verb != a.GetVerb() || d.Path != a.GetPath() || d.APIGroup != a.GetAPIGroup() || d.APIVersion != a.GetAPIVersion() ||
		d.Resource != a.GetResource() || d.Subresource != a.GetSubresource() || d.Namespace != a.GetNamespace() || d.Name != a.GetName() {
		o.differ("flow control is told %+v", *d)
	}
}
