package conversion

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apifield "k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

const (
	// Annotation of a CRD holds its conversion rules.
	Annotation = "conversion.espalier.dev/rules"
	// Preserved is the annotation of an object that holds the values of its other versions that its version cannot
	// hold.
	Preserved = "conversion.espalier.dev/preserved"
)

// The checks of this package.
const (
	invalidID    finding.ID = "conversion-rules-invalid"
	incompleteID finding.ID = "conversion-rules-incomplete"
)

// Checks is the table of all checks.
var Checks = []finding.Check{
	finding.New(invalidID, finding.Error, "Conversion rules must name fields of both versions, and connect all versions of the CRD.", "Espalier, docs/guides/conversion.md"),
	finding.New(incompleteID, finding.Error, "Conversion rules must convert, preserve or declare lost each field of both versions.", "Espalier, docs/guides/conversion.md"),
}

// Plan converts objects between the versions of a CRD. It is immutable, and safe for concurrent use.
type Plan struct {
	group    string
	versions []string
	// apiVersions are those of the versions, as JSON.
	apiVersions []string
	// next has the direction of the first step from one version to another.
	next map[string]map[string]*direction
}

// maxFields bounds the fields of all versions that rules convert.
const maxFields = 200_000

// Compile reads the conversion rules of a CRD. It returns nil if the CRD has none, and no plan if there are findings.
func Compile(d *crd.CRD) (*Plan, []finding.Finding, error) {
	text, ok := d.Annotations[Annotation]
	if !ok {
		return nil, nil, nil
	}
	c := &compiler{crd: d, plan: &Plan{group: d.Group, next: map[string]map[string]*direction{}}}
	c.locate()
	doc, err := parseRules(text)
	if err != nil {
		c.invalid("%v", err)
		return nil, c.found, nil
	}
	var fields int
	for i := range doc.Conversions {
		fields += c.conversion(i, &doc.Conversions[i])
		if fields > maxFields {
			c.invalid("the versions have more than %d fields", maxFields)
			return nil, c.found, nil
		}
	}
	c.connect()
	if len(c.found) > 0 {
		return nil, c.found, nil
	}
	for i := range d.Versions {
		c.plan.versions = append(c.plan.versions, d.Versions[i].Name)
		c.plan.apiVersions = append(c.plan.apiVersions, string(jsondoc.AppendString(nil, d.Group+"/"+d.Versions[i].Name)))
	}
	return c.plan, nil, nil
}

// compiler makes a plan.
type compiler struct {
	crd    *crd.CRD
	plan   *Plan
	edges  []edge
	found  []finding.Finding
	offset int
}

type edge struct{ forth, back *direction }

// maxFindings bounds the findings, whose texts have paths.
const maxFindings = 100

func (c *compiler) add(id finding.ID, detail, fix string) {
	if len(c.found) >= maxFindings {
		return
	}
	c.found = append(c.found, finding.Finding{
		Check: id, Type: apifield.ErrorTypeInvalid, Path: "metadata.annotations[" + Annotation + "]", BadValue: "", Detail: detail, Fix: fix,
		Pointer: "/metadata/annotations/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(Annotation), Offset: c.offset,
	})
}

func (c *compiler) invalid(format string, args ...any) {
	c.add(invalidID, fmt.Sprintf(format, args...), "")
}

// locate finds the annotation in the document.
func (c *compiler) locate() {
	doc := crdtree.Doc(c.crd)
	at := jsondoc.Root
	for _, name := range []string{"metadata", "annotations", Annotation} {
		v, ok := doc.Get(at, name)
		if !ok {
			return
		}
		at = v
	}
	c.offset = doc.Offset(at)
}

// conversion compiles the rules between two versions. It returns how many fields these have.
func (c *compiler) conversion(i int, r *conversion) int {
	where := fmt.Sprintf("conversions[%d]", i)
	if len(r.Between) != 2 || r.Between[0] == r.Between[1] {
		c.invalid("%s: between must name two different versions", where)
		return 0
	}
	p := &pairing{}
	for side, name := range r.Between {
		v := c.crd.Version(name)
		if v == nil {
			c.invalid("%s: the CRD has no version %q", where, name)
			return 0
		}
		s := crdtree.Parse(v)
		if s.Tree == nil || len(s.Problems) > 0 {
			c.invalid("%s: version %q has no valid schema", where, name)
			return 0
		}
		p.sides[side] = newSide(name, s.Tree)
	}
	before := len(c.found)
	p.report = func(format string, args ...any) { c.invalid(where+": "+format, args...) }
	c.pair(where, r, p)
	if len(c.found) == before {
		c.lower(p)
	}
	return p.sides[0].fields + p.sides[1].fields
}

// pair decides what becomes of each field.
func (c *compiler) pair(where string, r *conversion, p *pairing) {
	a, b := p.sides[0], p.sides[1]
	p.pair(a.root, b.root)
	a.root.partner, b.root.partner = b.root, a.root
	for i := range r.Rules {
		if err := p.rule(&r.Rules[i]); err != nil {
			c.invalid("%s.rules[%d]: %v", where, i, err)
		}
	}
	c.declare(where, r, p)
	p.nested()
	p.mates(a.root, b.root)
	p.inContext()
	for _, s := range p.sides {
		if len(p.groups) > 0 {
			each(s.root, func(f *field) {
				if f.name == groupsKey {
					c.invalid("%s: %s of %s has the name %q, which conversion itself uses", where, f.path(), s.version, groupsKey)
				}
			})
		}
	}
	p.keepNotes()
	all := r.Preserve != nil && r.Preserve.all
	var open []missing
	for side, s := range p.sides {
		open = p.account(side, s.root, all, open)
	}
	for _, m := range open {
		version, other := p.sides[m.side].version, p.sides[1-m.side].version
		c.add(incompleteID, fmt.Sprintf("%s: %s of %s is not converted to %s, preserved or declared lost", where, m.field.path(), version, other), p.propose(m, open))
	}
	settle(a.root)
	settle(b.root)
	a.root.same, b.root.same = false, false
}

