package scenarios

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A load is what clients do to an estate all the time, and what they saw of it. No error may come out of client-go: what it tries again by
// itself is counted by its transport and otherwise left alone.
type load struct {
	*estate
	stop     chan struct{}
	mayDoubt bool // etcd loses members: whether it did what it was asked for is not known at times
	running  sync.WaitGroup
	watchers []*follower
	tally    tally
	token    string // of a service account, that may write secrets

	mu       sync.Mutex
	book     map[string][]int64 // per key in etcd: the resource versions that were acknowledged; the last one is 0 if it was deleted
	doubts   map[string]string  // per key: why it is not known whether a write was done
	failures []string
	failed   map[string]bool          // the keys that a write or read of failed
	longest  map[string]time.Duration // per verb
	requests int
}

// burden is how many requests a second a worker makes at most.
const burden = 40

// loadKeys is where a resource's objects are in etcd.
var loadKeys = map[string]string{
	"configmaps": "/registry/configmaps/default/", "secrets": "/registry/secrets/default/", "boats": "/registry/harbour.example.com/boats/default/",
}

// newLoad starts clients of all sorts: with certificates and with a token, typed and not, in protobuf and in JSON.
func newLoad(s *estate) *load {
	s.Helper()
	l := &load{estate: s, stop: make(chan struct{}), book: map[string][]int64{}, doubts: map[string]string{}, failed: map[string]bool{}, longest: map[string]time.Duration{}}
	l.tally.answers = map[string]int{}
	l.follow()
	l.elect()
	for i := range 2 {
		inProtobuf := l.worker(fmt.Sprintf("typed-%d", i))
		inProtobuf.ContentType, inProtobuf.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
		maps := typedClient(s.T, inProtobuf).CoreV1().ConfigMaps("default")
		work(l, fmt.Sprintf("map-%d", i), "configmaps", maps, func(m metav1.ObjectMeta) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: m, Data: map[string]string{"word": "sesame"}}
		})
		boats := must[*dynamic.DynamicClient](s.T)(dynamic.NewForConfig(l.worker(fmt.Sprintf("dynamic-%d", i))))
		work(l, fmt.Sprintf("boat-%d", i), "boats", loose{boats.Resource(boatResource).Namespace("default")}, func(m metav1.ObjectMeta) *unstructured.Unstructured {
			return boat(m.Name, "red")
		})
	}
	secrets := typedClient(s.T, l.bearer()).CoreV1().Secrets("default")
	work(l, "secret", "secrets", secrets, func(m metav1.ObjectMeta) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: m, Data: map[string][]byte{"word": []byte("sesame")}}
	})
	s.Cleanup(l.end)
	return l
}

// worker is the configuration of a client whose requests are counted.
func (l *load) worker(name string) *rest.Config {
	l.Helper()
	config := l.user(name)
	config.QPS, config.Burst = burden, 5
	config.Wrap(l.tally.counting)
	return config
}

// bearer is a client that has the token of a service account, which may write secrets.
func (l *load) bearer() *rest.Config {
	l.Helper()
	admin := typedClient(l.T, l.user("admin"))
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "loader"}}
	must[*corev1.ServiceAccount](l.T)(admin.CoreV1().ServiceAccounts("default").Create(l.Context(), account, metav1.CreateOptions{}))
	binding := &rbacv1.RoleBinding{ObjectMeta: account.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "loader"}}}
	must[*rbacv1.RoleBinding](l.T)(admin.RbacV1().RoleBindings("default").Create(l.Context(), binding, metav1.CreateOptions{}))
	token := must[*authenticationv1.TokenRequest](l.T)(admin.CoreV1().ServiceAccounts("default").CreateToken(l.Context(), "loader", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
	config := l.worker("bearer")
	l.token = token.Status.Token
	config.CertData, config.KeyData, config.BearerToken = nil, nil, l.token
	// Every replica has its own view of roles, which is a moment behind.
	for _, r := range l.replicas {
		direct := rest.CopyConfig(config)
		direct.Host = "https://" + r.addr
		l.await("the service account may list secrets", func(ctx context.Context) error {
			_, err := typedClient(l.T, direct).CoreV1().Secrets("default").List(ctx, metav1.ListOptions{})
			return err
		})
	}
	return config
}

// loose is a dynamic client with the methods of a typed one.
type loose struct{ dynamic.ResourceInterface }

func (c loose) Create(ctx context.Context, o *unstructured.Unstructured, opts metav1.CreateOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Create(ctx, o, opts)
}

func (c loose) Update(ctx context.Context, o *unstructured.Unstructured, opts metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Update(ctx, o, opts)
}

func (c loose) Get(ctx context.Context, name string, opts metav1.GetOptions) (*unstructured.Unstructured, error) {
	return c.ResourceInterface.Get(ctx, name, opts)
}

func (c loose) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return c.ResourceInterface.Delete(ctx, name, opts)
}

