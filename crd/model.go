package crd

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// model is a definition as an API server has it after decoding and defaulting.
// Of what bad values show, names and order of the fields are those of the API
// server's own types.
type model struct {
	doc        *jsondoc.Doc
	meta       metav1.ObjectMeta
	group      string
	scope      string
	names      names
	versions   []version
	listed     bool // versions are written, if only as an empty list
	conversion conversion
	preserve   bool

	accepted    names
	established bool
	stored      []word
	hasStored   bool // the list is written, or was filled in

	// What API servers take out of the versions because all of them say the
	// same. With one version, it is everything.
	same struct{ schema, subresources, columns, selectable bool }
}

// word is a string in a list.
type word struct {
	text string
	at   jsondoc.Value
}

type names struct {
	plural, singular, kind, listKind string
	shortNames, categories           []word
}

type version struct {
	at                          jsondoc.Value
	name                        string
	served, storage, deprecated bool
	warning                     *string
	schema                      *validation
	subresources                *subresources
	columns                     []column
	selectable                  []selectable
}

// validation is the schema of a version and what is around it.
type validation struct {
	raw   []byte         // the schema as written
	tree  *syntax.Schema // nil if there is none
	shift int            // to be added to the offsets of tree
}

type subresources struct {
	Status *struct{}
	Scale  *scale
}

type scale struct {
	SpecReplicasPath   string
	StatusReplicasPath string
	LabelSelectorPath  *string
}

type column struct {
	Name        string
	Type        string
	Format      string
	Description string
	Priority    int32
	JSONPath    string

	at jsondoc.Value
}

type selectable struct {
	JSONPath string

	at jsondoc.Value
}

type conversion struct {
	strategy   string
	client     *clientConfig
	understood []word // conversionReviewVersions
}

type clientConfig struct {
	url     *string
	service *service
	bundle  []byte
}

type service struct {
	namespace, name string
	path            *string
	port            int32
}

// readModel reads a definition whose shape has been checked.
func readModel(doc *jsondoc.Doc) (*model, error) {
	r := reader{lenient{doc}}
	m := &model{doc: doc}
	if v, ok := r.member(jsondoc.Root, "metadata"); ok {
		if err := json.UnmarshalCaseSensitivePreserveInts(doc.Raw(v), &m.meta); err != nil {
			return nil, &espalier.SyntaxError{Offset: doc.Offset(v), Pointer: "/metadata", Msg: err.Error()}
		}
	}
	if spec, ok := r.member(jsondoc.Root, "spec"); ok {
		m.group, m.scope = r.text(spec, "group"), r.text(spec, "scope")
		m.names = r.names(spec, "names")
		m.preserve = r.flag(spec, "preserveUnknownFields", false)
		m.conversion = r.conversion(spec)
		if err := r.versions(m, spec); err != nil {
			return nil, err
		}
	} else {
		m.conversion.strategy = "None"
	}
	if status, ok := r.member(jsondoc.Root, "status"); ok {
		m.accepted = r.names(status, "acceptedNames")
		m.stored, m.hasStored = r.words(status, "storedVersions")
		m.established = r.established(status)
	}
	m.fill()
	m.compareVersions()
	return m, nil
}

// fill sets what API servers give by default.
func (m *model) fill() {
	if m.names.singular == "" {
		m.names.singular = strings.ToLower(m.names.kind)
	}
	if m.names.listKind == "" && m.names.kind != "" {
		m.names.listKind = m.names.kind + "List"
	}
	if len(m.stored) == 0 {
		m.addStored()
	}
}

// addStored adds the storage version to the stored ones.
func (m *model) addStored() {
	i := slices.IndexFunc(m.versions, func(v version) bool { return v.storage })
	if i < 0 {
		return
	}
	name := m.versions[i].name
	if !slices.ContainsFunc(m.stored, func(w word) bool { return w.text == name }) {
		m.stored, m.hasStored = append(slices.Clip(m.stored), word{name, m.versions[i].at}), true
	}
}

