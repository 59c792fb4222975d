package server

import (
	"context"
	"crypto/x509"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // leader_election_master_status

	"github.com/espalier-dev/espalier/server/storage/store"
)

// The metrics of a server, computed on each scrape.
var (
	buildInfo = metrics.NewDesc("espalier_build_info", "Version of the program; the value is always 1.",
		[]string{"version", "go_version"}, nil, metrics.ALPHA, "")
	replicaCurrent = metrics.NewDesc("espalier_replica_current", "1 while the lease of this replica in etcd is valid; 0 while it asks etcd before every request.",
		nil, nil, metrics.ALPHA, "")
	etcdFull = metrics.NewDesc("espalier_etcd_out_of_space", "1 while etcd refuses writes because it is full.",
		nil, nil, metrics.ALPHA, "")
	certificateExpiry = metrics.NewDesc("espalier_certificate_expiration_timestamp_seconds", "When a certificate in use expires: of the server (serving), or the CA of clients that expires first (client-ca).",
		[]string{"use"}, nil, metrics.ALPHA, "")
	certificateRefused = metrics.NewDesc("espalier_serving_certificate_refused", "1 while the files of the serving certificate hold one that must not be used, and the former one is kept.",
		nil, nil, metrics.ALPHA, "")
)

// collector reads the metrics of the server that was started last: the registry
// belongs to the process, and `espalier serve` has one server.
type collector struct {
	metrics.BaseStableCollector
	of atomic.Pointer[observed]
}

// observed is what is read of a server.
type observed struct {
	version string
	current func() bool
	backend *store.Backend
	serving *servingCertificate // nil if a caller of the library has its own
	clients dynamiccertificates.CAContentProvider
}

var (
	collected       = &collector{}
	registerMetrics = sync.OnceFunc(func() { legacyregistry.CustomMustRegister(collected) })
)

// observe has the metrics read of a server, until the function is called.
func observe(s *Server, o *Options, c *genericapiserver.Config) (end func()) {
	registerMetrics()
	now := &observed{version: o.Version, current: s.joined.Current, backend: s.backend, clients: s.controlPlane.identity.ClientCA}
	now.serving, _ = c.SecureServing.Cert.(*servingCertificate)
	collected.of.Store(now)
	return func() { collected.of.CompareAndSwap(now, nil) }
}

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{buildInfo, replicaCurrent, etcdFull, certificateExpiry, certificateRefused} {
		ch <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	o := c.of.Load()
	if o == nil {
		return
	}
	o.backend.CountObjects(context.Background())
	gauge := func(d *metrics.Desc, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	gauge(buildInfo, 1, o.version, runtime.Version())
	gauge(replicaCurrent, number(o.current()))
	gauge(etcdFull, number(o.backend.OutOfSpace()))
	if o.serving != nil {
		content, _ := o.serving.CurrentCertKeyContent()
		if at, ok := firstExpiry(content, 1); ok {
			gauge(certificateExpiry, at, "serving")
		}
		gauge(certificateRefused, number(o.serving.refused.Load()))
	}
	if o.clients != nil {
		if at, ok := firstExpiry(o.clients.CurrentCABundleContent(), 0); ok {
			gauge(certificateExpiry, at, "client-ca")
		}
	}
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// firstExpiry is when the first of the first n certificates expires; of all, if n is
// zero.
func firstExpiry(pem []byte, n int) (seconds float64, ok bool) {
	all, err := cert.ParseCertsPEM(pem)
	if err != nil || len(all) == 0 {
		return 0, false
	}
	if n > 0 {
		all = all[:n]
	}
	first := slices.MinFunc(all, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	return float64(first.NotAfter.UnixNano()) / float64(time.Second), true
}
