package diff

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/witness"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/crdtree"
)

// crdPair is the old and the new CRD during a comparison.
type crdPair struct {
	old, now *crd.CRD
	was, is  map[string]int // places of versions by name; the first of a name counts
}

func (d *crdPair) oldVersion(name string) *crd.Version { return version(d.old, d.was, name) }
func (d *crdPair) newVersion(name string) *crd.Version { return version(d.now, d.is, name) }

func version(d *crd.CRD, places map[string]int, name string) *crd.Version {
	if i, ok := places[name]; ok {
		return &d.Versions[i]
	}
	return nil
}

// crds compares two CRDs and the schemas of their versions.
func (c *comparer) crds(old, now *crd.CRD) error {
	d := &crdPair{old: old, now: now, was: places(old), is: places(now)}
	c.names(d)
	c.conversion(d)
	c.versions(d)
	return c.schemas(d)
}

func places(d *crd.CRD) map[string]int {
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
func (c *comparer) names(d *crdPair) {
	o, n := d.old, d.now
	for _, x := range []struct {
		check          finding.ID
		what, old, now string
		level          Level
		breaks         Audience
		at             []string
	}{
		{"name-changed", "metadata.name", o.Name, n.Name, Breaking, AllAudiences, []string{"metadata", "name"}},
		{"group-changed", "spec.group", o.Group, n.Group, Breaking, AllAudiences, []string{"spec", "group"}},
		{"kind-changed", "spec.names.kind", o.Kind, n.Kind, Breaking, AllAudiences, []string{"spec", "names", "kind"}},
		{"list-kind-changed", "spec.names.listKind", o.ListKind, n.ListKind, Risky, Readers, []string{"spec", "names", "listKind"}},
		{"plural-changed", "spec.names.plural", o.Plural, n.Plural, Breaking, AllAudiences, []string{"spec", "names", "plural"}},
		{"singular-changed", "spec.names.singular", o.Singular, n.Singular, Risky, Writers | Readers, []string{"spec", "names", "singular"}},
		{"scope-changed", "spec.scope", scope(o), scope(n), Breaking, AllAudiences, []string{"spec", "scope"}},
	} {
		if x.old == x.now || x.check == "list-kind-changed" && o.Kind != n.Kind || x.check == "singular-changed" && o.Kind != n.Kind {
			continue
		}
		c.report(nil, Change{Check: x.check, Level: x.level, Breaks: x.breaks, Old: x.old, New: x.now, OldPointer: pointerTo(x.at...), NewPointer: pointerTo(x.at...),
			Message: fmt.Sprintf("%s changed from %q to %q: %s", x.what, x.old, x.now, lower(explanation(x.check)))})
	}
	short := pointerTo("spec", "names", "shortNames")
	c.members("short-name-removed", "short-name-added", o.ShortNames, n.ShortNames, short, short, Risky, Writers|Readers)
	if !sets.New(o.Categories...).Equal(sets.New(n.Categories...)) {
		at := pointerTo("spec", "names", "categories")
		c.report(nil, Change{Check: "categories-changed", Level: Safe, Breaks: Readers, Old: strings.Join(o.Categories, ", "), New: strings.Join(n.Categories, ", "),
			OldPointer: at, NewPointer: at, Message: "spec.names.categories changed: the resource appears in other categories of kubectl get"})
	}
	if o.PreserveUnknownFields != n.PreserveUnknownFields {
		at := pointerTo("spec", "preserveUnknownFields")
		x := Change{Check: "preserve-removed", Level: Breaking, Breaks: AllAudiences, Old: yes(o.PreserveUnknownFields), New: yes(n.PreserveUnknownFields), OldPointer: at, NewPointer: at,
			Message: "unknown fields are no longer preserved: the API server prunes unspecified fields from requests, and from stored objects when it reads them"}
		if n.PreserveUnknownFields {
			x.Check, x.Level, x.Breaks = "preserve-added", Safe, Readers
			x.Message = "the API server preserves unknown fields everywhere: readers may get fields that they do not know"
		}
		c.report(nil, x)
	}
}

func scope(d *crd.CRD) string {
	if d.Namespaced {
		return "Namespaced"
	}
	return "Cluster"
}

func explanation(id finding.ID) string {
	i, ok := slices.BinarySearchFunc(table, id, func(r CheckInfo, id finding.ID) int { return cmp.Compare(r.ID, id) })
	if !ok {
		return ""
	}
	return table[i].Explanation
}

// lower makes a sentence continue another one.
func lower(s string) string {
	s = strings.TrimSuffix(s, ".")
	if len(s) > 1 && (s[1] == ' ' || s[1] >= 'a') {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// members reports the strings that a list has lost or gained.
func (c *comparer) members(removed, added finding.ID, old, now []string, oldAt, newAt string, level Level, breaks Audience) {
	before, after := sets.New(old...), sets.New(now...)
	for _, s := range sets.List(before.Difference(after)) {
		c.report(nil, Change{Check: removed, Level: level, Breaks: breaks, Old: s, OldPointer: oldAt, NewPointer: newAt,
			Message: fmt.Sprintf("%q was removed: %s", s, lower(explanation(removed)))})
	}
	for _, s := range sets.List(after.Difference(before)) {
		c.report(nil, Change{Check: added, Level: Safe, Breaks: Readers, New: s, OldPointer: oldAt, NewPointer: newAt,
			Message: fmt.Sprintf("%q was added: %s", s, lower(explanation(added)))})
	}
}

// conversion compares how versions are converted.
func (c *comparer) conversion(d *crdPair) {
	was, is := strategy(d.old), strategy(d.now)
	at := pointerTo("spec", "conversion")
	x := Change{Check: "conversion-changed", Level: Risky, Breaks: AllAudiences, Old: was, New: is, OldPointer: at, NewPointer: at}
	switch {
	case was != is:
		x.Message = fmt.Sprintf("the conversion strategy changed from %s to %s: clients that read objects stored in another version may get different results", was, is)
		if len(d.old.Versions) < 2 {
			x.Level, x.Breaks = Safe, Readers
			x.Message = fmt.Sprintf("the conversion strategy changed from %s to %s: the old CRD has only one version, so there was nothing to convert", was, is)
		}
		c.report(nil, x)
	case was == "Webhook" && !sameWebhook(d.old.Conversion, d.now.Conversion):
		x.Message = "the conversion webhook changed: objects break if it converts them differently; if it does not answer, all requests for other versions than the storage version fail"
		c.report(nil, x)
	}
}

func strategy(d *crd.CRD) string { return cmp.Or(d.Conversion.Strategy, "None") }

// sameWebhook compares what is said about the webhook: the certificates of its CA
// aside, which change without changing it.
func sameWebhook(a, b crd.Conversion) bool {
	plain := func(w *crd.Webhook) (out crd.Webhook) {
		if w != nil {
			out = *w
		}
		out.CABundle = nil
		return out
	}
	return slices.Equal(a.ReviewVersions, b.ReviewVersions) && reflect.DeepEqual(plain(a.Webhook), plain(b.Webhook))
}

// schemas compares the schemas of versions that have the same name and, if the
// storage version has another, those of the storage versions.
func (c *comparer) schemas(d *crdPair) error {
	for i := range d.old.Versions {
		was := &d.old.Versions[i]
		is := d.newVersion(was.Name)
		if is == nil || d.oldVersion(was.Name) != was {
			continue
		}
		c.touched = AllAudiences
		if !was.Served {
			c.touched = Stored
		}
		if err := c.schema(was.Name, d, was, is); err != nil {
			return err
		}
	}
	was, is := d.old.StorageVersion(), d.now.StorageVersion()
	c.touched = Stored | Readers
	if was != nil && is != nil && was.Name != is.Name && strategy(d.now) == "None" && (d.oldVersion(is.Name) == nil || d.newVersion(was.Name) == nil) {
		return c.schema(was.Name+" to "+is.Name, d, was, is)
	}
	return nil
}

// schema compares two schemas; what they say about unknown fields depends on
// the CRDs.
func (c *comparer) schema(name string, d *crdPair, was, is *crd.Version) error {
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
		old.all = false // that is reported for the CRD as a whole
	}
	first := len(c.changes)
	c.subjects = c.subjects[:0]
	c.compare(old, now, nil, around{root: true})
	c.decide(c.changes[first:], witness.NewPair(d.old, d.now, was, is))
	return nil
}

// read parses the schema of a version. Without one, every object is valid.
func (c *comparer) read(which string, d *crd.CRD, v *crd.Version) (value, error) {
	p := part{s: open, at: (*pointer)(nil).to("spec")}
	if v.Schema != nil {
		s := crdtree.Parse(v)
		if len(s.Problems) > 0 {
			p := s.Problems[0]
			return value{}, fmt.Errorf("the %s CRD: version %s: %w", which, v.Name,
				&espalier.SyntaxError{Offset: p.Offset + s.Shift, Pointer: v.Pointer + p.Pointer, Msg: p.Message})
		}
		p = part{s: s.Tree, at: &pointer{text: v.Pointer}}
	} else if !d.PreserveUnknownFields {
		p.s = bare
	}
	root := c.framed(p, nil, false, false)
	root.all = d.PreserveUnknownFields
	return root, nil
}