// A toiler does all that one can do with objects of a resource, one object after the other.
type toiler[T, L runtime.Object] struct {
	*load
	who, key string
	client   clientOf[T, L]
	fresh    func(metav1.ObjectMeta) T
}

// work starts a toiler, which ends with the load.
func work[T, L runtime.Object](l *load, who, resource string, client clientOf[T, L], fresh func(metav1.ObjectMeta) T) {
	w := &toiler[T, L]{l, who, loadKeys[resource], client, fresh}
	l.running.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-l.stop:
				return
			default:
				w.live(fmt.Sprintf("load-%s-%d", who, i), i%5 == 0)
			}
		}
	})
}

// note is the annotation that writes change.
const note = "example.com/note"

// live takes an object through its life. Some stay.
func (w *toiler[T, L]) live(name string, stays bool) {
	ctx := context.Background() // the test's ends before the load does
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"patched"}}}`, note)
	object := w.fresh(metav1.ObjectMeta{Name: name})
	created, ok := w.writes(name, "create", func() (T, error) { return w.client.Create(ctx, object, metav1.CreateOptions{}) })
	if !ok || !w.reads(ctx, name) {
		return
	}
	ok = w.step(name, "update", func() (T, error) {
		change, _ := meta.Accessor(created)
		change.SetAnnotations(map[string]string{note: "updated"})
		return w.client.Update(ctx, created, metav1.UpdateOptions{})
	}) && w.step(name, "patch", func() (T, error) {
		return w.client.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}) && w.step(name, "apply", func() (T, error) {
		return w.client.Patch(ctx, name, types.ApplyPatchType, w.intent(name, object), metav1.PatchOptions{FieldManager: "applier", Force: new(true)})
	}) && w.reads(ctx, name)
	if ok && !stays && w.times(w.key+name, "delete", func() error { return w.client.Delete(ctx, name, metav1.DeleteOptions{}) }) {
		w.enters(w.key+name, 0)
	}
}

// intent is what is applied.
func (w *toiler[T, L]) intent(name string, object T) []byte {
	api, kind := "v1", "ConfigMap"
	switch any(object).(type) {
	case *corev1.Secret:
		kind = "Secret"
	case *unstructured.Unstructured:
		api, kind = "harbour.example.com/v1", "Boat"
	}
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"annotations":{%q:"applied"}}}`, api, kind, name, note)
}

// reads gets and lists: what was acknowledged has to be there, whichever replica is asked.
func (w *toiler[T, L]) reads(ctx context.Context, name string) bool {
	want := w.last(w.key + name)
	return w.times(w.key+name, "get", func() error {
		got, err := w.client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return same64(want, got)
	}) && w.times(w.key+name, "list", func() error {
		list, err := w.client.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		if err != nil || len(items) != 1 {
			return fmt.Errorf("%d objects are called %s, %w", len(items), name, err)
		}
		return same64(want, items[0])
	})
}

func same64(want int64, object runtime.Object) error {
	if got := versionOf(object); got != want {
		return fmt.Errorf("the resource version is %d, and %d was acknowledged", got, want)
	}
	return nil
}

func versionOf(object runtime.Object) int64 {
	m, err := meta.Accessor(object)
	if err != nil {
		return -1
	}
	version, err := strconv.ParseInt(m.GetResourceVersion(), 10, 64)
	if err != nil {
		return -1
	}
	return version
}

func (w *toiler[T, L]) step(name, verb string, do func() (T, error)) bool {
	_, ok := w.writes(name, verb, do)
	return ok
}

// writes does something and puts what was acknowledged into the book.
func (w *toiler[T, L]) writes(name, verb string, do func() (T, error)) (object T, ok bool) {
	ok = w.times(w.key+name, verb, func() (err error) { object, err = do(); return err })
	if ok {
		w.enters(w.key+name, versionOf(object))
	}
	return object, ok
}

// inDoubt reports whether etcd has been asked for a write and has not said what became of it.
func inDoubt(verb string, err error) bool {
	if verb == "get" || verb == "list" {
		return false
	}
	for _, text := range []string{"etcdserver: request timed out", "code = Unavailable", "raft proposal dropped", "etcdserver: leader changed"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// times does something to the object of a key, and notes how long it took and whether it failed.
func (l *load) times(key, verb string, do func() error) bool {
	began := time.Now()
	err := do()
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	l.longest[verb] = max(l.longest[verb], took)
	if err != nil && l.mayDoubt && inDoubt(verb, err) {
		l.doubts[key] = fmt.Sprintf("%s, after %v: %v", verb, took.Round(time.Millisecond), err)
	} else if err != nil {
		l.failed[key] = true
		l.failures = append(l.failures, fmt.Sprintf("%s %s %s, after %v: %v", began.Format(time.StampMilli), verb, key, took, err))
	}
	return err == nil
}

func (l *load) enters(key string, version int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.book[key] = append(l.book[key], version)
}

func (l *load) last(key string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.book[key][len(l.book[key])-1]
}

// done returns how many requests were answered so far.
func (l *load) done() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

// unharmed reports whether no request has failed so far.
func (l *load) unharmed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.failed) == 0
}

