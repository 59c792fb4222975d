package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

type costOptions struct {
	format     string
	kubernetes string
	top        int
}

func newCost(a *App) *cobra.Command {
	var o costOptions
	cmd := &cobra.Command{
		Use:   "cost FILE|DIR|-...",
		Short: "Estimate the cost of CEL rules, and show which bounds reduce it",
		Long: `Cost shows the API server's estimate of the maximum cost of each CEL rule, the
most expensive first, and compares it with the limits per rule and per version.
For each rule it shows what causes the cost, and which bound on a list, map or
string would reduce it.

Exit codes: 0 within the limits, 1 over a limit, 2 could not run.`,
		Example: a.Example(`
  # Show the ten most expensive rules
  %[1]s cost config/crd

  # Write all of them as JSON
  %[1]s cost crd.yaml --top 0 -o json`),
	}
	takesFiles(cmd, func(ctx context.Context, files []string) error { return a.cost(ctx, files, o) })
	cmd.Flags().StringVarP(&o.format, "output", "o", "text", "output format: text or json")
	cmd.Flags().IntVar(&o.top, "top", 10, "number of expressions to show, 0 for all")
	cmd.Flags().StringVar(&o.kubernetes, "kubernetes", "", "the version of Kubernetes, such as 1.34, whose CEL functions rules may use (default: the newest known)")
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// costReport is what the command shows.
type costReport struct {
	RuleLimit   uint64           `json:"ruleLimit"`   // for one expression
	SchemaLimit uint64           `json:"schemaLimit"` // for all of a version
	Versions    []versionCost    `json:"versions"`
	Expressions []expressionCost `json:"expressions"`
}

// versionCost is what all expressions of a version may cost.
type versionCost struct {
	File        string `json:"file"`
	Object      string `json:"object"`
	Version     string `json:"version"`
	Expressions int    `json:"expressions"`
	Total       uint64 `json:"total"`
	Over        bool   `json:"over"`
	Errors      int    `json:"errors"` // in the CRD, other than about cost
	// Bounds is the smallest set of bounds that was found with which all expressions keep
	// all limits, and After what they cost then. Both are only there if a limit is exceeded
	// and such a set exists.
	Bounds []boundCost `json:"bounds,omitempty"`
	After  uint64      `json:"after,omitempty"`

	exceeds bool // a limit
}

// expressionCost is what a rule or messageExpression may cost.
type expressionCost struct {
	report.Place
	Object     string      `json:"object"`
	Version    string      `json:"version"`
	Path       string      `json:"path"`
	Expression string      `json:"expression"`
	Cost       uint64      `json:"cost"`
	Times      uint64      `json:"times"`
	Total      uint64      `json:"total"`
	Over       bool        `json:"over"`
	Parts      []partCost  `json:"parts"`
	Bounds     []boundCost `json:"bounds"`
}

type partCost struct {
	What   string `json:"what"`
	Line   int    `json:"line"` // in the expression
	Column int    `json:"column"`
	Cost   uint64 `json:"cost"`
}

// boundCost is a bound to add, and the total with it and those before it.
type boundCost struct {
	Keyword string `json:"keyword"`
	Path    string `json:"path"`
	Value   uint64 `json:"value"`
	Why     string `json:"why"` // what shows that no real value is larger
	Total   uint64 `json:"total"`
}

func boundCosts(list []cel.Bound) []boundCost {
	costs := make([]boundCost, 0, len(list))
	for _, b := range list {
		costs = append(costs, boundCost{b.Keyword, b.Path, b.Value, b.Why, b.Total})
	}
	return costs
}

func (a *App) cost(ctx context.Context, files []string, o costOptions) error {
	if o.format != "text" && o.format != "json" {
		return fmt.Errorf("there is no output format %q for cost: use text or json", o.format)
	}
	if err := checkKubernetes(o.kubernetes); err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	c := &costing{options: o}
	r, err := a.scan(ctx, files, s, false, c.document)
	if err != nil {
		return err
	}
	if len(r.Diagnostics) > 0 {
		d := &r.Diagnostics[0]
		return fmt.Errorf("%s:%d:%d: %s", d.File, d.Line, d.Column, d.Message)
	}
	if len(r.Subjects) == 0 {
		return fmt.Errorf("no CustomResourceDefinition in %s", strings.Join(files, ", "))
	}
	c.sort()
	if o.format == "json" {
		err = a.costJSON(c)
	} else {
		err = a.costText(c)
	}
	if err == nil && c.over() {
		return errFindings
	}
	return err
}

// costing collects costs, from several files at a time.
type costing struct {
	options costOptions
	sync.Mutex
	versions    []versionCost
	expressions []expressionCost
}

func (c *costing) document(d *manifest.Document, into *findings) {
	meta := typeMetaOf(d)
	if !meta.isCRD() {
		return
	}
	object := meta.object()
	into.subject(d, object)
	parsed, err := crd.Parse(d.JSON)
	if err != nil {
		into.add(unreadable(d, err))
		return
	}
	defer parsed.Release()
	errs, err := c.errors(parsed)
	if err != nil {
		into.add(unreadable(d, err))
		return
	}
	seen := map[string]bool{} // versions of v1beta1 share a schema
	for i := range parsed.Versions {
		v := &parsed.Versions[i]
		if v.Schema == nil || seen[v.Pointer] {
			continue
		}
		seen[v.Pointer] = true
		o := cel.CheckOptions{Path: schemaPath(v.Pointer), CompatibilityVersion: c.options.kubernetes}
		list, err := cel.Costs(v.Schema, o)
		var remedy *cel.Remedy
		if err == nil {
			remedy, err = cel.Remedies(v.Schema, o)
		}
		if err != nil {
			into.add(unreadable(d, err))
			return
		}
		c.add(d, object, v, list, remedy, errs)
	}
}

// errors counts the errors of a CRD other than those about cost. CEL rules with
// errors have no cost.
func (c *costing) errors(d *crd.CRD) (int, error) {
	found, err := crd.Validate(d, crd.ValidateOptions{CompatibilityVersion: c.options.kubernetes})
	n := 0
	for _, f := range found {
		if f.Severity == finding.Error && f.Check != cel.RuleCost && f.Check != cel.RuleTotalCost {
			n++
		}
	}
	return n, err
}

// schemaPath turns the pointer of a schema into a path of the API server's form.
func schemaPath(pointer string) string {
	var b strings.Builder
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if _, err := strconv.Atoi(token); err == nil {
			b.WriteString("[" + token + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
	}
	return b.String()
}

func (c *costing) add(d *manifest.Document, object string, v *crd.Version, list []cel.Cost, remedy *cel.Remedy, errs int) {
	all := versionCost{File: d.File.Name, Object: object, Version: v.Name, Expressions: len(list), Errors: errs}
	var expressions []expressionCost
	for i := range list {
		x := &list[i]
		e := expressionCost{
			Place: report.At(d.File, d.Of(v.Offset+x.Offset)), Object: object, Version: v.Name, Path: x.Path, Expression: literal(v.Schema[x.Offset:]),
			Cost: x.Cost, Times: x.Times, Total: x.Total, Over: x.Total > cel.MaxRuleCost,
			Parts: []partCost{}, Bounds: boundCosts(x.Bounds),
		}
		for _, p := range x.Parts {
			e.Parts = append(e.Parts, partCost{p.What, p.Line, p.Column, p.Cost})
		}
		if all.Total += x.Total; all.Total < x.Total {
			all.Total = ^uint64(0)
		}
		expressions = append(expressions, e)
	}
	all.Over = all.Total > cel.MaxSchemaCost
	if all.exceeds = remedy != nil; all.exceeds && len(remedy.Bounds) > 0 {
		all.Bounds, all.After = boundCosts(remedy.Bounds), remedy.After
	}
	c.Lock()
	defer c.Unlock()
	c.versions = append(c.versions, all)
	c.expressions = append(c.expressions, expressions...)
}

// literal decodes the JSON string that raw begins with.
func literal(raw []byte) string {
	for i := 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			var s string
			if err := json.Unmarshal(raw[:i+1], &s); err != nil {
				return ""
			}
			return s
		}
	}
	return "" // the offset of an expression is that of a string
}

// sort puts the most expensive first.
func (c *costing) sort() {
	slices.SortFunc(c.versions, func(a, b versionCost) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.File, b.File), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Version, b.Version))
	})
	slices.SortFunc(c.expressions, func(a, b expressionCost) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
}

func (c *costing) over() bool {
	return slices.ContainsFunc(c.versions, func(v versionCost) bool { return v.Over }) ||
		slices.ContainsFunc(c.expressions, func(e expressionCost) bool { return e.Over })
}

// shown returns the expressions that were asked for.
func (c *costing) shown() []expressionCost {
	if n := c.options.top; n > 0 && n < len(c.expressions) {
		return c.expressions[:n]
	}
	return c.expressions
}

func (a *App) costJSON(c *costing) error {
	r := costReport{cel.MaxRuleCost, cel.MaxSchemaCost, c.versions, c.shown()}
	if r.Versions == nil {
		r.Versions = []versionCost{}
	}
	if r.Expressions == nil {
		r.Expressions = []expressionCost{}
	}
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}
