package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"k8s.io/apiserver/pkg/server/egressselector"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/etcd3/metrics"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// DefaultIdle is how long a watch cache outlives its last use.
	DefaultIdle = 5 * time.Minute

	// gRPC notices a dead etcd within 40 s if links does not. TLS handshakes on slow
	// machines under load have been seen to take more than 10 s (k/k#64649).
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	connectTimeout   = 20 * time.Second
	statusTimeout    = 5 * time.Second
)

// Config says where etcd is and how objects are kept in it.
type Config struct {
	// Config has the transport, the prefix of all keys, and intervals. Its codec
	// and transformer are not used: every Spec has its own codec.
	storagebackend.Config
	// Transformers encrypt at rest. Nil stores objects as they are.
	Transformers value.ResourceTransformers
	// Idle is how long a watch cache outlives its last use; 0 is DefaultIdle.
	Idle time.Duration
	// MaxBehind is how many bytes of events a watcher may be behind, and
	// MaxBehindSum how many all watchers may be; 0 is DefaultMaxBehind and
	// DefaultMaxBehindSum.
	MaxBehind, MaxBehindSum int64
	// MaxUnreadable is how many objects that cannot be read are remembered, logged and
	// counted; 0 is DefaultMaxUnreadable.
	MaxUnreadable int64
	// TLS is used in place of the files of the transport; nil if there is none.
	TLS *tls.Config
	// Beside is another backend of the process, with which this one shares the limits of
	// watchers; nil if it has limits of its own.
	Beside *Backend
}

// Backend is the connection to etcd. It is safe for concurrent use.
type Backend struct {
	config    Config
	client    *kubernetes.Client
	plain     clientv3.KV     // the client's, which tries no write again and reads no pages
	parent    *Backend        // whose connection it is; nil if it is the backend's own
	compactor etcd3.Compactor // nil if this process does not compact
	stop      func()          // of the compactor
	caches    atomic.Int64    // numbers the gRPC streams of watch caches
	closed    sync.Once
	limits    *limits // of watchers that do not keep up
	space     space
	counts    counts
	engine    engine
	bound     *bounded                          // requests, if the engine needs that
	links     *links                            // to etcd's members
	streams   etcdfeature.FeatureSupportChecker // whether etcd streams ranges
	barrier   barrier
	// unreadable are the objects that cannot be read.
	unreadable unreadables

	mu       sync.Mutex
	storages map[*Spec]destroyFunc
	stopping map[*Spec]<-chan struct{} // destroyed storages, until all of them has stopped
}

// rpcMetrics are those of all connections to etcd: a registry takes a name once,
// and k8s.io/apiserver's own factory has it already if it is linked in.
var rpcMetrics = sync.OnceValue(func() *grpcprom.ClientMetrics {
	m := grpcprom.NewClientMetrics()
	var taken prometheus.AlreadyRegisteredError
	if errors.As(legacyregistry.Registerer().Register(m), &taken) {
		if shared, ok := taken.ExistingCollector.(*grpcprom.ClientMetrics); ok {
			return shared
		}
	}
	return m
})