// proceeds waits until some more requests have been answered.
func (l *load) proceeds(more int) {
	l.Helper()
	want := l.done() + more
	eventually(l.T, time.Minute, fmt.Sprintf("%d more requests are answered", more), func() bool { return l.done() >= want })
}

// end lets the workers finish what they are at, and no more.
func (l *load) end() {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.running.Wait()
}

// living are the objects that must be there, with their resource versions.
func (l *load) living() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := map[string]int64{}
	for key, versions := range l.book {
		if last := versions[len(versions)-1]; last != 0 && l.doubts[key] == "" {
			all[key] = last
		}
	}
	return all
}

// settle ends the load and demands that no client saw an error, that etcd has exactly what was acknowledged, and that watchers saw all of it.
func (l *load) settle() {
	l.Helper()
	l.end()
	for _, failure := range l.failures[:min(len(l.failures), 20)] {
		l.Errorf("a client saw: %s", failure)
	}
	if n := len(l.failures); n > 20 {
		l.Errorf("and %d more", n-20)
	}
	if l.Failed() {
		l.report()
		l.FailNow() // what a request that failed has done is not known
	}
	if want, got := l.living(), l.known(inEtcd(l.estate, 0)); !maps.Equal(want, got) {
		l.Errorf("etcd has not what was acknowledged: %s", differ(want, got))
	}
	for _, f := range l.watchers {
		f.settle(l)
	}
	l.sees(l.living())
	l.report()
}

// known removes the objects whose outcome is unknown.
func (l *load) known(all map[string]int64) map[string]int64 {
	maps.DeleteFunc(all, func(key string, _ int64) bool { return l.doubts[key] != "" })
	return all
}

// inEtcd are the objects of loads that etcd has, or had at a revision.
func inEtcd(s *estate, revision int64) map[string]int64 {
	s.Helper()
	all := map[string]int64{}
	for _, prefix := range loadKeys {
		for key, kv := range s.under(prefix+"load-", revision) {
			all[key] = kv.ModRevision
		}
	}
	return all
}

// differ tells what is in one of two views only, or not the same in both.
func differ(want, got map[string]int64) string {
	var all []string
	for key, version := range want {
		if got[key] != version {
			all = append(all, fmt.Sprintf("%s is of %d, not %d", key, got[key], version))
		}
	}
	for key, version := range got {
		if _, ok := want[key]; !ok {
			all = append(all, fmt.Sprintf("%s of %d ought not to be there", key, version))
		}
	}
	slices.Sort(all)
	return fmt.Sprintf("%d differences:\n%s", len(all), strings.Join(all[:min(len(all), 20)], "\n"))
}

// report logs the figures of a load.
func (l *load) report() {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var longest []string
	for _, verb := range slices.Sorted(maps.Keys(l.longest)) {
		longest = append(longest, fmt.Sprintf("%s %v", verb, l.longest[verb].Round(time.Millisecond)))
	}
	l.Logf("%d requests of client-go, %s; longest: %s", l.requests, l.tally.String(), strings.Join(longest, ", "))
	for _, key := range slices.Sorted(maps.Keys(l.doubts)) {
		l.Logf("in doubt: %s: %s", key, l.doubts[key])
	}
	for _, f := range l.watchers {
		l.Logf("%s", f)
	}
	if lost := l.balancer.losses(); len(lost) > 0 {
		l.Logf("connections that came to nothing: %q", lost)
	}
}

// A tally counts what client-go's transport sees, which is more than what comes out of client-go.
type tally struct {
	attempts atomic.Int64
	lists    atomic.Int64 // of informers: how often they read everything

	mu      sync.Mutex
	answers map[string]int // that are no success
}

func (t *tally) counting(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		t.attempts.Add(1)
		if q := req.URL.Query(); q.Get("sendInitialEvents") == "true" {
			t.lists.Add(1)
		}
		resp, err := next.RoundTrip(req)
		if err != nil || resp.StatusCode >= 400 {
			t.mu.Lock()
			defer t.mu.Unlock()
			if err != nil {
				t.answers[fmt.Sprintf("%T", err)+" "+err.Error()]++
			} else {
				t.answers[resp.Status+" Retry-After:"+resp.Header.Get("Retry-After")]++
			}
		}
		return resp, err
	})
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d attempts, %d lists of informers, answers that are none: %v", t.attempts.Load(), t.lists.Load(), t.answers)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// direct is the configuration of an administrator that asks one replica only.
func (s *estate) direct(r *replicaOf) *rest.Config {
	s.Helper()
	config := s.user("admin")
	config.Host = "https://" + r.addr
	return config
}

// admin is a typed client through the balancer.
func (s *estate) admin() *kubernetes.Clientset {
	s.Helper()
	return typedClient(s.T, s.user("admin"))
}
