package deploy

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"sigs.k8s.io/yaml"
)

var promqlParser = parser.NewParser(parser.Options{})

// A ruleTest is a test of promtool's format, as far as it is used here.
type ruleTest struct {
	Name     string         `json:"name"`
	Interval model.Duration `json:"interval"`
	Series   []struct {
		Series string `json:"series"`
		Values string `json:"values"`
	} `json:"input_series"`
	Queries []struct {
		Expr    string         `json:"expr"`
		Time    model.Duration `json:"eval_time"`
		Samples []struct {
			Labels string  `json:"labels"`
			Value  float64 `json:"value"`
		} `json:"exp_samples"`
	} `json:"promql_expr_test"`
}

type ruleTests struct {
	Files    []string       `json:"rule_files"`
	Interval model.Duration `json:"evaluation_interval"`
	Order    []string       `json:"group_eval_order"`
	Tests    []ruleTest     `json:"tests"`
}

func readRuleTests(t *testing.T) ruleTests {
	t.Helper()
	var file ruleTests
	if err := yaml.UnmarshalStrict(read(t, "prometheus/rules_test.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	return file
}

// loadRules has Prometheus read the rules, to evaluate them over a storage.
func loadRules(t *testing.T, engine *promql.Engine, data storage.Storage) []*rules.Group {
	t.Helper()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, data), Appendable: data, Queryable: data, Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: promqlParser,
	})
	byName, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, rulesFile)
	for _, err := range errs {
		t.Fatal(err)
	}
	var groups []*rules.Group
	for _, g := range byName {
		groups = append(groups, g)
		for _, r := range g.Rules() {
			if a, ok := r.(*rules.AlertingRule); ok {
				a.SetRestored(true) // there is no former process whose alerts it would have to find
			}
		}
	}
	// Prometheus evaluates groups side by side; here what alerts read is recorded first, so that a test has no luck in it.
	order := readRuleTests(t).Order
	slices.SortFunc(groups, func(a, b *rules.Group) int { return slices.Index(order, a.Name()) - slices.Index(order, b.Name()) })
	for _, g := range groups {
		if !slices.Contains(order, g.Name()) {
			t.Fatalf("the group %s has no place in the order of the tests", g.Name())
		}
	}
	return groups
}

// alerts are the alerting rules of the file.
func alerts(groups []*rules.Group) []*rules.AlertingRule {
	var found []*rules.AlertingRule
	for _, g := range groups {
		for _, r := range g.Rules() {
			if a, ok := r.(*rules.AlertingRule); ok {
				found = append(found, a)
			}
		}
	}
	return found
}

func query(ctx context.Context, engine *promql.Engine, data storage.Queryable, expr string, at time.Time) (promql.Vector, error) {
	q, err := engine.NewInstantQuery(ctx, data, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	switch v := result.Value.(type) {
	case promql.Vector:
		return slices.Clone(v), nil
	case promql.Scalar:
		return promql.Vector{{T: v.T, F: v.V}}, nil
	}
	return nil, fmt.Errorf("%s gives a %s", expr, result.Value.Type())
}

// Series in, alerts out. Every alert fires in some test, and with a text that is whole.
func TestRules(t *testing.T) {
	file := readRuleTests(t)
	fired := map[string]bool{}
	for _, test := range file.Tests {
		t.Run(test.Name, func(t *testing.T) { test.run(t, time.Duration(file.Interval), fired) })
	}
	loader, err := promqltest.NewLazyLoader("load 1m\n", promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer loader.Close()
	loader.WithSamplesTill(time.Unix(0, 0), func(error) {})
	for _, a := range alerts(loadRules(t, loader.QueryEngine(), loader.Storage())) {
		if !fired[a.Name()] {
			t.Errorf("%s fires in no test", a.Name())
		}
	}
}

func (test ruleTest) run(t *testing.T, step time.Duration, fired map[string]bool) {
	var load strings.Builder
	fmt.Fprintf(&load, "load %s\n", test.Interval)
	var end time.Duration
	for _, s := range test.Series {
		fmt.Fprintf(&load, "  %s %s\n", s.Series, s.Values)
	}
	for _, q := range test.Queries {
		end = max(end, time.Duration(q.Time))
	}
	loader, err := promqltest.NewLazyLoader(load.String(), promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	if err != nil {
		t.Fatal(err)
	}
	defer loader.Close()
	groups := loadRules(t, loader.QueryEngine(), loader.Storage())
	zero := time.Unix(0, 0).UTC()
	for at := zero; !at.After(zero.Add(end)); at = at.Add(step) {
		loader.WithSamplesTill(at, func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		})
		for _, g := range groups {
			g.Eval(loader.Context(), at)
			for _, r := range g.Rules() {
				if err := r.LastError(); err != nil {
					t.Fatalf("%s: %v", r.Name(), err)
				}
			}
		}
		for _, a := range alerts(groups) {
			for _, active := range a.ActiveAlerts() {
				if active.State == rules.StateFiring && !fired[a.Name()] {
					fired[a.Name()] = true
					wholeText(t, a.Name(), active.Annotations)
				}
			}
		}
	}
	for _, q := range test.Queries {
		got, err := query(loader.Context(), loader.QueryEngine(), loader.Queryable(), q.Expr, zero.Add(time.Duration(q.Time)))
		if err != nil {
			t.Fatal(err)
		}
		var want promql.Vector
		for _, s := range q.Samples {
			metric, err := promqlParser.ParseMetric(s.Labels)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, promql.Sample{Metric: metric, F: s.Value})
		}
		if a, b := lines(got), lines(want); a != b {
			t.Errorf("%s at %s:\n%swant:\n%s", q.Expr, q.Time, a, b)
		}
	}
}

// lines are samples as text, sorted; the last digits of a float do not count.
func lines(v promql.Vector) string {
	var all []string
	for _, s := range v {
		all = append(all, fmt.Sprintf("  %s %v\n", s.Metric, math.Round(s.F*1e9)/1e9))
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// wholeText fails if a template did not find what it names.
func wholeText(t *testing.T, alert string, annotations labels.Labels) {
	t.Helper()
	annotations.Range(func(l labels.Label) {
		if strings.Contains(l.Value, "<error") || strings.Contains(l.Value, "<no value>") || strings.Contains(l.Value, "  ") || strings.Contains(l.Value, "%!") {
			t.Errorf("%s: %s: %q", alert, l.Name, l.Value)
		}
	})
}

var camel = regexp.MustCompile(`^Espalier[A-Z][A-Za-z]+$`)

// An alert says what is wrong and what to do.
func TestAlertsSayWhatToDo(t *testing.T) {
	loader, err := promqltest.NewLazyLoader("load 1m\n", promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer loader.Close()
	found := alerts(loadRules(t, loader.QueryEngine(), loader.Storage()))
	names := map[string]bool{}
	for _, a := range found {
		if names[a.Name()] || !camel.MatchString(a.Name()) {
			t.Errorf("%s: there is another of this name, or it is no name", a.Name())
		}
		names[a.Name()] = true
		if s := a.Labels().Get("severity"); s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", a.Name(), s)
		}
		for _, name := range []string{"summary", "description", "action"} {
			if text := a.Annotations().Get(name); !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s is no sentence: %q", a.Name(), name, text)
			}
		}
	}
	// Alerts name each other.
	for _, a := range found {
		for _, other := range regexp.MustCompile(`\bEspalier[A-Z]\w+`).FindAllString(a.Annotations().Get("action"), -1) {
			if !names[other] {
				t.Errorf("%s: there is no alert %s", a.Name(), other)
			}
		}
	}
}