// Open connects to etcd. It fails if no member answers, and if one that does has
// a version known to corrupt data.
func Open(ctx context.Context, c Config) (*Backend, error) {
	if c.Idle == 0 {
		c.Idle = DefaultIdle
	}
	if c.EventsHistoryWindow == 0 {
		c.EventsHistoryWindow = storagebackend.DefaultEventsHistoryWindow
	}
	if c.LeaseManagerConfig == (etcd3.LeaseManagerConfig{}) {
		c.LeaseManagerConfig = etcd3.NewDefaultLeaseManagerConfig()
	}
	bound := &bounded{}
	streams := etcdfeature.NewDefaultFeatureSupportChecker()
	client, plain, links, err := connect(c, bound, streams)
	if err != nil {
		return nil, fmt.Errorf("connecting to etcd at %v: %w", c.Transport.ServerList, err)
	}
	b := &Backend{config: c, client: client, plain: plain, stop: func() {}, storages: map[*Spec]destroyFunc{}, stopping: map[*Spec]<-chan struct{}{}, limits: newLimits(c.MaxBehind, c.MaxBehindSum), links: links, bound: bound, streams: streams}
	if c.Beside != nil {
		b.limits = c.Beside.limits
	}
	b.unreadable.limit = cmp.Or(c.MaxUnreadable, DefaultMaxUnreadable)
	if err := b.checkMembers(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := b.probe(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if b.engine.bounded { // fences and other conditions are more than it has
		client.KV = etcd3.NewETCDLatencyTracker(plain)
	}
	links.start(client.Client)
	if c.CompactionInterval > 0 {
		// Several on one etcd agree, through a key, on who compacts.
		compactor := etcd3.NewCompactor(client.Client, c.CompactionInterval, clock.RealClock{}, nil)
		b.compactor, b.stop = compactor, compactor.Stop
	}
	opened(b)
	return b, nil
}

// connect builds the client, without and with what the backend adds to it, and the links
// that its connections go by. It does not wait for etcd.
func connect(c Config, bound *bounded, streams etcdfeature.FeatureSupportChecker) (*kubernetes.Client, clientv3.KV, *links, error) {
	t := c.Transport
	if len(t.ServerList) == 0 {
		return nil, nil, nil, errors.New("no server is given")
	}
	config := clientv3.Config{
		Endpoints:            t.ServerList,
		DialTimeout:          connectTimeout,
		DialKeepAliveTime:    keepaliveTime,
		DialKeepAliveTimeout: keepaliveTimeout,
		Logger:               zap.NewNop(), // failures are returned as errors, and logged by the code that handles them
		DialOptions: []grpc.DialOption{
			// Chained, and so after the client's own interceptors: every retry is counted.
			grpc.WithChainUnaryInterceptor(bound.intercept, rpcMetrics().UnaryClientInterceptor()),
			grpc.WithChainStreamInterceptor(rpcMetrics().StreamClientInterceptor()),
		},
	}
	if t.TracerProvider != nil {
		config.DialOptions = append(config.DialOptions, grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithMessageEvents(otelgrpc.ReceivedEvents, otelgrpc.SentEvents),
			otelgrpc.WithPropagators(tracing.Propagators()),
			otelgrpc.WithTracerProvider(t.TracerProvider),
		)))
	}
	if c.TLS != nil || t.CertFile != "" || t.KeyFile != "" || t.TrustedCAFile != "" {
		tls, err := c.tls()
		if err != nil {
			return nil, nil, nil, err
		}
		config.TLS = tls
	}
	var dial dialFunc
	if t.EgressLookup != nil {
		found, err := t.EgressLookup(egressselector.Etcd.AsNetworkContext())
		if err != nil {
			return nil, nil, nil, err
		}
		dial = dialFunc(found)
	}
	links := newLinks(t.ServerList, config.TLS, dial)
	config.DialOptions = append(config.DialOptions, links.options()...)
	client, err := kubernetes.New(config)
	if err != nil {
		return nil, nil, nil, err
	}
	plain := client.KV
	client.KV = etcd3.NewETCDLatencyTracker(pagingKV{newRetryingKV(client.Client, c.Prefix), streams}) // time spent in etcd, per request
	return client, plain, links, nil
}

// tls is what connections to etcd use, if they use TLS.
func (c *Config) tls() (*tls.Config, error) {
	if c.TLS != nil {
		return c.TLS.Clone(), nil
	}
	t := c.Transport
	return transport.TLSInfo{CertFile: t.CertFile, KeyFile: t.KeyFile, TrustedCAFile: t.TrustedCAFile}.ClientConfig()
}

