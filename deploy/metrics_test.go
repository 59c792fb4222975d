package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/util/teststorage"
)

// unseen are selections that find nothing in the test, with the reason. The metric and its labels are looked at all the same.
var unseen = map[string]string{
	`apiserver_watch_cache_consistent_read_total{job="espalier",success="false"}`: "the cache must lag for three seconds behind an etcd that answers; only a busy machine does that",
	`espalier_etcd_alarm{job="espalier"}`:                                         "etcd must be full or corrupt; TestFullEtcdAtRestart in server has an etcd that is full",
}

// A dashboard is what Grafana reads, as far as it is looked at here.
type dashboard struct {
	UID         string
	Panels      []panel
	Annotations struct{ List []target }
	Templating  struct {
		List []struct{ Name, Definition string }
	}
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Targets     []target
	FieldConfig struct{ Defaults struct{ Unit string } }
}

type target struct{ RefID, Name, Expr, LegendFormat, TitleFormat string }

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, dashboardFile), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Panels have names, units and places of their own.
func TestDashboardIsInOrder(t *testing.T) {
	d := readDashboard(t)
	ids, titles, cells := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.Title == "" {
			t.Errorf("the panel %d, %q, is there twice or has no name", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Type != "row" && (len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "") {
			t.Errorf("%s has no query or no unit", p.Title)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is wider than the page", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := cells[[2]int{x, y}]; ok {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
	if len(d.Panels) < 30 || d.UID != "espalier" {
		t.Errorf("%d panels in %q: not the dashboard", len(d.Panels), d.UID)
	}
}

// A question is a query, where it is from, and the labels that texts take from its answer.
type question struct {
	where, expr string
	labels      []string
}

var (
	legendLabel   = regexp.MustCompile(`{{\s*(\w+)\s*}}`)
	templateLabel = regexp.MustCompile(`\$labels\.(\w+)`)
	grafana       = strings.NewReplacer("$job", "espalier", "$instance", ".*", "$__rate_interval", "5m")
)

func find(pattern *regexp.Regexp, text string) []string {
	var names []string
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// questions are those of the dashboard.
func (d dashboard) questions() []question {
	var all []question
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			all = append(all, question{"dashboard: " + p.Title, grafana.Replace(q.Expr), find(legendLabel, q.LegendFormat)})
		}
	}
	for _, a := range d.Annotations.List {
		all = append(all, question{"dashboard: " + a.Name, grafana.Replace(a.Expr), find(legendLabel, a.TitleFormat)})
	}
	return all
}

// scrapes holds what a server has exported at several times, as Prometheus would have stored it.
type scrapes struct {
	*testing.T
	data   *teststorage.TestStorage
	engine *promql.Engine
	last   time.Time
	series map[string]map[string]bool // the labels that each metric has
}

// add stores an answer of /metrics, 30 seconds after the one before.
func (s *scrapes) add(text []byte) {
	s.Helper()
	s.last = s.last.Add(30 * time.Second)
	parsed, err := textparse.New(text, "text/plain; version=0.0.4", nil, textparse.ParserOptions{})
	if err != nil {
		s.Fatal(err)
	}
	app := s.data.Appender(s.Context())
	put := func(l labels.Labels, value float64) {
		b := labels.NewBuilder(l)
		b.Set("job", "espalier").Set("instance", "127.0.0.1:6443")
		l = b.Labels()
		if _, err := app.Append(0, l, s.last.UnixMilli(), value); err != nil {
			s.Fatal(err)
		}
		names := s.series[l.Get(model.MetricNameLabel)]
		if names == nil {
			names = map[string]bool{}
			s.series[l.Get(model.MetricNameLabel)] = names
		}
		l.Range(func(l labels.Label) { names[l.Name] = true })
	}
	put(labels.FromStrings(model.MetricNameLabel, "up"), 1) // Prometheus' own
	for {
		entry, err := parsed.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.Fatal(err)
		}
		if entry == textparse.EntrySeries {
			var l labels.Labels
			_, _, value := parsed.Series()
			parsed.Labels(&l)
			put(l, value)
		}
	}
	if err := app.Commit(); err != nil {
		s.Fatal(err)
	}
}

// learn notes the labels of what a rule has recorded.
func (s *scrapes) learn(name string) {
	s.Helper()
	result, err := s.ask(fmt.Sprintf(`{__name__=%q}`, name))
	if err != nil {
		s.Fatal(err)
	}
	names := map[string]bool{model.MetricNameLabel: true}
	for _, sample := range result {
		sample.Metric.Range(func(l labels.Label) { names[l.Name] = true })
	}
	s.series[name] = names
}

// ask evaluates a query.
func (s *scrapes) ask(expr string) (promql.Vector, error) {
	return query(s.Context(), s.engine, s.data, expr, s.last)
}

// check fails unless a question is about metrics and labels that are there, and has an answer.
func (s *scrapes) check(q question) {
	expr, err := promqlParser.ParseExpr(q.expr)
	if err != nil {
		s.Errorf("%s: %v", q.where, err)
		return
	}
	answered := true
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			answered = s.checkSelector(q.where, n) && answered
		case *parser.AggregateExpr:
			s.checkGrouping(q.where, n)
		}
		return nil
	})
	for _, part := range withoutConditions(expr) {
		result, err := s.ask(part.String())
		switch {
		case err != nil:
			s.Errorf("%s: %v", q.where, err)
		case len(result) == 0 && answered:
			s.Errorf("%s: no answer to %s", q.where, part)
		}
	}
	s.checkText(q, expr, answered)
}

