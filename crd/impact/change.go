package impact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// ConvertFunc brings objects of any version of a resource into the version of that name. It
// does not change its input, and returns objects in the order given.
type ConvertFunc func(ctx context.Context, objs []*object.Object, version string) ([]*object.Object, error)

// Options say how objects are converted. Without a function, objects of CRDs with the strategy
// None and of CRDs with conversion rules are converted, and those that need a webhook have the
// effect [ConversionUnknown].
type Options struct {
	Old, New ConvertFunc // as the old and the new CRD say
	// Stock is for servers that know no conversion rules in CRDs: with them, rules count only if the
	// CRD names a webhook, which is taken for one that runs them.
	Stock bool
}

// Change is a change of a CRD. It is safe for concurrent use.
type Change struct {
	group, kind   string
	old, now      side
	first, second []byte // what a stored object begins with, before and after its version
	// reconverted says that conversion rules of the new CRD may convert objects in another way than today.
	reconverted bool
}

// side is one of the CRDs.
type side struct {
	group, kind string
	storage     string
	versions    map[string]*version
	convert     ConvertFunc // nil if only a webhook knows
	rules       bool        // the CRD has conversion rules that count
}

// version is a version of one CRD.
type version struct {
	name     string
	served   bool
	schema   *request.Schema
	resource *request.Resource
	same     bool // the other CRD has a version that does the same
	traits
}

// traits say for which objects a version accepts requests if it finds nothing wrong with the object
// itself: see Change.clean.
type traits struct {
	simple bool // no rule compares with the old object, and no objects are embedded
	free   bool // nothing is required of whether there is a status
}

// traitsOf looks for words: what has another meaning only makes an object take the long way.
func traitsOf(schema []byte) traits {
	if schema == nil {
		return traits{simple: true, free: true}
	}
	var root struct {
		Required []string `json:"required"`
	}
	var members map[string]json.RawMessage
	t := traits{simple: !bytes.Contains(schema, []byte("oldSelf")) && !bytes.Contains(schema, []byte("x-kubernetes-embedded-resource")) && !bytes.Contains(schema, []byte(`\u`))}
	if json.Unmarshal(schema, &members) != nil || json.Unmarshal(schema, &root) != nil {
		return t
	}
	t.free = !slices.Contains(root.Required, "status")
	for name := range members {
		switch name {
		case "type", "properties", "required", "description", "title", "x-kubernetes-preserve-unknown-fields":
		default:
			t.free = false
		}
	}
	return t
}

// New compiles a change. It fails if a schema does not compile; whether a server accepts the
// new CRD, crd.Validate says. The CRDs can be released afterwards.
func New(old, now *crd.CRD, o Options) (*Change, error) {
	c := &Change{group: old.Group, kind: old.Kind}
	c.first, c.second = []byte(`{"apiVersion":"`+old.Group+`/`), []byte(`","kind":"`+old.Kind+`","metadata":{`)
	var err error
	if c.old, err = newSide(old, o.Old, o.Stock); err != nil {
		return nil, fmt.Errorf("the old CRD: %w", err)
	}
	if c.now, err = newSide(now, o.New, o.Stock); err != nil {
		return nil, fmt.Errorf("the new CRD: %w", err)
	}
	for i := range now.Versions {
		is := &now.Versions[i]
		was := old.Version(is.Name)
		c.now.versions[is.Name].same = was != nil && c.old.group == c.now.group && c.old.kind == c.now.kind &&
			old.Namespaced == now.Namespaced && old.PreserveUnknownFields == now.PreserveUnknownFields &&
			was.Status == is.Status && sameScale(was.Scale, is.Scale) && bytes.Equal(was.Schema, is.Schema)
	}
	c.reconverted = c.now.rules && !c.convertsAsBefore(old, now)
	return c, nil
}

// convertsAsBefore reports whether the conversion of objects between the same versions is the same.
func (c *Change) convertsAsBefore(old, now *crd.CRD) bool {
	return old.Annotations[conversion.Annotation] == now.Annotations[conversion.Annotation] && slices.EqualFunc(old.Versions, now.Versions,
		func(a, b crd.Version) bool {
			return a.Name == b.Name && a.Served == b.Served && c.now.versions[b.Name].same
		})
}

func sameScale(a, b *crd.Scale) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *request.NewScale(a) == *request.NewScale(b)
}

func newSide(d *crd.CRD, convert ConvertFunc, stock bool) (side, error) {
	s := side{group: d.Group, kind: d.Kind, versions: make(map[string]*version, len(d.Versions)), convert: convert}
	if v := d.StorageVersion(); v != nil {
		s.storage = v.Name
	}
	for i := range d.Versions {
		v := &d.Versions[i]
		compiled, err := request.Compile(v, d.PreserveUnknownFields)
		if err != nil {
			return s, fmt.Errorf("version %s: %w", v.Name, err)
		}
		s.versions[v.Name] = &version{name: v.Name, served: v.Served, schema: compiled, resource: request.New(d, v), traits: traitsOf(v.Schema)}
	}
	webhook := d.Conversion.Strategy == "Webhook"
	s.rules = d.Annotations[conversion.Annotation] != "" && len(d.Versions) > 1 && (!stock || webhook)
	if s.convert != nil {
		return s, nil
	}
	if len(d.Versions) > 1 && (!stock || webhook) { // otherwise there is nothing to convert
		plan, found, err := conversion.Compile(d)
		switch {
		case err != nil:
			return s, err
		case len(found) > 0:
			return s, fmt.Errorf("the conversion rules are invalid: %w", found[0])
		case plan != nil:
			s.convert = byRules(plan)
			return s, nil
		}
	}
	if !webhook {
		s.convert = s.rename
	}
	return s, nil
}

// byRules converts by the rules of a CRD.
func byRules(plan *conversion.Plan) ConvertFunc {
	return func(_ context.Context, objs []*object.Object, version string) ([]*object.Object, error) {
		result := make([]*object.Object, len(objs))
		for i, o := range objs {
			data, err := plan.Convert(nil, o.JSON(), version)
			if err != nil {
				return nil, err
			}
			if result[i], err = object.FromJSON(data); err != nil {
				return nil, err
			}
		}
		return result, nil
	}
}

// rename converts as the strategy None does.
func (s *side) rename(_ context.Context, objs []*object.Object, version string) ([]*object.Object, error) {
	kind := schema.GroupVersionKind{Group: s.group, Version: version, Kind: s.kind}
	result := make([]*object.Object, len(objs))
	for i, o := range objs {
		result[i] = o.DeepCopy()
		result[i].SetGroupVersionKind(kind)
		result[i].SetSource(nil)
	}
	return result, nil
}

// client returns the version in which clients use an object that is stored in a version, or nil
// if none is served.
func (s *side) client(stored string) *version {
	for _, name := range []string{stored, s.storage} {
		if v := s.versions[name]; v != nil && v.served {
			return v
		}
	}
	var first *version
	for _, v := range s.versions {
		if v.served && (first == nil || v.name < first.name) {
			first = v
		}
	}
	return first
}

// unaffected reports whether the change does nothing to objects that are stored in a version.
func (c *Change) unaffected(stored string) bool {
	v := c.now.versions[stored]
	was := c.old.versions[stored]
	return v != nil && v.same && v.served == was.served && !c.reconverted && c.now.storage == stored && c.old.storage == stored
}
