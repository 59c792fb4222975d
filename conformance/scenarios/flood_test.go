package scenarios

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	floodReads, floodWrites = 20, 10 // requests at a time that the server takes; the defaults are 400 and 200
	floodUsers              = 5
	floodTimes              = 10  // how many times the sustainable rate comes in
	floodBoats              = 500 // in the namespace that users list
	// Requests of a user that wait for an answer. For each the server has room for 300 in queues.
	floodWaiting = 400
	// What each of them may cost in resident memory of the server, beyond what it has before. It is about 100 KiB; a build that looks for
	// data races needs more.
	floodMemory = 512 << 10
	// The lease of the controllers, as client-go's users have it.
	floodLease, floodRenew, floodRetry = 15 * time.Second, 10 * time.Second, 2 * time.Second
)

// Ten times as many requests of ordinary users as the server can answer: controllers keep their leases and do their work, users are told to
// come again later, the server's memory is bounded, and afterwards all is as it was.
func TestFlood(t *testing.T) {
	needsDiscovery(t)
	prefix := prefix()
	s := serve(t, against, prefix, fmt.Sprintf("--max-requests-inflight=%d", floodReads), fmt.Sprintf("--max-mutating-requests-inflight=%d", floodWrites))
	admin := newKubectl(t, s)
	admin.install("boats.yaml", boats)
	admin.says([]string{"system-leader-election", "service-accounts", "global-default"}, "get", "flowschemas")
	crowd := newCrowd(t, s)
	normal := crowd.latency(t)

	sustainable := crowd.calibrate(t)
	controllers := []*controller{newController(t, s, "kube-system"), newController(t, s, "control")}
	for _, c := range controllers {
		c.start(t, prefix)
	}
	before, err := launch.RSS(s.Pid)
	if err != nil {
		t.Fatal(err)
	}
	memory := watchMemory(t, s)
	flood := crowd.flood(t, sustainable*floodTimes, pick(20*time.Second, 6*time.Second))
	peak := memory()
	for _, c := range controllers {
		c.end(t)
	}
	flood.report(t, sustainable)
	bound := before + floodUsers*floodWaiting*floodMemory
	t.Logf("resident memory: %d MiB before, at most %d MiB; the bound is %d MiB", before>>20, peak>>20, bound>>20)
	if peak > bound {
		t.Error("the memory of the server is not bounded")
	}
	var after time.Duration
	eventually(t, soon, "the latency is normal again", func() bool {
		after = crowd.latency(t)
		return after < 4*normal+20*time.Millisecond
	})
	t.Logf("median latency of a user's get: %v before, %v after", normal.Round(10*time.Microsecond), after.Round(10*time.Microsecond))
}

// A crowd is of users who may do something with boats in one namespace.
type crowd struct {
	base    string
	clients []*http.Client
	serial  atomic.Int64
}

// Users list in the market, and make boats in the dock.
const (
	marketPath = "/apis/harbour.example.com/v1/namespaces/market/boats"
	dockPath   = "/apis/harbour.example.com/v1/namespaces/dock/boats"
)

// newCrowd makes the users, their rights and what there is to list.
func newCrowd(t *testing.T, s *launch.Server) *crowd {
	t.Helper()
	c := dial(t, s)
	for _, namespace := range []string{"market", "dock"} {
		post(t, c, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, namespace))
		roles := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/"
		post(t, c, roles+"roles", `{"metadata":{"name":"sailor"},"rules":[{"apiGroups":["harbour.example.com"],"resources":["boats"],"verbs":["get","list","create"]}]}`)
		post(t, c, roles+"rolebindings", `{"metadata":{"name":"sailors"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"sailor"},
"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"sailors"}]}`)
	}
	launchBoats(t, s)
	crowd := &crowd{base: s.URL}
	for i := range floodUsers {
		config, err := s.Client(fmt.Sprintf("sailor-%d", i), "sailors")
		if err != nil {
			t.Fatal(err)
		}
		tls, err := rest.TLSConfigFor(config)
		if err != nil {
			t.Fatal(err)
		}
		// A connection has 100 requests at a time.
		transport := &http.Transport{TLSClientConfig: tls, ForceAttemptHTTP2: true, MaxConnsPerHost: floodWaiting/100 + 1, DisableCompression: true}
		t.Cleanup(transport.CloseIdleConnections)
		crowd.clients = append(crowd.clients, &http.Client{Transport: transport, Timeout: 2 * time.Minute})
	}
	eventually(t, soon, "users have their rights", func() bool {
		status, _, err := crowd.send(t.Context(), 0, http.MethodGet, marketPath+"/boat-0", "")
		return err == nil && status == http.StatusOK
	})
	return crowd
}

