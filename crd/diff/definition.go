package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// details is what is compared of a definition and crd.Definition does not hold.
// Members of the wrong type count as absent.
type details struct {
	doc      *jsondoc.Doc
	versions []jsondoc.Value
}

func newDetails(doc *jsondoc.Doc) details {
	d := details{doc: doc}
	if list, ok := d.get(jsondoc.Root, "spec", "versions"); ok {
		for _, v := range doc.Items(list) {
			d.versions = append(d.versions, v)
		}
	}
	return d
}

func (d details) get(v jsondoc.Value, path ...string) (jsondoc.Value, bool) {
	for _, name := range path {
		var ok bool
		if v, ok = d.doc.Get(v, name); !ok || d.doc.Kind(v) == jsondoc.Null {
			return 0, false
		}
	}
	return v, true
}

// canonical returns a member as canonical JSON, nil if it is absent.
func (d details) canonical(v jsondoc.Value, path ...string) []byte {
	v, ok := d.get(v, path...)
	if !ok {
		return nil
	}
	return d.doc.AppendCanonical(nil, v)
}

// of returns a member of the i-th version, or of the spec, where v1beta1 has it
// for all versions.
func (d details) of(i int, member ...string) []byte {
	if i < len(d.versions) {
		if b := d.canonical(d.versions[i], member...); b != nil {
			return b
		}
	}
	return d.canonical(jsondoc.Root, append([]string{"spec"}, member...)...)
}

func (d details) text(path ...string) string {
	if v, ok := d.get(jsondoc.Root, path...); ok && d.doc.Kind(v) == jsondoc.String {
		return d.doc.Text(v)
	}
	return ""
}

func (d details) texts(path ...string) (list []string) {
	v, ok := d.get(jsondoc.Root, path...)
	if !ok {
		return nil
	}
	for _, item := range d.doc.Items(v) {
		if d.doc.Kind(item) == jsondoc.String {
			list = append(list, d.doc.Text(item))
		}
	}
	return list
}

// selectable returns the paths that objects of the i-th version can be selected
// by.
func (d details) selectable(i int) (list []string) {
	if i >= len(d.versions) {
		return nil
	}
	v, ok := d.get(d.versions[i], "selectableFields")
	if !ok {
		return nil
	}
	for _, item := range d.doc.Items(v) {
		if p, ok := d.get(item, "jsonPath"); ok && d.doc.Kind(p) == jsondoc.String {
			list = append(list, d.doc.Text(p))
		}
	}
	return list
}

// definitions are both while they are compared.
type definitions struct {
	old, now      *crd.Definition
	before, after details
	was, is       map[string]int // places of versions by name; the first of a name counts
}

func (d *definitions) oldVersion(name string) *crd.Version { return version(d.old, d.was, name) }
func (d *definitions) newVersion(name string) *crd.Version { return version(d.now, d.is, name) }

func version(d *crd.Definition, places map[string]int, name string) *crd.Version {
	if i, ok := places[name]; ok {
		return &d.Versions[i]
	}
	return nil
}

// definitions compares two definitions and the schemas of their versions.
func (c *comparer) definitions(old, now *crd.Definition) error {
	a, err := jsondoc.Parse(old.JSON, jsondoc.Limits(c.options.Limits))
	if err != nil {
		return readError("old", err)
	}
	defer a.Release()
	b, err := jsondoc.Parse(now.JSON, jsondoc.Limits(c.options.Limits))
	if err != nil {
		return readError("new", err)
	}
	defer b.Release()
	d := &definitions{old: old, now: now, before: newDetails(a), after: newDetails(b), was: places(old), is: places(now)}
	c.names(d)
	c.conversion(d)
	c.versions(d)
	return c.schemas(d)
}

func readError(which string, err error) error {
	if e, ok := err.(*jsondoc.SyntaxError); ok {
		err = &espalier.SyntaxError{Offset: e.Offset, Msg: e.Msg}
	}
	return fmt.Errorf("the %s definition: %w", which, err)
}

func places(d *crd.Definition) map[string]int {
	at := map[string]int{}
	for i := range d.Versions {
		if _, ok := at[d.Versions[i].Name]; !ok {
			at[d.Versions[i].Name] = i
		}
	}
	return at
}

// versionPointer points to a version, or to one of its members.
func versionPointer(i int, member ...string) string {
	return pointerTo(append([]string{"spec", "versions", strconv.Itoa(i)}, member...)...)
}

func pointerTo(path ...string) string { return (*pointer)(nil).to(path...).String() }

