package impact

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

// Outcome is what a change does to one object. Effects is zero for an object that stays as it is.
type Outcome struct {
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Version   string  `json:"version"` // that it is stored in
	Effects   Effects `json:"effects"`
	// Lost are paths of fields that are pruned, in the version that is stored or, in conversion,
	// in the new storage version.
	Lost           []string  `json:"lost,omitempty"`
	LostConverting []string  `json:"lostConverting,omitempty"`
	Defaulted      []string  `json:"defaulted,omitempty"`
	Kept           []string  `json:"kept,omitempty"`
	Create         []Refusal `json:"create,omitempty"` // why it is refused if it is created again
	Update         []Refusal `json:"update,omitempty"` // why it cannot be updated
	Explanation    string    `json:"explanation,omitempty"`
	DeadManagers   []string  `json:"deadManagers,omitempty"`
	Managers       []string  `json:"managers,omitempty"` // that write it, if it is affected
	Owners         []string  `json:"owners,omitempty"`   // that own it, if it is affected: Kind/name
	RefusedAlready bool      `json:"refusedAlready,omitempty"`

	before, read *object.Object // by the old and by the new CRD; nil if it stays as it is, or cannot be read
}

// Refusal is one reason why a server refuses an object.
type Refusal struct {
	Field   string `json:"field"`
	Type    string `json:"type"`    // of the error, as in the causes of a status
	Message string `json:"message"` // as the server words it, without the field
	Detail  string `json:"detail,omitempty"`
}

// What an outcome has at most in each list.
const (
	maxRefusals = 20
	maxPaths    = 100
	maxNames    = 20 // of managers and owners
	// maxText is how many bytes a path or a message has: a field may have a name as long as an
	// object, and a message repeats the value that it is about.
	maxText = 512
)

// Page returns the outcomes of objects as storage has them. It fails only if the context ends:
// what is wrong with an object is in its outcome.
func (c *Change) Page(ctx context.Context, stored [][]byte) ([]Outcome, error) {
	list := make([]Outcome, len(stored))
	for i, data := range stored {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.read(&list[i], data)
	}
	if err := c.convert(ctx, list); err != nil {
		return nil, err
	}
	if err := c.lists(ctx, list); err != nil {
		return nil, err
	}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.requests(ctx, &list[i])
		list[i].finish()
	}
	return list, nil
}

// identify reads what the object is. It reports false if it is none of the resource.
func (c *Change) identify(x *Outcome, data []byte) bool {
	if version, ok := c.stored(data); ok {
		x.Version = version
		return true
	}
	kind := request.KindOf(data)
	x.Version = kind.Version
	if kind.Group == c.group && kind.Kind == c.kind {
		return true
	}
	x.Effects, x.Explanation = UnreadableToday, "it is no "+c.kind+" of "+c.group
	return false
}

// stored reads the version of an object that begins as servers write it. The names of versions are
// those of the old CRD, so that outcomes do not keep the bytes of objects.
func (c *Change) stored(data []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(data, c.first)
	if !ok {
		return "", false
	}
	end := bytes.IndexByte(rest, '"')
	if end < 0 || !bytes.HasPrefix(rest[end:], c.second) {
		return "", false
	}
	v := c.old.versions[string(rest[:end])]
	if v == nil {
		return "", false
	}
	return v.name, true
}

// named sets the name and what the metadata says.
func (x *Outcome) named(o *object.Object) { x.Namespace, x.Name = o.GetNamespace(), o.GetName() }

// read reads an object by both CRDs.
func (c *Change) read(x *Outcome, data []byte) {
	if !c.identify(x, data) {
		return
	}
	was := c.old.versions[x.Version]
	if was == nil {
		x.Effects, x.Explanation = UnreadableToday, "the CRD has no version "+x.Version
		return
	}
	before, err := was.schema.DecodeStored(data)
	if err != nil {
		x.Effects, x.Explanation = UnreadableToday, err.Error()
		return
	}
	x.named(before)
	c.managers(x, before)
	if c.unaffected(x.Version) {
		return
	}
	x.before = before
	is := c.now.versions[x.Version]
	if is == nil || c.now.group != c.group || c.now.kind != c.kind {
		x.Effects |= VersionGone
		return
	}
	if was.resource.Namespaced != is.resource.Namespaced {
		x.Effects, x.Explanation = x.Effects|Unreadable, "the scope changes, and with it the keys of all objects"
		return
	}
	if was.served && !is.served {
		x.Effects |= NotServed
	}
	if is.same {
		x.read = before
		return
	}
	read, err := is.schema.DecodeStored(data)
	if err != nil {
		x.Effects, x.Explanation = x.Effects|Unreadable, err.Error()
		return
	}
	x.read = read
	x.compare(was, is, data)
}

