package impact

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

// lists finds objects that the new conversion rules cannot convert to a version that clients use, and that the old CRD
// converts. One such object fails each list in this version.
func (c *Change) lists(ctx context.Context, list []Outcome) error {
	if !c.reconverted {
		return nil
	}
	for name, v := range c.now.versions {
		if !v.served {
			continue
		}
		var other []*Outcome
		var objs []*object.Object
		for i := range list {
			if x := &list[i]; x.read != nil && x.Version != name && x.Effects&(Unreadable|NotConvertible) == 0 {
				other, objs = append(other, x), append(objs, x.read)
			}
		}
		if len(objs) == 0 {
			continue
		}
		converted, errs := c.now.all(ctx, objs, name)
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, x := range other {
			switch {
			case errs[i] == nil:
				c.preserved(ctx, x, name, converted[i])
			case c.convertedBefore(ctx, x, name):
				x.Effects, x.Explanation = x.Effects|NotConvertible, fmt.Sprintf("lists in version %s would fail: %v", name, errs[i])
			}
		}
	}
	return nil
}

// convertedBefore reports whether the old CRD converts an object to a version, or has no such version.
func (c *Change) convertedBefore(ctx context.Context, x *Outcome, version string) bool {
	if v := c.old.versions[version]; v == nil || !v.served {
		return true
	}
	_, errs := c.old.all(ctx, []*object.Object{x.before}, version)
	return errs[0] == nil
}

// preserved records values that former rules have saved in an object and that it has in a version today, but not by the
// new rules: these may convert a field otherwise than it was saved.
func (c *Change) preserved(ctx context.Context, x *Outcome, version string, now *object.Object) {
	notes := x.before.GetAnnotations()
	if _, saved := notes[conversion.Preserved]; !saved || !c.old.rules || !c.now.versions[version].same {
		return
	}
	bare := x.before.DeepCopy()
	notes = maps.Clone(notes)
	delete(notes, conversion.Preserved)
	bare.SetAnnotations(notes)
	was, errs := c.old.all(ctx, []*object.Object{x.before, bare}, version)
	if errs[0] != nil || errs[1] != nil {
		return
	}
	lost := minus(minus(pathsOf(was[0]), pathsOf(was[1])), pathsOf(now))
	if len(lost) > 0 {
		x.Effects |= LosesInConversion
		x.LostConverting = slices.Compact(slices.Sorted(slices.Values(append(x.LostConverting, lost...))))
	}
}

// pathsOf lists the values of an object, without its metadata.
func pathsOf(o *object.Object) []string {
	doc, err := jsondoc.Parse(o.JSON(), jsondoc.Limits{})
	if err != nil {
		return nil
	}
	defer doc.Release()
	var all []string
	for m := range doc.Members(jsondoc.Root) {
		switch name := doc.Text(m.Key); name {
		case "apiVersion", "kind", "metadata":
		default:
			all = appendPaths(all, doc, m.Value, name)
		}
	}
	return all
}

func appendPaths(all []string, doc *jsondoc.Doc, v jsondoc.Value, path string) []string {
	switch doc.Kind(v) {
	case jsondoc.Object:
		for m := range doc.Members(v) {
			all = appendPaths(all, doc, m.Value, path+"."+doc.Text(m.Key))
		}
	case jsondoc.Array:
		for i, item := range doc.Items(v) {
			all = appendPaths(all, doc, item, path+"["+strconv.Itoa(i)+"]")
		}
	}
	return append(all, path)
}