// checkSelector sees that a metric, the labels that it is selected by, and what they select are there. It says whether something is.
func (s *scrapes) checkSelector(where string, n *parser.VectorSelector) bool {
	names, ok := s.series[n.Name]
	if !ok {
		s.Errorf("%s: the server does not export %s", where, n.Name)
		return false
	}
	for _, m := range n.LabelMatchers {
		if !names[m.Name] {
			s.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
		}
	}
	selector := *n
	selector.Offset, selector.OriginalOffset = 0, 0
	result, err := s.ask(selector.String())
	if err != nil {
		s.Errorf("%s: %v", where, err)
		return false
	}
	if _, excused := unseen[selector.String()]; len(result) == 0 && !excused {
		s.Errorf("%s: nothing is selected by %s", where, &selector)
	} else if len(result) != 0 && excused {
		s.Errorf("%s: %s selects something; take it off the list", where, &selector)
	}
	return len(result) != 0
}

// checkGrouping sees that what is kept of labels is on every metric below.
func (s *scrapes) checkGrouping(where string, n *parser.AggregateExpr) {
	parser.Inspect(n.Expr, func(node parser.Node, _ []parser.Node) error {
		if v, ok := node.(*parser.VectorSelector); ok {
			for _, name := range n.Grouping {
				if names, ok := s.series[v.Name]; ok && !names[name] {
					s.Errorf("%s: %s has no label %s to sum by", where, v.Name, name)
				}
			}
		}
		return nil
	})
}

// checkText sees that the labels that a text shows are in the answer.
func (s *scrapes) checkText(q question, expr parser.Expr, answered bool) {
	if !answered || len(q.labels) == 0 {
		return
	}
	// Each part of a condition has the labels, but for constants.
	parts := withoutConditions(expr)
	result, err := s.ask(parts[0].String())
	if err != nil || len(result) == 0 {
		return // said already
	}
	for _, name := range q.labels {
		if !slices.ContainsFunc(result, func(sample promql.Sample) bool { return sample.Metric.Has(name) }) {
			s.Errorf("%s: the text shows the label %s, and no answer has it", q.where, name)
		}
	}
}

// withoutConditions takes comparisons and `and` and `or` apart: what is compared has an answer when all is well, the comparison has none.
func withoutConditions(expr parser.Expr) []parser.Expr {
	switch n := expr.(type) {
	case *parser.ParenExpr:
		return withoutConditions(n.Expr)
	case *parser.BinaryExpr:
		if n.Op.IsComparisonOperator() || n.Op == parser.LAND {
			return append(withoutConditions(n.LHS), withoutConditions(n.RHS)...)
		}
		if n.Op == parser.LOR {
			if _, constant := n.RHS.(*parser.Call); !constant { // not `or vector(0)`
				return []parser.Expr{n.LHS} // which of the two there is, is a matter of the load
			}
		}
	case *parser.Call:
		if n.Func.Name == "absent" {
			return withoutConditions(n.Args[0])
		}
	}
	return []parser.Expr{expr}
}

// Every query of the rules and of the dashboard is about what a server exports, and finds something.
func TestQueriesFindMetrics(t *testing.T) {
	l := newLoad(t)
	l.run()
	s := &scrapes{T: t, data: teststorage.New(t), last: time.Unix(1_000_000, 0), series: map[string]map[string]bool{},
		engine: promqltest.NewTestEngine(t, false, 5*time.Minute, 50_000_000)}
	prometheus := l.environment.client(t, "metrics")
	for range 3 {
		text, err := get(prometheus, l.server.url+"/metrics")
		if err != nil {
			t.Fatal(err)
		}
		s.add(text)
		l.some()
	}
	l.stopWatching()

	groups := loadRules(t, s.engine, s.data)
	for _, g := range groups {
		g.Eval(t.Context(), s.last)
		for _, r := range g.Rules() {
			if err := r.LastError(); err != nil {
				t.Errorf("%s: %v", r.Name(), err)
			}
		}
	}
	var all []question
	for _, g := range groups {
		for _, r := range g.Rules() {
			if a, ok := r.(*rules.AlertingRule); ok {
				all = append(all, question{"alert: " + a.Name(), a.Query().String(), find(templateLabel, a.Annotations().String())})
				continue
			}
			all = append(all, question{where: "rule: " + r.Name(), expr: r.Query().String()})
			s.learn(r.Name())
		}
	}
	all = append(all, readDashboard(t).questions()...)
	for _, q := range all {
		s.check(q)
	}
	if len(all) < 80 {
		t.Errorf("%d queries only", len(all))
	}
}