// compare records how an object reads differently.
func (x *Outcome) compare(was, is *version, data []byte) {
	if x.read.SameBody(x.before) {
		return
	}
	var a changes
	if x.before.Source() != nil { // reading changes it today, too
		a = report(was, data)
	}
	b := report(is, data)
	x.Lost = visible(b.pruned, is, x.before)
	x.Defaulted = minus(b.defaulted, a.defaulted)
	x.Kept = visible(a.pruned, was, x.read)
	for effect, paths := range map[Effects][]string{LosesFields: x.Lost, NewDefaults: x.Defaulted, KeepsFields: x.Kept} {
		if len(paths) > 0 {
			x.Effects |= effect
		}
	}
	if x.Effects&(LosesFields|NewDefaults|KeepsFields) == 0 {
		x.Effects |= ChangesValues
	}
	if gone := minus(a.defaulted, b.defaulted); len(gone) > 0 {
		x.Effects |= ChangesValues
		x.Explanation = "no longer filled in: " + strings.Join(gone[:min(len(gone), 3)], ", ")
	}
}

// changes are what reading does to an object.
type changes struct{ pruned, defaulted []string }

func report(v *version, data []byte) changes {
	var r espalier.Report
	if _, err := v.schema.Normalize.Normalize(data, espalier.NormalizeOptions{Source: espalier.Storage, Report: &r}); err != nil {
		return changes{} // it has been read before
	}
	return listed(&r)
}

// lossy is what takes a value from an object: a null means something where the schema allows it.
const lossy = espalier.Pruned | espalier.NullDropped

func listed(r *espalier.Report) (c changes) {
	for i := range r.Changes {
		switch change := &r.Changes[i]; {
		case change.What&lossy != 0:
			c.pruned = append(c.pruned, change.Path)
		case change.What == espalier.Defaulted:
			c.defaulted = append(c.defaulted, change.Path)
		}
	}
	slices.Sort(c.pruned)
	slices.Sort(c.defaulted)
	return c
}

func minus(list, without []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), sets.New(without...).Has)
}

// visible returns the paths that a version prunes from stored data, and from the object as the other
// CRD reads it as well: the others are hidden already, alone or with a field around them.
func visible(pruned []string, v *version, read *object.Object) []string {
	if len(pruned) == 0 {
		return nil
	}
	return minus(pruned, minus(pruned, report(v, read.JSON()).pruned))
}

// managers looks for managedFields of versions that the new CRD does not have.
func (c *Change) managers(x *Outcome, o *object.Object) {
	raw := o.ReadMetadata("managedFields")
	if len(raw) == 0 {
		return
	}
	doc, err := jsondoc.Parse(raw, jsondoc.Limits{})
	if err != nil {
		return
	}
	defer doc.Release()
	if doc.Kind(jsondoc.Root) != jsondoc.Array {
		return
	}
	for _, entry := range doc.Items(jsondoc.Root) {
		group, version, ok := strings.Cut(member(doc, entry, "apiVersion"), "/")
		if ok && group == c.now.group && c.now.versions[version] == nil {
			x.Effects |= DeadManagers
			x.DeadManagers = append(x.DeadManagers, member(doc, entry, "manager")+" ("+version+")")
		}
	}
}

func member(doc *jsondoc.Doc, v jsondoc.Value, name string) string {
	if doc.Kind(v) != jsondoc.Object {
		return ""
	}
	m, ok := doc.Get(v, name)
	if !ok || doc.Kind(m) != jsondoc.String {
		return ""
	}
	return doc.Text(m)
}

// finish notes who writes and owns an object that the change affects, and bounds the outcome.
func (x *Outcome) finish() {
	if x.before != nil && x.Effects&^DeadManagers != 0 {
		for _, entry := range x.before.GetManagedFields() {
			if len(x.Managers) < maxNames && !slices.Contains(x.Managers, entry.Manager) {
				x.Managers = append(x.Managers, entry.Manager)
			}
		}
		for _, owner := range x.before.GetOwnerReferences() {
			if len(x.Owners) < maxNames {
				x.Owners = append(x.Owners, owner.Kind+"/"+owner.Name)
			}
		}
	}
	x.before, x.read = nil, nil
	for _, list := range []*[]string{&x.Lost, &x.LostConverting, &x.Defaulted, &x.Kept, &x.DeadManagers, &x.Managers, &x.Owners} {
		*list = (*list)[:min(len(*list), maxPaths)]
		for i := range *list {
			shorten(&(*list)[i])
		}
	}
	for _, list := range []*[]Refusal{&x.Create, &x.Update} {
		*list = (*list)[:min(len(*list), maxRefusals)]
		for i := range *list {
			r := &(*list)[i]
			shorten(&r.Field)
			shorten(&r.Message)
			shorten(&r.Detail)
		}
	}
	for _, text := range []*string{&x.Namespace, &x.Name, &x.Version, &x.Explanation} {
		shorten(text)
	}
}

// shorten bounds a text. It is copied, so that it does not keep the object in memory.
func shorten(text *string) {
	if len(*text) > maxText {
		*text = strings.ToValidUTF8((*text)[:maxText], "") + "…"
	}
}

// errNoConversion stands for conversion by a webhook that is not called.
var errNoConversion = errors.New("only the conversion webhook can convert it")