// declare applies preserve and lost.
func (c *compiler) declare(where string, r *conversion, p *pairing) {
	mark := func(word string, paths map[string][]string, to fate) {
		for version, list := range paths {
			side := slices.Index(r.Between, version)
			if side < 0 {
				c.invalid("%s.%s: the version must be %s or %s, not %q", where, word, r.Between[0], r.Between[1], version)
				continue
			}
			for _, path := range list {
				f, err := p.claim(side, path)
				if err != nil {
					c.invalid("%s.%s: %v", where, word, err)
					continue
				}
				if f.entry() {
					c.invalid("%s.%s: %s of %s has no place in the list or map without its value: write %s", where, word, f.path(), version, f.parent.path())
					continue
				}
				f.fate = to
			}
		}
	}
	if r.Preserve != nil {
		mark("preserve", r.Preserve.paths, preserved)
	}
	mark("lost", r.Lost, lost)
}

// lower makes the directions of a conversion.
func (c *compiler) lower(p *pairing) {
	forth, outputs := p.lower(0)
	back, backward := p.lower(1)
	for f, o := range outputs {
		o.back = backward[f.mate]
		o.back.back = o
	}
	forth.back, back.back = back, forth
	for _, d := range []*direction{forth, back} {
		d.apiVersion = string(jsondoc.AppendString(nil, c.crd.Group+"/"+d.target))
	}
	c.edges = append(c.edges, edge{forth, back})
}

// connect finds the way between each pair of versions.
func (c *compiler) connect() {
	if len(c.found) > 0 {
		return
	}
	near := map[string][]*direction{}
	for _, e := range c.edges {
		near[e.forth.source] = append(near[e.forth.source], e.forth)
		near[e.back.source] = append(near[e.back.source], e.back)
	}
	if len(c.edges) >= len(c.crd.Versions) {
		c.invalid("there are %d conversions between %d versions: there must be one way between each two versions", len(c.edges), len(c.crd.Versions))
		return
	}
	for i := range c.crd.Versions {
		start := c.crd.Versions[i].Name
		first := map[string]*direction{}
		for queue := []string{start}; len(queue) > 0; queue = queue[1:] {
			for _, d := range near[queue[0]] {
				if d.target == start || first[d.target] != nil {
					continue
				}
				if first[d.target] = first[queue[0]]; queue[0] == start {
					first[d.target] = d
				}
				queue = append(queue, d.target)
			}
		}
		for j := range c.crd.Versions {
			if to := c.crd.Versions[j].Name; i < j && first[to] == nil {
				c.invalid("no conversion connects version %s with %s: add one with between: [%s, %s]", start, to, start, to)
			}
		}
		c.plan.next[start] = first
	}
}

// Versions returns the versions of the CRD.
func (p *Plan) Versions() []string { return slices.Clone(p.versions) }

// Convert appends object in the given version to dst, as canonical JSON.
func (p *Plan) Convert(dst, object []byte, version string) ([]byte, error) {
	if !slices.Contains(p.versions, version) {
		return dst, fmt.Errorf("conversion failed: the CRD has no version %q", version)
	}
	doc, err := jsondoc.Parse(object, jsondoc.Limits{})
	if err != nil {
		return dst, fmt.Errorf("conversion failed: %w", err)
	}
	defer func() { doc.Release() }()
	for {
		from, err := p.versionOf(doc)
		if err != nil {
			return dst, err
		}
		if from == version {
			return doc.AppendCanonical(dst, jsondoc.Root), nil
		}
		d := p.next[from][version]
		if d.target == version {
			out, err := d.convert(dst, doc)
			if err != nil {
				return dst, named(doc, d, err)
			}
			return out, nil
		}
		between, err := d.convert(nil, doc)
		if err != nil {
			return dst, named(doc, d, err)
		}
		doc.Release()
		if doc, err = jsondoc.Parse(between, jsondoc.Limits{}); err != nil {
			doc = &jsondoc.Doc{}
			return dst, fmt.Errorf("conversion failed: %w", err)
		}
	}
}

// versionOf returns the version that an object is in.
func (p *Plan) versionOf(doc *jsondoc.Doc) (string, error) {
	v, ok := doc.Get(jsondoc.Root, "apiVersion")
	if !ok || doc.Kind(v) != jsondoc.String {
		return "", errors.New("conversion failed: the object has no apiVersion")
	}
	raw := doc.Raw(v)
	for i, apiVersion := range p.apiVersions {
		if string(raw) == apiVersion {
			return p.versions[i], nil
		}
	}
	apiVersion := doc.Text(v)
	version, ok := strings.CutPrefix(apiVersion, p.group+"/")
	if !ok || !slices.Contains(p.versions, version) {
		return "", fmt.Errorf("conversion failed: the CRD has no apiVersion %q", apiVersion)
	}
	return version, nil
}

// named says which object an error is about.
func named(doc *jsondoc.Doc, d *direction, err error) error {
	name := ""
	if meta, ok := doc.Get(jsondoc.Root, "metadata"); ok {
		for _, key := range []string{"namespace", "name"} {
			if v, ok := doc.Get(meta, key); ok && doc.Kind(v) == jsondoc.String {
				if name != "" {
					name += "/"
				}
				name += doc.Text(v)
			}
		}
	}
	return fmt.Errorf("converting %q from %s to %s failed: %w", name, d.source, d.target, err)
}