// checkMembers asks every member for its version. Members that are down are left
// alone, as long as one answers: a cluster must be usable while it is repaired.
func (b *Backend) checkMembers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	for {
		versions, down := b.memberVersions(ctx)
		for endpoint, v := range versions {
			if err := checkVersion(endpoint, v); err != nil {
				return err
			}
			b.links.versions.note(endpoint, v)
		}
		if len(versions) > 0 {
			for endpoint, err := range down {
				klog.InfoS("A member of etcd does not answer: its version is not checked", "endpoint", endpoint, "err", err)
			}
			b.awaitFeatures(ctx)
			return nil
		}
		if err := b.refusals(ctx); err != nil {
			return fmt.Errorf("no member of etcd answers: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no member of etcd answers: %w", down[b.client.Endpoints()[0]])
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// refusals returns why members do not answer, if all of them fail for permanent reasons.
func (b *Backend) refusals(ctx context.Context) error {
	var errs []error
	for _, endpoint := range b.client.Endpoints() {
		err := refusal(ctx, endpoint, &b.config)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (b *Backend) memberVersions(ctx context.Context) (versions map[string]string, down map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	versions, down = map[string]string{}, map[string]error{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, endpoint := range slices.Compact(slices.Sorted(slices.Values(b.client.Endpoints()))) {
		wg.Go(func() {
			status, err := b.client.Status(ctx, endpoint)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				down[endpoint] = err
			} else {
				versions[endpoint] = status.Version
			}
		})
	}
	wg.Wait()
	return versions, down
}

// awaitFeatures waits a moment until k8s.io/apiserver has found out, in the
// background, that etcd reports the progress of watches on demand. Before that, it
// refuses the first watches with initial events and serves no consistent reads from caches.
func (b *Backend) awaitFeatures(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	checker := etcdfeature.DefaultFeatureSupportChecker
	checker.CheckClient(b.client.Ctx(), b.client, storage.RequestWatchProgress)
	for !checker.Supports(storage.RequestWatchProgress) {
		select {
		case <-ctx.Done(): // an old etcd, or a slow one: reads go to etcd itself
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Key returns the whole key of what is at a path below the prefix.
func (b *Backend) Key(below string) string { return path.Join("/", b.config.Prefix, below) }

// Client returns the client that everything in the process shares.
func (b *Backend) Client() *clientv3.Client { return b.client.Client }

// Endpoints are the members of etcd.
func (b *Backend) Endpoints() []string {
	if b.parent != nil {
		return b.parent.Endpoints()
	}
	return b.client.Endpoints()
}

// Healthy returns an error if no member of etcd answers a read. It does not ask
// for a quorum: a member without a leader still answers.
//
// A member that has just been stopped takes its share of these reads, too, until its
// link is held. While another one answers its probe, this replica is as healthy as
// etcd: the check does not fail, and does not wait until it would.
func (b *Backend) Healthy(ctx context.Context) error {
	timeout := b.config.HealthcheckTimeout
	if timeout == 0 {
		timeout = storagebackend.DefaultHealthcheckTimeout
	}
	began := time.Now()
	if b.links.answering() {
		err := b.readHealth(ctx, min(healthPatience, timeout))
		if err == nil || isTimeout(err) && b.links.answering() {
			return nil
		}
	}
	err := b.readHealth(ctx, timeout-time.Since(began))
	if err == nil {
		return nil
	}
	if since := b.SilentSince(); !since.IsZero() {
		return fmt.Errorf("reading from etcd: etcd has not answered since %s: %w", since.UTC().Format(time.RFC3339), err)
	}
	return fmt.Errorf("reading from etcd: %w", err)
}

// healthPatience is how long the check of a server waits that has several members.
const healthPatience = 500 * time.Millisecond

func (b *Backend) readHealth(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := b.client.KV.Get(ctx, path.Join("/", b.config.Prefix, "health"), clientv3.WithSerializable(), clientv3.WithCountOnly())
	return err
}

// sampled is how many objects the mean size is taken of.
const sampled = 16

// Count returns how many objects there are below a key, which is without the
// prefix of the backend, and about how large they are. It is one read of a few
// objects; etcd goes through the keys, not through what they hold. It asks for no
// quorum: a count that is a moment old is as good.
func (b *Backend) Count(ctx context.Context, key string) (storage.Stats, error) {
	below := path.Join("/", b.config.Prefix) + key + "/" // the key is a client's: .. is a name
	answer, err := b.client.KV.Get(ctx, below, clientv3.WithPrefix(), clientv3.WithLimit(sampled), clientv3.WithSerializable())
	if err != nil {
		return storage.Stats{}, fmt.Errorf("counting objects in etcd: %w", err)
	}
	stats := storage.Stats{ObjectCount: answer.Count}
	for _, kv := range answer.Kvs {
		stats.EstimatedAverageObjectSizeBytes += int64(len(kv.Key) + len(kv.Value))
	}
	if n := int64(len(answer.Kvs)); n > 0 {
		stats.EstimatedAverageObjectSizeBytes /= n
	}
	return stats, nil
}

// CountKeys returns how many keys there are below a folder, given without the prefix of
// the backend, whatever their values are.
func (b *Backend) CountKeys(ctx context.Context, folder string) (int, error) {
	answer, err := b.client.KV.Get(ctx, b.Key(folder)+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("counting keys in etcd: %w", err)
	}
	return int(answer.Count), nil
}

// destroyFunc destroys a storage. What it returns is closed when all of the storage has
// stopped. It may be called more than once.
type destroyFunc func() (stopped <-chan struct{})

// keep remembers how to destroy a storage, and returns how to do that early, without
// waiting until all of it has stopped.
func (b *Backend) keep(s *Spec, destroy destroyFunc) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.storages[s] = destroy
	return func() {
		stopped := destroy()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.storages, s)
		b.stopping[s] = stopped
		gone(s.Resource)
		go func() {
			<-stopped
			b.mu.Lock()
			defer b.mu.Unlock()
			delete(b.stopping, s)
		}()
	}
}

// Close destroys the storages that are left, stops the compactor and disconnects.
func (b *Backend) Close() error {
	var err error
	b.closed.Do(func() {
		b.mu.Lock()
		left := slices.Collect(maps.Values(b.storages))
		var parted map[*Spec]destroyFunc // of a part: others go on, and their metrics
		if b.parent != nil {
			parted = maps.Clone(b.storages)
		}
		stopping := slices.Collect(maps.Values(b.stopping))
		clear(b.storages)
		b.mu.Unlock()
		for s := range parted {
			gone(s.Resource)
		}
		for _, destroy := range left {
			stopping = append(stopping, destroy())
		}
		for _, stopped := range stopping {
			<-stopped
		}
		if b.parent != nil {
			return
		}
		closed(b)
		b.stop()
		b.links.close()
		err = b.client.Close()
	})
	return err
}

// monitor reports the size of etcd's database when metrics are read.
type monitor struct{ *Backend }

// Monitor implements metrics.Monitor.
func (m monitor) Monitor(ctx context.Context) (metrics.StorageMetrics, error) {
	status, err := m.client.Status(ctx, m.client.Endpoints()[0])
	if err != nil {
		return metrics.StorageMetrics{}, err
	}
	return metrics.StorageMetrics{Size: status.DbSize}, nil
}

// Close implements metrics.Monitor. The connection is the process's.
func (m monitor) Close() error { return nil }
