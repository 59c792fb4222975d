package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/finding"
)

// nearly is how much of a quota may be used.
const nearly = 0.9

// health looks at /readyz, and at the version.
func (e *examination) health(ctx context.Context) error {
	text, err := cluster.Run(ctx, e.from, "", "get", "--raw", "/version")
	if err != nil {
		return err
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if json.Unmarshal(text, &version) == nil {
		e.mu.Lock()
		e.report.Version = plain(version.GitVersion)
		e.mu.Unlock()
	}
	said := ""
	text, err = cluster.Run(ctx, e.from, "", "get", "--raw", "/readyz?verbose")
	switch said = string(text); {
	case err == nil:
	case strings.Contains(err.Error(), "[-]"): // kubectl has the answer in its error
		said = err.Error()
	default:
		return err
	}
	for line := range strings.Lines(strings.ReplaceAll(said, `\n`, "\n")) {
		if at := strings.Index(line, "[-]"); at >= 0 {
			e.add(Finding{Check: "not-ready", Severity: finding.Error, Where: "/readyz", Message: strings.TrimSpace(line[at+3:]),
				Why: "Load balancers send no requests to a server that is not ready.", Fix: "see the log of the server; /readyz?verbose shows the reason to system:masters and system:monitoring"})
		}
		if warning, ok := strings.CutPrefix(line, "[!]"); ok {
			e.add(Finding{Check: "ready-warning", Severity: finding.Warning, Where: "/readyz", Message: strings.TrimSpace(warning),
				Why: "The server serves, with a restriction.", Fix: "see \"What to watch\" in docs/guides/production.md"})
		}
	}
	return nil
}

// apiServices looks at which aggregated APIs are not available.
func (e *examination) apiServices(ctx context.Context) error {
	type apiService struct {
		Metadata metadata `json:"metadata"`
		Status   struct {
			Conditions conditions `json:"conditions"`
		} `json:"status"`
	}
	return each(ctx, e, "/apis/apiregistration.k8s.io/v1/apiservices", func(a *apiService) {
		if status, text := a.Status.Conditions.of("Available"); status != "" && status != "True" {
			e.add(Finding{Check: "apiservice-unavailable", Severity: finding.Error, Where: "APIService " + a.Metadata.Name, Message: "it is not available: " + text,
				Why: "Requests for its group fail, discovery is slow, and namespaces are not deleted.", Fix: "repair the server behind it, or delete the APIService"})
		}
	})
}

// quotas looks at which are nearly used up.
func (e *examination) quotas(ctx context.Context) error {
	type quota struct {
		Metadata metadata `json:"metadata"`
		Status   struct {
			Hard, Used map[string]resource.Quantity
		} `json:"status"`
	}
	return each(ctx, e, "/api/v1/resourcequotas", func(q *quota) {
		for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
			hard, used := q.Status.Hard[name], q.Status.Used[name]
			if hard.Sign() <= 0 || used.AsApproximateFloat64() < nearly*hard.AsApproximateFloat64() {
				continue
			}
			e.add(Finding{Check: "quota", Severity: finding.Warning, Where: "ResourceQuota " + q.Metadata.Namespace + "/" + q.Metadata.Name, Message: fmt.Sprintf("%s of %s of %s are used", used.String(), hard.String(), name),
				Why: "When a quota is used up, the server refuses to create more.", Fix: "delete what is not needed, or raise spec.hard"})
		}
	})
}

// namespaces looks for deletions that do not end.
func (e *examination) namespaces(ctx context.Context) error {
	type namespace struct {
		Metadata metadata `json:"metadata"`
		Status   struct {
			Conditions conditions `json:"conditions"`
		} `json:"status"`
	}
	return each(ctx, e, "/api/v1/namespaces", func(n *namespace) {
		at := n.Metadata.DeletionTimestamp
		if at == nil || e.now.Sub(*at) < stuck {
			return
		}
		var said []string
		for _, c := range n.Status.Conditions {
			if c.Status == "True" {
				said = append(said, c.Message)
			}
		}
		e.add(Finding{Check: "namespace-terminating", Severity: finding.Warning, Where: "Namespace " + n.Metadata.Name, Message: fmt.Sprintf("it has been deleted for %s: %s", about(e.now.Sub(*at)), strings.Join(said, "; ")),
			Why: "Objects in it have finalizers, or cannot be listed.", Fix: "remove what holds the objects; do not remove the finalizer of the namespace"})
	})
}

// leaders are the leases of the controllers that a control plane needs.
var leaders = []string{"espalier-controllers", "kube-controller-manager", "kube-scheduler"}

// leases looks for controllers without a leader.
func (e *examination) leases(ctx context.Context) error {
	type lease struct {
		Metadata metadata `json:"metadata"`
		Spec     struct {
			Holder   string    `json:"holderIdentity"`
			Renewed  time.Time `json:"renewTime"`
			Duration int       `json:"leaseDurationSeconds"`
		} `json:"spec"`
	}
	return each(ctx, e, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", func(l *lease) {
		if !slices.Contains(leaders, l.Metadata.Name) {
			return
		}
		// The clocks may differ: as much again, and a minute.
		if late := e.now.Sub(l.Spec.Renewed); late > 2*time.Duration(l.Spec.Duration)*time.Second+time.Minute {
			e.add(Finding{Check: "no-leader", Severity: finding.Error, Where: "Lease " + l.Metadata.Namespace + "/" + l.Metadata.Name, Message: fmt.Sprintf("%s has not renewed it for %s", l.Spec.Holder, about(late)),
				Why: "No replica runs these controllers: nothing is collected, no namespace is deleted, no quota is counted.", Fix: "see the log of the replicas; if etcd is full or slow, repair it first"})
		}
	})
}

// tenants compares the largest tenants with their quotas.
func (e *examination) tenants(ctx context.Context) error {
	m, err := e.metrics.read(ctx, e.from)
	if err != nil {
		return err
	}
	for _, s := range m["espalier_tenant_storage_bytes"] {
		name := s.Labels["tenant"]
		text, err := cluster.Run(ctx, e.from, "", "get", "tenants.v1alpha1.espalier.dev", "-o", "json", "--", name)
		if err != nil {
			return err
		}
		var tenant struct {
			Spec struct {
				Storage *resource.Quantity `json:"storage"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(text, &tenant); err != nil {
			return err
		}
		limit := float64(500 << 20) // the default
		if tenant.Spec.Storage != nil {
			limit = tenant.Spec.Storage.AsApproximateFloat64()
		}
		if s.Value >= nearly*limit {
			e.add(Finding{Check: "tenant-quota", Severity: finding.Warning, Where: "Tenant " + name, Message: fmt.Sprintf("%s of %s are used", bytesText(s.Value), bytesText(limit)),
				Why: "When its storage is used up, the server refuses writes of the tenant.", Fix: "delete what the tenant does not need, or raise spec.storage of the tenant"})
		}
	}
	return nil
}
