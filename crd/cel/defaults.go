package cel

import (
	"bytes"
	"slices"
	"strings"

	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// defaultsRun evaluates rules on the defaults of a schema. They share one
// budget.
type defaultsRun struct {
	root      *plan.Node
	remaining int64
	found     []finding.Finding
}

// checkDefaults reports the rules that defaults of a schema violate: taken as
// new values, and as ones that stay what they are.
func checkDefaults(root *plan.Node, defaults []compile.Default) ([]finding.Finding, error) {
	r := defaultsRun{root: root, remaining: celconfig.RuntimeCELCostBudget}
	if err := r.all(defaults); err != nil {
		return nil, err
	}
	return r.found, nil
}

// all checks defaults until the budget is exceeded.
func (r *defaultsRun) all(defaults []compile.Default) error {
	for i := range defaults {
		if err := r.check(&defaults[i]); err != nil {
			return err
		}
		if r.remaining < 0 {
			break
		}
	}
	return nil
}

func (r *defaultsRun) check(d *compile.Default) error {
	n := d.In(r.root)
	if n == nil || n.Flags&plan.RulesBelow == 0 {
		return nil
	}
	set, err := compilePart(n, d.Resource)
	if err != nil {
		return err
	}
	value, err := sorted(d.Value)
	if err != nil {
		return err
	}
	before := len(r.found)
	left, err := r.run(set, d, value, value)
	if err == nil && len(r.found) == before {
		var alone int64
		alone, err = r.run(set, d, value, nil)
		left = min(left, alone)
	}
	r.remaining = left
	return err
}

// run evaluates the rules once and returns what is left of the budget.
func (r *defaultsRun) run(rules *set, d *compile.Default, value, old []byte) (int64, error) {
	doc, err := jsondoc.Parse(value, jsondoc.Limits{})
	if err != nil {
		return 0, err
	}
	defer doc.Release()
	run := exec.RuleRun{Node: rules.root, Doc: doc}
	if old != nil {
		if run.Old, err = jsondoc.Parse(old, jsondoc.Limits{}); err != nil {
			return 0, err
		}
		defer run.Old.Release()
	}
	e := new(evaluation)
	e.begin(rules, &run)
	e.attempt(true, r.remaining)
	for _, v := range run.Errors {
		r.found = append(r.found, finding.Finding{
			Check: RuleDefault, Type: v.Type, Path: below(d.Path(), v.Path), BadValue: v.BadValue, Detail: v.Detail,
			Pointer: d.Pointer(), Offset: d.Schema.Default.Offset,
		})
	}
	return e.remaining, nil
}

// below appends a path in a default to the path of the default.
func below(path, rest string) string {
	switch {
	case rest == "<nil>":
		return path
	case strings.HasPrefix(rest, "["):
		return path + rest
	}
	return path + "." + rest
}

// sorted returns a document with the keys of its objects sorted and everything
// else as it is: numbers must stay as they are written.
func sorted(src []byte) ([]byte, error) {
	d, err := jsondoc.Parse(src, jsondoc.Limits{})
	if err != nil {
		return nil, err
	}
	defer d.Release()
	return appendSorted(make([]byte, 0, len(src)), d, jsondoc.Root), nil
}

func appendSorted(dst []byte, d *jsondoc.Doc, v jsondoc.Value) []byte {
	switch d.Kind(v) {
	case jsondoc.Array:
		dst = append(dst, '[')
		for i, c := range d.Items(v) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendSorted(dst, d, c)
		}
		return append(dst, ']')
	case jsondoc.Object:
		var keys []jsondoc.Value
		for m := range d.Members(v) {
			keys = append(keys, m.Key)
		}
		slices.SortFunc(keys, func(a, b jsondoc.Value) int { return bytes.Compare(d.Key(a), d.Key(b)) })
		dst = append(dst, '{')
		for i, k := range keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(dst, d.Raw(k)...), ':')
			dst = appendSorted(dst, d, k+1)
		}
		return append(dst, '}')
	}
	return append(dst, d.Raw(v)...)
}