// launchBoats makes the boats.
func launchBoats(t *testing.T, s *launch.Server) {
	t.Helper()
	const workers = 4
	var wg sync.WaitGroup
	for w := range workers {
		c := dial(t, s)
		wg.Go(func() {
			for i := w; i < floodBoats; i += workers {
				if _, err := c.Expect(t.Context(), http.StatusCreated, http.MethodPost, marketPath, []byte(boatJSON(fmt.Sprintf("boat-%d", i)))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func boatJSON(name string) string {
	return fmt.Sprintf(`{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":%q},"spec":{"owner":"ada"}}`, name)
}

// send makes a request as one of the users, and returns the status and what Retry-After says.
func (c *crowd) send(ctx context.Context, user int, method, path, body string) (status int, retry string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json") // as kubectl get does
	}
	resp, err := c.clients[user%len(c.clients)].Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("Retry-After"), err
}

// one is one request of the flood: four of five are lists, one creates a boat.
func (c *crowd) one(ctx context.Context) (int, string, error) {
	n := c.serial.Add(1)
	if n%5 == 0 {
		// In a namespace that no client lists, so that lists stay what they are.
		return c.send(ctx, int(n/5), http.MethodPost, dockPath, boatJSON(fmt.Sprintf("new-%d", n)))
	}
	return c.send(ctx, int(n), http.MethodGet, marketPath+"?includeObject=None", "")
}

// latency is the median of a few gets, one after the other.
func (c *crowd) latency(t *testing.T) time.Duration {
	t.Helper()
	var all []time.Duration
	for i := range 51 {
		began := time.Now()
		if status, _, err := c.send(t.Context(), i, http.MethodGet, marketPath+"/boat-1", ""); err != nil || status != http.StatusOK {
			t.Fatalf("a get after or before the flood: %d, %v", status, err)
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// calibrate returns how many requests of the flood are answered in a second: with ever more clients that wait for their answers, until more
// of them do not help any more.
func (c *crowd) calibrate(t *testing.T) float64 {
	t.Helper()
	best := 0.0
	for clients := 1; clients <= 64; clients *= 2 {
		rate := c.rate(t, clients, time.Second)
		t.Logf("calibration: %d clients get %.0f answers per second", clients, rate)
		before := best
		if best = max(best, rate); rate < before*1.1 {
			break
		}
	}
	return best
}

func (c *crowd) rate(t *testing.T, clients int, during time.Duration) float64 {
	t.Helper()
	var answered atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for range clients {
		wg.Go(func() {
			for time.Since(began) < during {
				status, _, err := c.one(t.Context())
				if err != nil || status >= 300 {
					t.Errorf("a request that the server has room for: %d, %v", status, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(answered.Load()) / time.Since(began).Seconds()
}

// A tide is what became of the requests of a flood.
type tide struct {
	mu       sync.Mutex
	statuses map[int]int
	noRetry  int // answered with 429, but not when to come again
	errors   []error
	sent     int
	took     time.Duration
}

// flood has requests come at a rate, as long as not too many of those before wait for an answer.
func (c *crowd) flood(t *testing.T, rate float64, during time.Duration) *tide {
	t.Helper()
	f := &tide{statuses: map[int]int{}}
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	due := make(chan struct{})
	var wg sync.WaitGroup
	for range floodUsers * floodWaiting {
		wg.Go(func() {
			for range due {
				f.note(c.one(t.Context()))
			}
		})
	}
	began := time.Now()
	for ctx.Err() == nil {
		if elapsed := time.Since(began); f.sent >= int(elapsed.Seconds()*rate) {
			time.Sleep(time.Millisecond) // none is due
			continue
		}
		select {
		case due <- struct{}{}:
			f.sent++
		case <-ctx.Done():
		}
	}
	f.took = time.Since(began)
	close(due)
	wg.Wait()
	return f
}

func (f *tide) note(status int, retry string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.errors = append(f.errors, err)
		return
	}
	f.statuses[status]++
	if status == http.StatusTooManyRequests && retry == "" {
		f.noRetry++
	}
}

// report prints the figures and checks what users were told.
func (f *tide) report(t *testing.T, sustainable float64) {
	t.Helper()
	t.Logf("sustainable: %.0f requests per second with --max-requests-inflight=%d --max-mutating-requests-inflight=%d", sustainable, floodReads, floodWrites)
	t.Logf("flood: %d requests of %d users in %.1f s, %.0f per second, up to %d at a time: answers %v", f.sent, floodUsers, f.took.Seconds(), float64(f.sent)/f.took.Seconds(), floodUsers*floodWaiting, f.statuses)
	if len(f.errors) > 0 {
		t.Errorf("%d requests were not answered at all, the first: %v", len(f.errors), f.errors[0])
	}
	for status, n := range f.statuses {
		if status != http.StatusOK && status != http.StatusCreated && status != http.StatusTooManyRequests {
			t.Errorf("%d requests of users were answered with %d", n, status)
		}
	}
	if f.statuses[http.StatusTooManyRequests] == 0 {
		t.Error("no request got 429: it was no flood")
	}
	if f.noRetry > 0 {
		t.Errorf("%d answers of 429 do not say when to come again", f.noRetry)
	}
	if f.statuses[http.StatusOK] == 0 || f.statuses[http.StatusCreated] == 0 {
		t.Error("no user was served any more")
	}
}

// watchMemory looks at the server's memory until the function is called, which returns the most that was seen.
func watchMemory(t *testing.T, s *launch.Server) (end func() int64) {
	t.Helper()
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		ticks := time.NewTicker(100 * time.Millisecond)
		defer ticks.Stop()
		for {
			now, err := launch.RSS(s.Pid)
			if err != nil {
				t.Error(err)
			}
			most = max(most, now)
			select {
			case <-done:
				result <- most
				return
			case <-ticks.C:
			}
		}
	}()
	return func() int64 { close(done); return <-result }
}

// A controller has a service account, a lease that it renews, and a config map that it keeps changing.
type controller struct {
	name     string
	client   *kubernetes.Clientset
	cancel   context.CancelFunc
	running  sync.WaitGroup
	statuses sync.Map // of answers: int to *atomic.Int64

	lost    atomic.Bool   // the lease
	renewed int           // how often it was
	gap     time.Duration // the longest time between two renewals
	worked  int
	slow    time.Duration // the longest change, with what client-go repeats
	faults  []error
}

// newController makes a controller in a namespace, with the rights that it needs there.
func newController(t *testing.T, s *launch.Server, namespace string) *controller {
	t.Helper()
	conn := dial(t, s)
	if namespace != "kube-system" {
		post(t, conn, "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, namespace))
	}
	roles := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/"
	post(t, conn, roles+"roles", `{"metadata":{"name":"pilot"},"rules":[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","create","update"]},
{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","update"]}]}`)
	post(t, conn, roles+"rolebindings", fmt.Sprintf(`{"metadata":{"name":"pilot"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"pilot"},
"subjects":[{"kind":"ServiceAccount","name":"pilot","namespace":%q}]}`, namespace))
	post(t, conn, "/api/v1/namespaces/"+namespace+"/configmaps", `{"metadata":{"name":"log"},"data":{"n":"0"}}`)
	c := &controller{name: namespace}
	config := bearing(s, rightsToken(t, s, namespace, "pilot"))
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return counted{inner, &c.statuses} })
	c.client = typedClient(t, config)
	eventually(t, soon, "the controller has its rights", func() bool {
		_, err := c.client.CoreV1().ConfigMaps(namespace).Get(t.Context(), "log", metav1.GetOptions{})
		return err == nil
	})
	c.statuses.Clear()
	return c
}

// counted counts answers by status.
type counted struct {
	inner    http.RoundTripper
	statuses *sync.Map
}

func (c counted) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := c.inner.RoundTrip(req)
	if err == nil {
		n, _ := c.statuses.LoadOrStore(resp.StatusCode, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}
	return resp, err
}

// start has the controller lead, and work.
func (c *controller) start(t *testing.T, prefix string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c.cancel = cancel
	leading := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: c.name, Name: "pilot"}, Client: c.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.name},
		},
		LeaseDuration: floodLease, RenewDeadline: floodRenew, RetryPeriod: floodRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leading) },
			OnStoppedLeading: func() { c.lost.Store(ctx.Err() == nil) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.running.Go(func() { elector.Run(ctx) })
	select {
	case <-leading:
	case <-time.After(soon):
		t.Fatal("the controller does not come to lead")
	}
	c.running.Go(func() { c.toil(ctx) })
	renewals := etcdClient(t).Watch(ctx, prefix+"/leases/"+c.name+"/pilot")
	c.running.Go(func() { c.observe(renewals) })
}

// observe looks in etcd, where no flood is, how long the lease has to wait to be renewed.
func (c *controller) observe(renewals clientv3.WatchChan) {
	last := time.Now()
	for range renewals {
		c.gap = max(c.gap, time.Since(last))
		last = time.Now()
		c.renewed++
	}
	c.gap = max(c.gap, time.Since(last))
}

// toil changes a config map five times a second.
func (c *controller) toil(ctx context.Context) {
	maps := c.client.CoreV1().ConfigMaps(c.name)
	for n := 0; ctx.Err() == nil; n++ {
		began := time.Now()
		o, err := maps.Get(ctx, "log", metav1.GetOptions{})
		if err == nil {
			o.Data["n"] = fmt.Sprint(n)
			_, err = maps.Update(ctx, o, metav1.UpdateOptions{})
		}
		if ctx.Err() != nil {
			return
		}
		c.worked++
		c.slow = max(c.slow, time.Since(began))
		if err != nil {
			c.faults = append(c.faults, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// end stops the controller and checks how it fared.
func (c *controller) end(t *testing.T) {
	t.Helper()
	c.cancel()
	c.running.Wait()
	statuses := map[int]int64{}
	c.statuses.Range(func(status, n any) bool {
		statuses[status.(int)] = n.(*atomic.Int64).Load()
		return true
	})
	t.Logf("the controller in %s: %d renewals, at most %.1f s apart; %d pieces of work, the longest %.2f s; answers %v",
		c.name, c.renewed, c.gap.Seconds(), c.worked, c.slow.Seconds(), statuses)
	if c.lost.Load() || c.gap >= floodLease {
		t.Errorf("the controller in %s has lost its lease, or could have: %v between two renewals", c.name, c.gap)
	}
	if len(c.faults) > 0 || c.worked == 0 {
		t.Errorf("of %d pieces of work of the controller in %s %d have failed: %v", c.worked, c.name, len(c.faults), c.faults)
	}
	for status, n := range statuses {
		if status >= 500 {
			t.Errorf("%d requests of the controller in %s were answered with %d", n, c.name, status)
		}
	}
}
