package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Options configure Check.
type Options struct {
	// Enable turns on checks that are off by default, Disable turns off others.
	Enable, Disable []finding.ID
	// CompatibilityVersion is the Kubernetes version, such as "1.36", whose
	// functions rules may use; see [github.com/espalier-dev/espalier/crd/cel.CheckOptions].
	CompatibilityVersion string
}

// Check returns the advice about a CRD, in the order of the document. It
// fails if the options name an unknown check.
func Check(d *crd.CRD, o Options) ([]finding.Finding, error) {
	on, err := enabled(o)
	if err != nil {
		return nil, err
	}
	c := &checker{crd: d, doc: crdtree.Doc(d), options: o, on: on}
	c.run()
	slices.SortStableFunc(c.found, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Check, b.Check))
	})
	return c.found, nil
}

func enabled(o Options) (map[finding.ID]bool, error) {
	on := make(map[finding.ID]bool, len(Checks))
	for _, r := range Checks {
		on[r.ID] = r.Default
	}
	for _, list := range []struct {
		ids []finding.ID
		to  bool
	}{{o.Enable, true}, {o.Disable, false}} {
		for _, id := range list.ids {
			if _, known := on[id]; !known {
				return nil, fmt.Errorf("unknown check %q", id)
			}
			on[id] = list.to
		}
	}
	return on, nil
}

// checker looks at one CRD.
type checker struct {
	crd     *crd.CRD
	doc     *jsondoc.Doc
	options Options
	on      map[finding.ID]bool
	found   []finding.Finding
	bytes   int // of found
	fixes   []proposal

	version *crd.Version // the one whose schema is being looked at
	shift   int          // from offsets in its schema to those in the CRD
	path    string       // of its schema
	demands demands      // of its schemas
	weight  uint64       // what its rules may cost at most
	heavy   bool         // one of them alone may cost much
}

func (c *checker) run() {
	schemas := make([]*syntax.Schema, len(c.crd.Versions))
	seen := map[string]int{} // by pointer: versions of v1beta1 share a schema
	for i := range c.crd.Versions {
		v := &c.crd.Versions[i]
		if v.Schema == nil {
			continue
		}
		if first, ok := seen[v.Pointer]; ok {
			schemas[i] = schemas[first]
			continue
		}
		s := crdtree.Parse(v)
		if len(s.Problems) > 0 {
			continue // refused by every server, and said so elsewhere
		}
		seen[v.Pointer], schemas[i] = i, s.Tree
		c.version, c.path, c.shift = v, pathOf(v.Pointer), s.Shift
		c.demands, c.weight, c.heavy = demands{}, 0, false
		c.schema(s.Tree)
		c.costs()
		c.prove()
	}
	c.versions(schemas)
}

// maxBytes bounds the texts of findings: each has a path, which hostile nesting
// makes as long as the document.
const maxBytes = 16 << 20

// add reports a finding about something in the CRD.
// It returns the finding's number, or -1 if the check is off.
func (c *checker) add(check finding.ID, path, pointer string, offset int, detail, fix string) int {
	if !c.on[check] || c.bytes > maxBytes {
		return -1
	}
	c.bytes += len(path) + len(pointer) + len(detail) + len(fix)
	c.found = append(c.found, finding.Finding{
		Check: check, Severity: severities[check], Path: path, Detail: detail, Fix: fix, Pointer: pointer, Offset: offset,
	})
	return len(c.found) - 1
}

// at reports a finding about a keyword of a schema, or the schema itself if
// keyword is empty.
func (c *checker) at(check finding.ID, n *node, keyword, detail, fix string) int {
	if !c.on[check] || c.bytes > maxBytes {
		return -1
	}
	path, pointer := n.place(c.path, c.version.Pointer)
	offset := n.schema.Offset
	if keyword != "" {
		path, pointer = path+"."+keyword, pointer+"/"+keyword
		offset = n.schema.At(keyword)
	}
	return c.add(check, path, pointer, c.shift+offset, detail, fix)
}

// atRule reports a finding about an expression.
func (c *checker) atRule(check finding.ID, n *node, index, offset int, detail, fix string) int {
	if !c.on[check] || c.bytes > maxBytes {
		return -1
	}
	path, pointer := n.place(c.path, c.version.Pointer)
	i := strconv.Itoa(index)
	return c.add(check, path+".x-kubernetes-validations["+i+"].rule", pointer+"/x-kubernetes-validations/"+i+"/rule",
		c.shift+offset, detail, fix)
}

// pathOf turns a pointer outside schemas into a field path.
func pathOf(pointer string) string {
	var b []byte
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			b = append(append(append(b, '['), token...), ']')
			continue
		}
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = append(b, token...)
	}
	return string(b)
}
