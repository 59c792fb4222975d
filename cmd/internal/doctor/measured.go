package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/cmd/internal/scrape"
	"github.com/espalier-dev/espalier/finding"
)

// wanted are the metrics that the examination reads.
func wanted(name string) bool {
	return strings.HasPrefix(name, "espalier_") || name == "apiserver_admission_webhook_rejection_count" || name == "apiserver_admission_webhook_fail_open_count" ||
		name == "apiserver_admission_webhook_admission_duration_seconds_bucket" || name == "apiserver_audit_error_total"
}

// metricsOnce reads the metrics once for all steps.
type metricsOnce struct {
	once sync.Once
	all  scrape.Metrics
	err  error
	ours bool // the server is Espalier's; known after read
}

// read returns the metrics of the replica that answers.
func (m *metricsOnce) read(ctx context.Context, from cluster.Source) (scrape.Metrics, error) {
	m.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		m.err = cluster.Receive(ctx, from, "/metrics", func(r io.Reader) (err error) {
			m.all, err = scrape.Read(r, wanted)
			return err
		})
		m.ours = len(m.all["espalier_build_info"]) > 0
	})
	return m.all, m.err
}

// calls returns how many calls of webhooks have failed since the server started.
func (e *examination) calls(ctx context.Context) map[string]float64 {
	failed := map[string]float64{}
	m, err := e.metrics.read(ctx, e.from)
	if err != nil {
		return failed // measured says so
	}
	for _, s := range m["apiserver_admission_webhook_rejection_count"] {
		if s.Labels["error_type"] != "no_error" {
			failed[s.Labels["name"]] += s.Value
		}
	}
	for _, s := range m.Sum("apiserver_admission_webhook_fail_open_count", "name") {
		failed[s.Labels["name"]] += s.Value
	}
	return failed
}

// slow is how long a webhook may take, in seconds.
const slow = 1.0

// measured looks at the metrics of the replica that answers.
func (e *examination) measured(ctx context.Context) error {
	m, err := e.metrics.read(ctx, e.from)
	if err != nil {
		return err
	}
	for _, s := range m.Sum("apiserver_admission_webhook_admission_duration_seconds_bucket", "name") {
		if p99 := m.Quantile(0.99, "apiserver_admission_webhook_admission_duration_seconds", "name", s.Labels["name"]); p99 > slow {
			e.add(Finding{Check: "webhook-slow", Severity: finding.Warning, Where: "webhook " + s.Labels["name"], Message: fmt.Sprintf("one call in a hundred takes %v s or longer, since the server started", p99),
				Why: "Each request that it matches waits for it.", Fix: "find out why it is slow, or narrow its rules; espalier top shows its calls now"})
		}
	}
	for _, s := range m["apiserver_audit_error_total"] {
		if s.Value > 0 {
			e.add(Finding{Check: "audit-lost", Severity: finding.Warning, Where: "audit log, " + s.Labels["plugin"], Message: fmt.Sprintf("%.0f audit events were lost since the server started", s.Value),
				Why: "The audit log is incomplete.", Fix: "check the disk of --audit-log-path, or the webhook of --audit-webhook-config-file"})
		}
	}
	if !e.metrics.ours {
		e.skip("etcd", "the server is not Espalier's: its metrics do not tell quota, alarms and members of etcd; see etcdctl endpoint status --cluster")
		return nil
	}
	e.etcd(m)
	e.files(m)
	if v, ok := m.Value("espalier_replica_current"); ok && v == 0 {
		e.add(Finding{Check: "replica-lease", Severity: finding.Warning, Where: "the replica", Message: "it has no valid lease in etcd",
			Why: "It asks etcd before every request, which is slow.", Fix: "see whether etcd is full or slow"})
	}
	for _, s := range m["espalier_storage_unreadable_objects"] {
		if s.Value > 0 {
			e.add(Finding{Check: "unreadable-objects", Severity: finding.Error, Where: strings.TrimSuffix(s.Labels["resource"]+"."+s.Labels["group"], "."), Message: fmt.Sprintf("%.0f objects in etcd cannot be read", s.Value),
				Why: "Lists leave them out, or fail.", Fix: "the log of the server names them and the reason; see \"An object that cannot be read\" in docs/guides/production.md"})
		}
	}
	return nil
}

