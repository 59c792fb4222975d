package crd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// The versions of the API that definitions are written in.
const (
	apiVersionV1      = "apiextensions.k8s.io/v1"
	apiVersionV1beta1 = "apiextensions.k8s.io/v1beta1"
	kindDefinition    = "CustomResourceDefinition"
)

// ErrNotDefinition is returned, wrapped, for documents that are something else.
var ErrNotDefinition = errors.New("not a CustomResourceDefinition of " + apiVersionV1 + " or v1beta1")

// Definition is what a CustomResourceDefinition says about its resource. Names
// that are left out are the ones that an API server gives.
type Definition struct {
	APIVersion string // apiextensions.k8s.io/v1 or /v1beta1
	Name       string // of the definition itself
	Group      string
	Kind       string
	ListKind   string
	Plural     string
	Singular   string
	ShortNames []string
	Categories []string
	Namespaced bool

	PreserveUnknownFields bool // as written, or by the default of v1beta1
	// Versions are in the order in which they are written. What v1beta1 says
	// for all of them at once stands in each.
	Versions []Version
	JSON     []byte // the document
}

// Version is one version of a resource.
type Version struct {
	Name       string
	Served     bool
	Storage    bool
	Deprecated bool
	Status     bool // the status subresource is enabled
	Scale      bool // the scale subresource is enabled

	Schema  []byte // openAPIV3Schema as written, a part of Definition.JSON; nil if there is none
	Pointer string // RFC 6901 pointer of the schema in the document
	Offset  int    // of the schema in the document
}

// Parse reads a definition, leniently: what has the wrong type counts as left
// out, and whether the definition is valid does not matter. It fails for what
// is not JSON, and for what is not a CustomResourceDefinition.
func Parse(definition []byte) (*Definition, error) {
	doc, err := jsondoc.Parse(definition, jsondoc.Limits{})
	if err != nil {
		return nil, syntaxError(err)
	}
	defer doc.Release()
	r := lenient{doc}
	root := jsondoc.Root
	d := &Definition{APIVersion: r.text(root, "apiVersion"), JSON: definition}
	kind := r.text(root, "kind")
	if kind != kindDefinition || d.APIVersion != apiVersionV1 && d.APIVersion != apiVersionV1beta1 {
		return nil, notDefinition(d.APIVersion, kind)
	}
	if metadata, ok := r.member(root, "metadata"); ok {
		d.Name = r.text(metadata, "name")
	}
	spec, ok := r.member(root, "spec")
	if !ok {
		return d, nil
	}
	beta := d.APIVersion == apiVersionV1beta1
	d.Group = r.text(spec, "group")
	scope := r.text(spec, "scope")
	d.Namespaced = scope == "Namespaced" || beta && scope == ""
	d.PreserveUnknownFields = r.flag(spec, "preserveUnknownFields", beta)
	if names, ok := r.member(spec, "names"); ok {
		d.Kind, d.ListKind = r.text(names, "kind"), r.text(names, "listKind")
		d.Plural, d.Singular = r.text(names, "plural"), r.text(names, "singular")
		d.ShortNames, d.Categories = r.texts(names, "shortNames"), r.texts(names, "categories")
	}
	if d.Singular == "" {
		d.Singular = strings.ToLower(d.Kind)
	}
	if d.ListKind == "" && d.Kind != "" {
		d.ListKind = d.Kind + "List"
	}
	r.versions(d, spec, beta)
	return d, nil
}

// Version returns the version called name, or nil.
func (d *Definition) Version(name string) *Version {
	for i := range d.Versions {
		if d.Versions[i].Name == name {
			return &d.Versions[i]
		}
	}
	return nil
}

// Compile prepares the schema of the version for running; see [CompileSchema].
func (v *Version) Compile(o espalier.CompileOptions) (*espalier.Schema, espalier.Rules, error) {
	if v.Schema == nil {
		return nil, nil, fmt.Errorf("version %q has no schema", v.Name)
	}
	return compileJSON(v.Schema, o)
}

// lenient reads members of objects and takes those of the wrong type as absent.
type lenient struct{ doc *jsondoc.Doc }

func (r lenient) member(v jsondoc.Value, name string) (jsondoc.Value, bool) {
	m, ok := r.doc.Get(v, name)
	return m, ok && r.doc.Kind(m) != jsondoc.Null
}

func (r lenient) text(v jsondoc.Value, name string) string {
	if m, ok := r.member(v, name); ok && r.doc.Kind(m) == jsondoc.String {
		return r.doc.Text(m)
	}
	return ""
}

func (r lenient) texts(v jsondoc.Value, name string) []string {
	m, ok := r.member(v, name)
	if !ok {
		return nil
	}
	var list []string
	for _, item := range r.doc.Items(m) {
		if r.doc.Kind(item) == jsondoc.String {
			list = append(list, r.doc.Text(item))
		}
	}
	return list
}

func (r lenient) flag(v jsondoc.Value, name string, otherwise bool) bool {
	if m, ok := r.member(v, name); ok {
		return r.doc.Kind(m) == jsondoc.True
	}
	return otherwise
}

// versions reads the versions, and for v1beta1 what is said for all of them.
func (r lenient) versions(d *Definition, spec jsondoc.Value, beta bool) {
	var all Version
	if beta {
		r.subresources(&all, spec)
		r.schema(&all, spec, "validation", "/spec")
	}
	versions, _ := r.member(spec, "versions")
	for i, item := range r.doc.Items(versions) {
		v := all
		v.Name = r.text(item, "name")
		v.Served = r.flag(item, "served", false)
		v.Storage = r.flag(item, "storage", false)
		v.Deprecated = r.flag(item, "deprecated", false)
		r.subresources(&v, item)
		r.schema(&v, item, "schema", "/spec/versions/"+strconv.Itoa(i))
		d.Versions = append(d.Versions, v)
	}
	if name := r.text(spec, "version"); beta && len(d.Versions) == 0 && name != "" {
		all.Name, all.Served, all.Storage = name, true, true
		d.Versions = []Version{all}
	}
}

func (r lenient) subresources(v *Version, in jsondoc.Value) {
	if sub, ok := r.member(in, "subresources"); ok {
		_, v.Status = r.member(sub, "status")
		_, v.Scale = r.member(sub, "scale")
	}
}

// schema reads the schema in the member of in called name; pointer is that of in.
func (r lenient) schema(v *Version, in jsondoc.Value, name, pointer string) {
	around, ok := r.member(in, name)
	if !ok {
		return
	}
	if s, ok := r.member(around, "openAPIV3Schema"); ok {
		v.Schema, v.Offset = r.doc.Raw(s), r.doc.Offset(s)
		v.Pointer = pointer + "/" + name + "/openAPIV3Schema"
	}
}

func notDefinition(apiVersion, kind string) error {
	return fmt.Errorf("%w: apiVersion is %q, kind is %q", ErrNotDefinition, apiVersion, kind)
}

func syntaxError(err error) error {
	if se, ok := err.(*jsondoc.SyntaxError); ok {
		return &espalier.SyntaxError{Offset: se.Offset, Msg: se.Msg}
	}
	return err
}