// compareVersions finds out what all versions say alike.
func (m *model) compareVersions() {
	if len(m.versions) == 0 {
		return
	}
	first := &m.versions[0]
	all := func(equal func(v *version) bool) bool {
		for i := range m.versions {
			if !equal(&m.versions[i]) {
				return false
			}
		}
		return true
	}
	m.same.schema = all(func(v *version) bool { return equalValidations(v.schema, first.schema) })
	m.same.subresources = all(func(v *version) bool { return equalSubresources(v.subresources, first.subresources) })
	m.same.columns = all(func(v *version) bool { return slices.EqualFunc(v.columns, first.columns, equalColumns) })
	m.same.selectable = all(func(v *version) bool { return equalSelectables(v.selectable, first.selectable) })
}

// schema returns the schema that a version has for itself.
func (m *model) schema(v *version) *validation {
	if m.same.schema {
		return nil
	}
	return v.schema
}

// common returns the schema of all versions, nil if there is none.
func (m *model) common() *validation {
	if !m.same.schema {
		return nil
	}
	return m.versions[0].schema
}

func (v *validation) missing() bool { return v == nil || v.tree == nil }

// trees calls f for each schema, once for those that all versions share.
func (m *model) trees(f func(*syntax.Schema)) {
	if v := m.common(); !v.missing() {
		f(v.tree)
		return
	}
	for i := range m.versions {
		if v := m.schema(&m.versions[i]); !v.missing() {
			f(v.tree)
		}
	}
}

// anyTree reports whether f holds for a schema.
func (m *model) anyTree(f func(*syntax.Schema) bool) bool {
	found := false
	m.trees(func(s *syntax.Schema) { found = found || f(s) })
	return found
}

// reader reads the parts of a definition.
type reader struct{ lenient }

func (r reader) pointer(v jsondoc.Value, name string) *string {
	if m, ok := r.member(v, name); ok {
		s := r.doc.Text(m)
		return &s
	}
	return nil
}

func (r reader) integer(v jsondoc.Value, name string, otherwise int32) int32 {
	if m, ok := r.member(v, name); ok {
		n, _ := r.doc.Int64(m)
		return int32(n)
	}
	return otherwise
}

func (r reader) words(v jsondoc.Value, name string) (list []word, written bool) {
	m, ok := r.member(v, name)
	if !ok {
		return nil, false
	}
	list = make([]word, 0, r.doc.Len(m))
	for _, item := range r.doc.Items(m) {
		w := word{at: item}
		if r.doc.Kind(item) == jsondoc.String { // or null
			w.text = r.doc.Text(item)
		}
		list = append(list, w)
	}
	return list, true
}

// items makes a list of the items of the one called name; nil if there is none.
func items[T any](r reader, v jsondoc.Value, name string, read func(jsondoc.Value) T) []T {
	m, ok := r.member(v, name)
	if !ok {
		return nil
	}
	list := make([]T, 0, r.doc.Len(m))
	for _, item := range r.doc.Items(m) {
		list = append(list, read(item))
	}
	return list
}

func (r reader) names(v jsondoc.Value, name string) names {
	m, ok := r.member(v, name)
	if !ok {
		return names{}
	}
	n := names{plural: r.text(m, "plural"), singular: r.text(m, "singular"), kind: r.text(m, "kind"), listKind: r.text(m, "listKind")}
	n.shortNames, _ = r.words(m, "shortNames")
	n.categories, _ = r.words(m, "categories")
	return n
}

// established reports whether the first condition of that type is true.
func (r reader) established(status jsondoc.Value) bool {
	if list, ok := r.member(status, "conditions"); ok {
		for _, c := range r.doc.Items(list) {
			if r.text(c, "type") == "Established" {
				return r.text(c, "status") == "True"
			}
		}
	}
	return false
}