// names compares what the resource is called and where it lives.
func (c *comparer) names(d *definitions) {
	o, n := d.old, d.now
	for _, x := range []struct {
		rule, what, old, now string
		level                Level
		breaks               Audience
		at                   []string
	}{
		{"name-changed", "the definition's name", o.Name, n.Name, Breaking, Everybody, []string{"metadata", "name"}},
		{"group-changed", "the API group", o.Group, n.Group, Breaking, Everybody, []string{"spec", "group"}},
		{"kind-changed", "the kind", o.Kind, n.Kind, Breaking, Everybody, []string{"spec", "names", "kind"}},
		{"list-kind-changed", "the kind of lists", o.ListKind, n.ListKind, Risky, Readers, []string{"spec", "names", "listKind"}},
		{"plural-changed", "the plural", o.Plural, n.Plural, Breaking, Everybody, []string{"spec", "names", "plural"}},
		{"singular-changed", "the singular", o.Singular, n.Singular, Risky, Writers | Readers, []string{"spec", "names", "singular"}},
		{"scope-changed", "the scope", scope(o), scope(n), Breaking, Everybody, []string{"spec", "scope"}},
	} {
		if x.old == x.now || x.rule == "list-kind-changed" && o.Kind != n.Kind || x.rule == "singular-changed" && o.Kind != n.Kind {
			continue
		}
		c.report(nil, Change{Rule: x.rule, Level: x.level, Breaks: x.breaks, Old: x.old, New: x.now, OldPointer: pointerTo(x.at...), NewPointer: pointerTo(x.at...),
			Message: fmt.Sprintf("%s changes from %q to %q: %s", x.what, x.old, x.now, lower(explanation(x.rule)))})
	}
	c.members("short-name-removed", "short-name-added", o.ShortNames, n.ShortNames, []string{"spec", "names", "shortNames"}, Risky, Writers|Readers)
	if !sameSet(o.Categories, n.Categories) {
		at := pointerTo("spec", "names", "categories")
		c.report(nil, Change{Rule: "categories-changed", Level: Safe, Breaks: Readers, Old: strings.Join(o.Categories, ", "), New: strings.Join(n.Categories, ", "),
			OldPointer: at, NewPointer: at, Message: "the categories change: the resource appears in other groups of kubectl get"})
	}
	if o.PreserveUnknownFields != n.PreserveUnknownFields {
		at := pointerTo("spec", "preserveUnknownFields")
		x := Change{Rule: "preserve-removed", Level: Breaking, Breaks: Everybody, Old: yes(o.PreserveUnknownFields), New: yes(n.PreserveUnknownFields), OldPointer: at, NewPointer: at,
			Message: "unknown fields are no longer preserved: whatever the schemas do not specify is pruned from what writers send and from stored objects as they are read"}
		if n.PreserveUnknownFields {
			x.Rule, x.Level, x.Breaks = "preserve-added", Safe, Readers
			x.Message = "unknown fields are preserved everywhere: readers may get fields that they do not know"
		}
		c.report(nil, x)
	}
}

func scope(d *crd.Definition) string {
	if d.Namespaced {
		return "Namespaced"
	}
	return "Cluster"
}

func explanation(id string) string {
	i, ok := slices.BinarySearchFunc(table, id, func(r Rule, id string) int { return strings.Compare(r.ID, id) })
	if !ok {
		return ""
	}
	return table[i].Explanation
}

