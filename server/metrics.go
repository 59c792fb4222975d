package server

import (
	"context"
	"crypto/x509"
	"io"
	"os"
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

	"github.com/espalier-dev/espalier/internal/build"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// The metrics of a server, computed on each scrape.
var (
	buildInfo = metrics.NewDesc("espalier_build_info", "Version of the program; the value is always 1.",
		[]string{"version", "commit", "go_version"}, nil, metrics.ALPHA, "")
	replicaCurrent = metrics.NewDesc("espalier_replica_current", "1 while the lease of this replica in etcd is valid; 0 while it asks etcd before every request.",
		nil, nil, metrics.ALPHA, "")
	etcdFull = metrics.NewDesc("espalier_etcd_out_of_space", "1 while etcd refuses writes because it is full.",
		nil, nil, metrics.ALPHA, "")
	certificateExpiry = metrics.NewDesc("espalier_certificate_expiration_timestamp_seconds", "When a certificate in use expires: of the server (serving), of the server as a client of etcd (etcd-client), or the CA that expires first of clients (client-ca), of proxies (requestheader-client-ca), or of etcd (etcd-ca).",
		[]string{"use"}, nil, metrics.ALPHA, "")
	certificateRefused = metrics.NewDesc("espalier_serving_certificate_refused", "1 while the files of the serving certificate hold one that must not be used, and the former one is kept.",
		nil, nil, metrics.ALPHA, "")
)

// tenantsInUse has no names of tenants: there may be a million of them.
var tenantsInUse = metrics.NewDesc("espalier_tenants_in_use", "Tenants that this replica has handlers and controllers of.", nil, nil, metrics.ALPHA, "")

// The tenants with the highest figures. Others have no series.
var (
	tenantRequests = metrics.NewDesc("espalier_tenant_requests_total", "Requests of a tenant to this replica since the tenant came into use, for the ten tenants in use with the most.",
		[]string{"tenant"}, nil, metrics.ALPHA, "")
	tenantStorage = metrics.NewDesc("espalier_tenant_storage_bytes", "Bytes that a tenant has in etcd, for the ten tenants in use with the most.",
		[]string{"tenant"}, nil, metrics.ALPHA, "")
)

// topTenants is how many tenants have series.
const topTenants = 10

// collector reads the metrics of the server that was started last: the registry
// belongs to the process, and `espalier serve` has one server.
type collector struct {
	metrics.BaseStableCollector
	of atomic.Pointer[observed]
}

// observed is what is read of a server.
type observed struct {
	version   string
	current   func() bool
	backend   *store.Backend
	elsewhere []*override
	serving   *servingCertificate // nil if a caller of the library has its own
	clients   dynamiccertificates.CAContentProvider
	proxies   dynamiccertificates.CAContentProvider // nil without
	tenants   *tenants.Set                          // nil without tenants

	etcdClient, etcdCA string // files; empty if there is none
}

var (
	collected       = &collector{}
	registerMetrics = sync.OnceFunc(func() { legacyregistry.CustomMustRegister(collected) })
)

// observe has the metrics read of a server, until the function is called.
func observe(s *Server, o *Options, c *genericapiserver.Config) (end func()) {
	registerMetrics()
	now := &observed{version: o.Version, current: s.joined.Current, backend: s.backend, elsewhere: s.elsewhere, clients: s.controlPlane.identity.ClientCA, tenants: s.signals.tenants}
	if proxy := s.controlPlane.identity.RequestHeader; proxy != nil {
		now.proxies = proxy.CAContentProvider
	}
	now.etcdClient, now.etcdCA = o.Etcd.StorageConfig.Transport.CertFile, o.Etcd.StorageConfig.Transport.TrustedCAFile
	now.serving, _ = c.SecureServing.Cert.(*servingCertificate)
	collected.of.Store(now)
	return func() { collected.of.CompareAndSwap(now, nil) }
}

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{buildInfo, replicaCurrent, etcdFull, certificateExpiry, certificateRefused, tenantsInUse, tenantRequests, tenantStorage} {
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
	for _, one := range o.elsewhere {
		one.backend.CountObjects(context.Background())
	}
	gauge := func(d *metrics.Desc, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	gauge(buildInfo, 1, o.version, build.This().Commit, runtime.Version())
	gauge(replicaCurrent, number(o.current()))
	gauge(etcdFull, number(o.backend.OutOfSpace()))
	if o.tenants != nil {
		gauge(tenantsInUse, float64(o.tenants.Active()))
		busiest, largest := o.tenants.Top(topTenants)
		for _, one := range busiest {
			ch <- metrics.NewLazyConstMetric(tenantRequests, metrics.CounterValue, float64(one.Requests), one.Name)
		}
		for _, one := range largest {
			gauge(tenantStorage, float64(one.Usage.Bytes), one.Name)
		}
	}
	if o.serving != nil {
		content, _ := o.serving.CurrentCertKeyContent()
		if at, ok := firstExpiry(content, 1); ok {
			gauge(certificateExpiry, at, "serving")
		}
		gauge(certificateRefused, number(o.serving.refused.Load()))
	}
	expiry := func(use string, pem []byte, n int) {
		if at, ok := firstExpiry(pem, n); ok {
			gauge(certificateExpiry, at, use)
		}
	}
	if o.clients != nil {
		expiry("client-ca", o.clients.CurrentCABundleContent(), 0)
	}
	if o.proxies != nil {
		expiry("requestheader-client-ca", o.proxies.CurrentCABundleContent(), 0)
	}
	expiry("etcd-client", certificateFile(o.etcdClient), 1)
	expiry("etcd-ca", certificateFile(o.etcdCA), 0)
}

// maxCertificateFile bounds what is read of a file of certificates at a scrape.
const maxCertificateFile = 1 << 20

// certificateFile returns what a file has now: the connections to etcd read the certificate
// again whenever they connect. It is empty if there is none.
func certificateFile(path string) []byte {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxCertificateFile))
	if err != nil {
		return nil
	}
	return text
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