// etcd looks at the members that the replica uses.
func (e *examination) etcd(m scrape.Metrics) {
	versions := map[string]bool{}
	for _, s := range m["espalier_etcd_member_info"] {
		versions[s.Labels["version"]] = true
	}
	if len(versions) > 1 {
		e.add(Finding{Check: "etcd-versions", Severity: finding.Info, Where: "etcd", Message: fmt.Sprintf("members have %d different versions", len(versions)),
			Why: "That is right during an upgrade only.", Fix: "finish the upgrade of etcd"})
	}
	if v, _ := m.Value("espalier_etcd_out_of_space"); v > 0 {
		e.add(Finding{Check: "etcd-full", Severity: finding.Error, Where: "etcd", Message: "etcd is out of space, and refuses writes",
			Why: "Nothing can be created or changed; reads and deletes work.", Fix: "see \"When etcd is full\" in docs/guides/production.md"})
	}
	for _, s := range m["espalier_etcd_alarm"] {
		e.add(Finding{Check: "etcd-alarm", Severity: finding.Error, Where: "etcd " + s.Labels["endpoint"], Message: "it has the alarm " + s.Labels["alarm"],
			Why: "With NOSPACE etcd refuses writes; with CORRUPT a member has other data than the others.", Fix: "NOSPACE: see \"When etcd is full\" in docs/guides/production.md; CORRUPT: etcdctl endpoint hashkv --cluster, and replace the member that differs"})
	}
	for _, s := range m["espalier_etcd_member_usable"] {
		endpoint := s.Labels["endpoint"]
		if s.Value == 0 {
			e.add(Finding{Check: "etcd-member", Severity: finding.Error, Where: "etcd " + endpoint, Message: "the member does not answer the server, or knows no leader",
				Why: "Without a majority of members nothing can be read or written.", Fix: "check the member and the network to it: etcdctl endpoint status --cluster"})
		}
		size, _ := m.Value("espalier_etcd_database_bytes", "endpoint", endpoint)
		used, _ := m.Value("espalier_etcd_database_used_bytes", "endpoint", endpoint)
		quota, _ := m.Value("espalier_etcd_quota_bytes", "endpoint", endpoint)
		const much, most, waste = 0.8, 0.95, 512 << 20
		switch {
		case quota > 0 && size >= much*quota:
			severity := finding.Warning
			if size >= most*quota {
				severity = finding.Error
			}
			e.add(Finding{Check: "etcd-quota", Severity: severity, Where: "etcd " + endpoint, Message: fmt.Sprintf("its database has %s of %s; %s are in use", bytesText(size), bytesText(quota), bytesText(used)),
				Why: "When the quota is used up, all writes fail.", Fix: "delete what is not needed (espalier top shows what there is most of), defragment, or raise --quota-backend-bytes to at most 8 GiB"})
		case size-used > waste && used < size/2:
			e.add(Finding{Check: "etcd-fragmented", Severity: finding.Info, Where: "etcd " + endpoint, Message: fmt.Sprintf("its database has %s, and %s of it are in use", bytesText(size), bytesText(used)),
				Why: "Free space in the file counts against the quota.", Fix: "etcdctl defrag, one member at a time"})
		}
	}
}

// files looks at the certificates that the replica has in use.
func (e *examination) files(m scrape.Metrics) {
	flags := map[string]string{"client-ca": "--client-ca-file", "requestheader-client-ca": "--requestheader-client-ca-file", "etcd-client": "--etcd-certfile", "etcd-ca": "--etcd-cafile"}
	for _, s := range m["espalier_certificate_expiration_timestamp_seconds"] {
		flag, ok := flags[s.Labels["use"]]
		if !ok {
			continue // the connection has shown the serving certificate
		}
		at := time.Unix(int64(s.Value), 0)
		left := at.Sub(e.now)
		f := Finding{Check: "server-file-expires", Severity: finding.Warning, Where: flag, Message: fmt.Sprintf("a certificate expires in %s, at %s", about(left), stamp(at)),
			Why: "When it has expired, clients, or the connections to etcd, are refused.", Fix: "renew the certificate in the file"}
		if left <= 0 {
			f.Check, f.Severity, f.Message = "server-file-expired", finding.Error, "a certificate expired at "+stamp(at)
		}
		if left < soon {
			e.add(f)
		}
	}
	if v, _ := m.Value("espalier_serving_certificate_refused"); v > 0 {
		e.add(Finding{Check: "serving-certificate-refused", Severity: finding.Error, Where: "--tls-cert-file", Message: "the file has a certificate that the server does not use: it has expired, or does not match its key",
			Why: "The server keeps the former certificate, until that expires or the server is restarted.", Fix: "put a valid certificate and its key into the files"})
	}
}

// bytesText is a size for people.
func bytesText(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; n >= 1024 && i < len(units)-1; i++ {
		n /= 1024
	}
	return fmt.Sprintf("%.4g %s", n, units[i])
}