func (r reader) conversion(spec jsondoc.Value) conversion {
	v, ok := r.member(spec, "conversion")
	if !ok {
		return conversion{strategy: "None"}
	}
	c := conversion{strategy: r.text(v, "strategy")}
	webhook, ok := r.member(v, "webhook")
	if !ok {
		return c
	}
	c.understood, _ = r.words(webhook, "conversionReviewVersions")
	config, ok := r.member(webhook, "clientConfig")
	if !ok {
		return c
	}
	c.client = &clientConfig{url: r.pointer(config, "url")}
	if b, ok := r.member(config, "caBundle"); ok {
		c.client.bundle, _ = decodeBytes(r.doc, b)
	}
	if s, ok := r.member(config, "service"); ok {
		c.client.service = &service{namespace: r.text(s, "namespace"), name: r.text(s, "name"), path: r.pointer(s, "path"), port: r.integer(s, "port", 443)}
	}
	return c
}

func (r reader) versions(m *model, spec jsondoc.Value) error {
	at, ok := r.member(spec, "versions")
	if !ok {
		return nil
	}
	m.listed = true
	m.versions = make([]version, 0, r.doc.Len(at))
	known := map[uint64]*validation{}
	place := where{doc: r.doc, at: at, pointer: "/spec/versions"}
	for i, item := range r.doc.Items(at) {
		v := version{
			at: item, name: r.text(item, "name"), served: r.flag(item, "served", false), storage: r.flag(item, "storage", false),
			deprecated: r.flag(item, "deprecated", false), warning: r.pointer(item, "deprecationWarning"), subresources: r.subresources(item),
		}
		v.columns = items(r, item, "additionalPrinterColumns", func(c jsondoc.Value) column {
			return column{
				Name: r.text(c, "name"), Type: r.text(c, "type"), Format: r.text(c, "format"), Description: r.text(c, "description"),
				Priority: r.integer(c, "priority", 0), JSONPath: r.text(c, "jsonPath"), at: c,
			}
		})
		v.selectable = items(r, item, "selectableFields", func(f jsondoc.Value) selectable { return selectable{r.text(f, "jsonPath"), f} })
		var err error
		if v.schema, err = r.validation(item, place, i, known); err != nil {
			return err
		}
		m.versions = append(m.versions, v)
	}
	return nil
}

func (r reader) subresources(v jsondoc.Value) *subresources {
	m, ok := r.member(v, "subresources")
	if !ok {
		return nil
	}
	s := new(subresources)
	if _, ok := r.member(m, "status"); ok {
		s.Status = new(struct{})
	}
	if c, ok := r.member(m, "scale"); ok {
		s.Scale = &scale{r.text(c, "specReplicasPath"), r.text(c, "statusReplicasPath"), r.pointer(c, "labelSelectorPath")}
	}
	return s
}

var hashSeed = maphash.MakeSeed()

// validation reads the schema of version i. One that is written like another is
// parsed once.
func (r reader) validation(v jsondoc.Value, versions where, i int, known map[uint64]*validation) (*validation, error) {
	around, ok := r.member(v, "schema")
	if !ok {
		return nil, nil
	}
	at, ok := r.member(around, "openAPIV3Schema")
	if !ok {
		return new(validation), nil
	}
	raw := r.doc.Raw(at)
	key := maphash.Bytes(hashSeed, raw)
	if k := known[key]; k != nil && bytes.Equal(k.raw, raw) {
		return &validation{raw: k.raw, tree: k.tree, shift: r.doc.Offset(at) - k.tree.Offset}, nil
	}
	tree, problems := syntax.Parse(r.doc, at)
	if len(problems) > 0 {
		p := problems[0]
		return nil, &espalier.SyntaxError{
			Offset: p.Offset, Pointer: versions.item(i, v).to("schema", "openAPIV3Schema").pointer + p.Pointer, Msg: p.Message,
		}
	}
	s := &validation{raw: raw, tree: tree}
	known[key] = s
	return s, nil
}
