package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/cmd/internal/scrape"
)

type topOptions struct {
	from     cluster.Source
	interval time.Duration
	lines    int
	output   string
}

func newTop(a *App) *cobra.Command {
	o := topOptions{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what clients do on a server, and what it costs",
		Long: `Top reads the metrics of a server twice, and shows what happened between: requests by
resource and verb, by flow schema (which tells clients apart), watches, objects by
resource, calls of admission webhooks, and on an Espalier server the tenants with the most
requests and bytes. Memory is that of the process: metrics do not divide it by resource;
the number of objects of a resource, and their size where the server tells it, say where
it goes.

Metrics are of the replica that answers. If both readings come from different replicas,
rates are wrong: name one replica in the kubeconfig. Objects are counted once a minute.

Top uses kubectl and its kubeconfig, and needs the right to read /metrics, which the group
system:monitoring has. It works with kube-apiserver, too.

Exit codes: 0 shown, 2 could not run.`,
		Example: a.Example(`
  # What happens in ten seconds
  %[1]s top

  # Five minutes, of each kind the twenty with the most, for a program
  %[1]s top --interval 5m --lines 20 -o json`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.top(cmd.Context(), &o) },
	}
	cmd.Flags().StringVar(&o.from.Context, "context", "", "the context of the kubeconfig (default: the current one)")
	cmd.Flags().StringVar(&o.from.Kubeconfig, "kubeconfig", "", "the kubeconfig (default: kubectl's)")
	cmd.Flags().DurationVar(&o.interval, "interval", 10*time.Second, "the time between both readings; 0 reads once, and shows totals since the server started")
	cmd.Flags().IntVar(&o.lines, "lines", 10, "how many lines each table has")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "output format: text or json")
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(textAndJSON, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// The metrics that top reads.
const (
	requestTotal    = "apiserver_request_total"
	requestDuration = "apiserver_request_duration_seconds"
	webhookDuration = "apiserver_admission_webhook_admission_duration_seconds"
)

var (
	counters = []string{requestTotal, requestDuration + "_bucket", webhookDuration + "_bucket", webhookDuration + "_count", webhookDuration + "_sum", "apiserver_admission_webhook_rejection_count", "apiserver_admission_webhook_fail_open_count",
		"apiserver_flowcontrol_dispatched_requests_total", "apiserver_flowcontrol_rejected_requests_total", "apiserver_watch_events_total", "espalier_tenant_requests_total", "process_cpu_seconds_total"}
	gauges = []string{"apiserver_longrunning_requests", "apiserver_resource_objects", "apiserver_storage_objects", "apiserver_resource_size_estimate_bytes", "apiserver_storage_size_bytes",
		"espalier_tenant_storage_bytes", "process_resident_memory_bytes", "go_goroutines", "process_start_time_seconds"}
)

// load is what top shows. Rates are per second, or totals if there was one reading.
type load struct {
	SchemaVersion int            `json:"schemaVersion"`
	Seconds       float64        `json:"seconds"` // between both readings; 0 if there was one
	Process       processLoad    `json:"process"`
	Requests      []requestLoad  `json:"requests"`
	Clients       []clientLoad   `json:"flowSchemas"`
	Watches       []watchLoad    `json:"watches"`
	Objects       []objectsLoad  `json:"objects"`
	Webhooks      []webhookLoad  `json:"webhooks"`
	Tenants       []tenantLoad   `json:"tenants,omitempty"`
	former, grown scrape.Metrics // read before, and what has changed since
}

type processLoad struct {
	Memory     float64 `json:"memoryBytes"`
	CPU        float64 `json:"cpuCores"`
	Goroutines float64 `json:"goroutines"`
	Etcd       float64 `json:"etcdBytes"`
}

type requestLoad struct {
	Resource string   `json:"resource"`
	Verb     string   `json:"verb"`
	Rate     float64  `json:"rate"`
	Errors   float64  `json:"errors"` // 5xx and 429
	P99      *float64 `json:"p99Seconds,omitempty"`
}

type clientLoad struct {
	Schema  string  `json:"flowSchema"`
	Rate    float64 `json:"rate"`
	Refused float64 `json:"refused"`
}

type watchLoad struct {
	Resource string  `json:"resource"`
	Open     float64 `json:"open"`
	Events   float64 `json:"events"`
}

type objectsLoad struct {
	Resource string  `json:"resource"`
	Objects  float64 `json:"objects"`
	Bytes    float64 `json:"bytes,omitempty"` // as the server estimates
}

type webhookLoad struct {
	Name   string   `json:"name"`
	Rate   float64  `json:"rate"`
	Mean   float64  `json:"meanSeconds"`
	P99    *float64 `json:"p99Seconds,omitempty"`
	Failed float64  `json:"failed"`
}

type tenantLoad struct {
	Name  string  `json:"name"`
	Rate  float64 `json:"rate"`
	Bytes float64 `json:"bytes"`
}

// top reads the metrics, waits, reads them again, and prints the difference.
func (a *App) top(ctx context.Context, o *topOptions) error {
	switch {
	case o.output != "text" && o.output != "json":
		return fmt.Errorf("--output is text or json, not %q", o.output)
	case o.interval < 0 || o.lines < 1:
		return errors.New("--interval must not be negative, and --lines must be at least 1")
	}
	now, err := readMetrics(ctx, o.from)
	if err != nil {
		return err
	}
	l := &load{SchemaVersion: 1, former: scrape.Metrics{}}
	if o.interval > 0 {
		began := time.Now()
		bar := a.progress(int(o.interval/time.Second), "seconds")
		for rest := o.interval; rest > 0; rest = o.interval - time.Since(began) {
			select {
			case <-ctx.Done():
				bar.stop()
				return context.Cause(ctx)
			case <-time.After(min(rest, time.Second)):
				bar.add(1)
			}
		}
		bar.stop()
		l.former, l.Seconds = now, time.Since(began).Seconds()
		if now, err = readMetrics(ctx, o.from); err != nil {
			return err
		}
	}
	one := func(m scrape.Metrics) float64 { v, _ := m.Value("process_start_time_seconds"); return v }
	if l.Seconds > 0 && one(now) != one(l.former) {
		fmt.Fprintln(a.Err, "warning: both readings are of different processes, because a load balancer chose another replica or the server restarted: rates are wrong. Name one replica in the kubeconfig")
	}
	l.fill(now, o.lines)
	if o.output == "json" {
		return writeJSON(a.Out, l)
	}
	_, err = io.WriteString(a.Out, l.text())
	return err
}

// readMetrics reads what top needs.
func readMetrics(ctx context.Context, from cluster.Source) (m scrape.Metrics, err error) {
	err = cluster.Receive(ctx, from, "/metrics", func(r io.Reader) (err error) {
		m, err = scrape.Read(r, func(name string) bool { return slices.Contains(counters, name) || slices.Contains(gauges, name) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of the %s failed: %w", from, err)
	}
	return m, nil
}

// resourceName is a resource with its group.
func resourceName(s scrape.Sample) string {
	name := s.Labels["resource"]
	if group := s.Labels["group"]; group != "" {
		name += "." + group
	}
	if sub := s.Labels["subresource"]; sub != "" {
		name += "/" + sub
	}
	return oneLine(cmp.Or(name, "(no resource)"))
}

// fill makes the tables, each with the lines that have the most.
func (l *load) fill(now scrape.Metrics, lines int) {
	l.grown = now.Since(l.former)
	per := func(n float64) float64 {
		if l.Seconds > 0 {
			return n / l.Seconds
		}
		return n
	}
	value := func(m scrape.Metrics, name string, labels ...string) float64 {
		v, _ := m.Value(name, labels...)
		return v
	}
	l.Process = processLoad{value(now, "process_resident_memory_bytes"), per(value(l.grown, "process_cpu_seconds_total")), value(now, "go_goroutines"), value(now, "apiserver_storage_size_bytes")}

	for _, s := range l.grown.Sum(requestTotal, "group", "resource", "subresource", "verb") {
		if s.Value == 0 {
			continue
		}
		labels := []string{"group", s.Labels["group"], "resource", s.Labels["resource"], "subresource", s.Labels["subresource"], "verb", s.Labels["verb"]}
		failed := 0.0
		for _, code := range l.grown[requestTotal] {
			if c := code.Labels["code"]; (c == "429" || strings.HasPrefix(c, "5")) && code.Has(labels...) {
				failed += code.Value
			}
		}
		l.Requests = append(l.Requests, requestLoad{resourceName(s), s.Labels["verb"], per(s.Value), per(failed), finite(l.grown.Quantile(0.99, requestDuration, labels...))})
	}
	l.Requests = most(l.Requests, lines, func(r requestLoad) float64 { return r.Rate })

	for _, s := range l.grown.Sum("apiserver_flowcontrol_dispatched_requests_total", "flow_schema") {
		l.Clients = append(l.Clients, clientLoad{oneLine(s.Labels["flow_schema"]), per(s.Value), per(value(l.grown, "apiserver_flowcontrol_rejected_requests_total", "flow_schema", s.Labels["flow_schema"]))})
	}
	l.Clients = most(l.Clients, lines, func(c clientLoad) float64 { return c.Rate + c.Refused })

	watches := scrape.Metrics{}
	for _, s := range now["apiserver_longrunning_requests"] {
		if s.Labels["verb"] == "WATCH" {
			watches["open"] = append(watches["open"], s)
		}
	}
	for _, s := range watches.Sum("open", "group", "resource") {
		l.Watches = append(l.Watches, watchLoad{resourceName(s), s.Value, per(value(l.grown, "apiserver_watch_events_total", "group", s.Labels["group"], "resource", s.Labels["resource"]))})
	}
	l.Watches = most(l.Watches, lines, func(w watchLoad) float64 { return w.Open })

	counted := "apiserver_resource_objects"
	if len(now[counted]) == 0 {
		counted = "apiserver_storage_objects" // before Kubernetes 1.34; its resources have the group in their name
	}
	for _, s := range now.Sum(counted, "group", "resource") {
		l.Objects = append(l.Objects, objectsLoad{resourceName(s), s.Value, max(0, value(now, "apiserver_resource_size_estimate_bytes", "group", s.Labels["group"], "resource", s.Labels["resource"]))})
	}
	l.Objects = most(l.Objects, lines, func(o objectsLoad) float64 { return o.Objects })

	for _, s := range l.grown.Sum(webhookDuration+"_count", "name") {
		name := s.Labels["name"]
		w := webhookLoad{Name: oneLine(name), Rate: per(s.Value), P99: finite(l.grown.Quantile(0.99, webhookDuration, "name", name))}
		if s.Value > 0 {
			w.Mean = value(l.grown, webhookDuration+"_sum", "name", name) / s.Value
		}
		for _, rejection := range l.grown["apiserver_admission_webhook_rejection_count"] {
			if rejection.Has("name", name) && rejection.Labels["error_type"] != "no_error" {
				w.Failed += per(rejection.Value)
			}
		}
		w.Failed += per(value(l.grown, "apiserver_admission_webhook_fail_open_count", "name", name))
		l.Webhooks = append(l.Webhooks, w)
	}
	l.Webhooks = most(l.Webhooks, lines, func(w webhookLoad) float64 { return w.Mean })

	names := map[string]bool{}
	for _, metric := range []string{"espalier_tenant_requests_total", "espalier_tenant_storage_bytes"} {
		for _, s := range now[metric] {
			name := s.Labels["tenant"]
			if !names[name] {
				names[name] = true
				l.Tenants = append(l.Tenants, tenantLoad{oneLine(name), per(value(l.grown, "espalier_tenant_requests_total", "tenant", name)), value(now, "espalier_tenant_storage_bytes", "tenant", name)})
			}
		}
	}
	l.Tenants = most(l.Tenants, lines, func(t tenantLoad) float64 { return t.Rate })
}

// most returns those with the highest figures, the highest first.
func most[T any](all []T, n int, by func(T) float64) []T {
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(by(b), by(a)) })
	return append([]T{}, all[:min(n, len(all))]...)
}

// finite is a figure, or nil if there is none that JSON has.
func finite(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// text is a load for people.
func (l *load) text() string {
	var b strings.Builder
	rate := "/s"
	if l.Seconds > 0 {
		fmt.Fprintf(&b, "%.0f s: ", l.Seconds)
	} else {
		rate = "total"
		b.WriteString("since the server started: ")
	}
	fmt.Fprintf(&b, "memory %s, ", size(l.Process.Memory))
	if l.Seconds > 0 {
		fmt.Fprintf(&b, "CPU %.2f cores, ", l.Process.CPU)
	}
	fmt.Fprintf(&b, "%.0f goroutines, etcd %s\n", l.Process.Goroutines, size(l.Process.Etcd))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	table := func(n int, heading string, row func(i int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(w, "\n%s\n", heading)
		for i := range n {
			fmt.Fprintln(w, row(i))
		}
		_ = w.Flush()
	}
	table(len(l.Requests), "REQUESTS\tVERB\t"+rate+"\tFAILED\tP99", func(i int) string {
		r := l.Requests[i]
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", r.Resource, r.Verb, figure(r.Rate), figure(r.Errors), upTo(r.P99))
	})
	table(len(l.Clients), "FLOW SCHEMA\t"+rate+"\tREFUSED", func(i int) string {
		c := l.Clients[i]
		return fmt.Sprintf("%s\t%s\t%s", c.Schema, figure(c.Rate), figure(c.Refused))
	})
	table(len(l.Watches), "WATCHES\tOPEN\tEVENTS "+rate, func(i int) string {
		x := l.Watches[i]
		return fmt.Sprintf("%s\t%.0f\t%s", x.Resource, x.Open, figure(x.Events))
	})
	table(len(l.Objects), "OBJECTS\tCOUNT\tSIZE", func(i int) string {
		o := l.Objects[i]
		text := "-"
		if o.Bytes > 0 {
			text = size(o.Bytes)
		}
		return fmt.Sprintf("%s\t%.0f\t%s", o.Resource, o.Objects, text)
	})
	table(len(l.Webhooks), "WEBHOOK\t"+rate+"\tFAILED\tMEAN\tP99", func(i int) string {
		x := l.Webhooks[i]
		return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", x.Name, figure(x.Rate), figure(x.Failed), seconds(x.Mean), upTo(x.P99))
	})
	table(len(l.Tenants), "TENANT\t"+rate+"\tSIZE", func(i int) string {
		t := l.Tenants[i]
		return fmt.Sprintf("%s\t%s\t%s", t.Name, figure(t.Rate), size(t.Bytes))
	})
	return b.String()
}

func figure(n float64) string {
	if n == math.Trunc(n) {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.2f", n)
}

func seconds(n float64) string {
	return time.Duration(n * float64(time.Second)).Round(100 * time.Microsecond).String()
}

// upTo is a quantile: the bound of a bucket.
func upTo(p *float64) string {
	if p == nil {
		return "-"
	}
	return "≤" + seconds(*p)
}

// size is a number of bytes.
func size(n float64) string { return fmt.Sprintf("%.1f MiB", n/(1<<20)) }