// lower makes a sentence continue another one.
func lower(s string) string {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 1 && s[1] >= 'a' {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// members reports the strings that a list has lost or gained.
func (c *comparer) members(removed, added string, old, now []string, at []string, level Level, breaks Audience) {
	has := func(list []string) map[string]bool {
		m := make(map[string]bool, len(list))
		for _, s := range list {
			m[s] = true
		}
		return m
	}
	before, after := has(old), has(now)
	p := pointerTo(at...)
	for _, s := range slices.Compact(slices.Sorted(slices.Values(old))) {
		if !after[s] {
			c.report(nil, Change{Rule: removed, Level: level, Breaks: breaks, Old: s, OldPointer: p, NewPointer: p,
				Message: fmt.Sprintf("%q is gone: %s", s, lower(explanation(removed)))})
		}
	}
	for _, s := range slices.Compact(slices.Sorted(slices.Values(now))) {
		if !before[s] {
			c.report(nil, Change{Rule: added, Level: Safe, Breaks: Readers, New: s, OldPointer: p, NewPointer: p,
				Message: fmt.Sprintf("%q is new: %s", s, lower(explanation(added)))})
		}
	}
}

// conversion compares how versions are converted.
func (c *comparer) conversion(d *definitions) {
	was, is := strategy(d.before), strategy(d.after)
	at := pointerTo("spec", "conversion")
	x := Change{Rule: "conversion-changed", Level: Risky, Breaks: Everybody, Old: was, New: is, OldPointer: at, NewPointer: at}
	switch {
	case was != is:
		x.Message = fmt.Sprintf("the conversion strategy changes from %s to %s: what clients get of objects that are stored in another version depends on what the webhook does", was, is)
		if len(d.old.Versions) < 2 {
			x.Level, x.Breaks = Safe, Readers
			x.Message = fmt.Sprintf("the conversion strategy changes from %s to %s: there was only one version to convert", was, is)
		}
		c.report(nil, x)
	case was == "Webhook" && !bytes.Equal(client(d.before), client(d.after)):
		x.Message = "another webhook converts versions: objects that it converts differently, or if it does not answer all objects in another version than the stored one, break"
		c.report(nil, x)
	}
}

func strategy(d details) string {
	if s := d.text("spec", "conversion", "strategy"); s != "" {
		return s
	}
	return "None"
}

// client returns what is said about the webhook: the certificates of its
// authority aside, which change without changing it.
func client(d details) []byte {
	b := d.canonical(jsondoc.Root, "spec", "conversion")
	var conversion map[string]any
	if json.Unmarshal(b, &conversion) != nil {
		return b
	}
	forget(conversion, "caBundle")
	b, _ = json.Marshal(conversion)
	return b
}

func forget(m map[string]any, name string) {
	delete(m, name)
	for _, v := range m {
		if below, ok := v.(map[string]any); ok {
			forget(below, name)
		}
	}
}

// schemas compares the schemas of versions that have the same name and, if the
// storage version has another, those of the storage versions.
func (c *comparer) schemas(d *definitions) error {
	for i := range d.old.Versions {
		was := &d.old.Versions[i]
		is := d.newVersion(was.Name)
		if is == nil || d.oldVersion(was.Name) != was {
			continue
		}
		c.touched = Everybody
		if !was.Served {
			c.touched = Stored
		}
		if err := c.schema(was.Name, d, was, is); err != nil {
			return err
		}
	}
	was, is := storage(d.old), storage(d.now)
	c.touched = Stored | Readers
	if was != nil && is != nil && was.Name != is.Name && strategy(d.after) == "None" && (d.oldVersion(is.Name) == nil || d.newVersion(was.Name) == nil) {
		return c.schema(was.Name+" to "+is.Name, d, was, is)
	}
	return nil
}

func storage(d *crd.Definition) *crd.Version {
	for i := range d.Versions {
		if d.Versions[i].Storage {
			return &d.Versions[i]
		}
	}
	return nil
}

// schema compares two schemas; what they say about unknown fields depends on
// the definitions.
func (c *comparer) schema(name string, d *definitions, was, is *crd.Version) error {
	c.version = name
	old, err := c.read("old", d.old, was)
	if err != nil {
		return err
	}
	now, err := c.read("new", d.now, is)
	if err != nil {
		return err
	}
	if d.old.PreserveUnknownFields && !d.now.PreserveUnknownFields {
		old.all = false // that is reported for the definition as a whole
	}
	c.compare(old, now, nil, around{root: true})
	return nil
}

// read parses the schema of a version. Without one, every object is valid.
func (c *comparer) read(which string, d *crd.Definition, v *crd.Version) (value, error) {
	p := part{s: open, at: (*pointer)(nil).to("spec")}
	if v.Schema != nil {
		doc, err := jsondoc.Parse(v.Schema, jsondoc.Limits(c.options.Limits))
		if err != nil {
			return value{}, readError(which, err)
		}
		defer doc.Release()
		s, problems := syntax.Parse(doc, jsondoc.Root)
		if len(problems) > 0 {
			return value{}, fmt.Errorf("the %s definition: version %s: %w", which, v.Name,
				&espalier.SyntaxError{Offset: v.Offset + problems[0].Offset, Pointer: v.Pointer + problems[0].Pointer, Msg: problems[0].Message})
		}
		p = part{s: s, at: &pointer{text: v.Pointer}}
	} else if !d.PreserveUnknownFields {
		p.s = bare
	}
	root := c.framed(p, nil, false, false)
	root.all = d.PreserveUnknownFields
	return root, nil
}
