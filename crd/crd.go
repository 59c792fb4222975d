package crd

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// The API versions of a CustomResourceDefinition.
const (
	apiVersionV1      = "apiextensions.k8s.io/v1"
	apiVersionV1beta1 = "apiextensions.k8s.io/v1beta1"
	kindCRD           = "CustomResourceDefinition"
)

// ErrNotCRD is returned, wrapped, for documents that are something else.
var ErrNotCRD = errors.New("not a CustomResourceDefinition of " + apiVersionV1 + " or v1beta1")

// CRD is a CustomResourceDefinition. Names that it leaves out have the value that an API
// server gives them. A CRD must not be modified.
type CRD struct {
	APIVersion  string // apiextensions.k8s.io/v1 or /v1beta1
	Name        string // metadata.name
	Annotations map[string]string
	Group       string
	Names
	Namespaced bool

	PreserveUnknownFields bool // as written, or by the default of v1beta1
	Conversion            Conversion
	// Versions have the order of the document. What v1beta1 says for all versions is part of
	// each of them.
	Versions []Version
	Status   Status
	JSON     []byte // the document

	index *index
	scope string // as written
}

// Names are the names of a custom resource.
type Names struct {
	Plural, Singular, Kind, ListKind string
	ShortNames, Categories           []string
}

// Version is one version of a custom resource.
type Version struct {
	Name               string
	Served             bool
	Storage            bool
	Deprecated         bool
	DeprecationWarning *string // nil if the API server writes the warning
	Status             bool    // the status subresource is enabled
	Scale              *Scale  // nil if the scale subresource is not enabled
	Columns            []Column
	SelectableFields   []SelectableField

	Schema  []byte // openAPIV3Schema as written, a part of CRD.JSON; nil if there is none
	Pointer string // RFC 6901 pointer of the schema in the document
	Offset  int    // of the schema in the document

	source         *source // of Schema
	at             jsondoc.Value
	hasSubresource bool // subresources are written, if only as an empty object
	hasSchema      bool // schema is written, if only as an empty object
}

// Scale has the paths of the scale subresource.
type Scale struct {
	SpecReplicasPath   string
	StatusReplicasPath string
	LabelSelectorPath  *string

	at jsondoc.Value
}

// Column is a column of the table that kubectl get prints.
type Column struct {
	Name        string
	Type        string
	Format      string
	Description string
	Priority    int32
	JSONPath    string

	at jsondoc.Value
}

// SelectableField is a field that clients can select objects by.
type SelectableField struct {
	JSONPath string

	at jsondoc.Value
}

// Conversion says how objects are converted between versions.
type Conversion struct {
	Strategy string   // None or Webhook
	Webhook  *Webhook // nil if the CRD has no webhook.clientConfig
	// ReviewVersions are the versions of ConversionReview that the webhook accepts.
	ReviewVersions []string
}

// Webhook is the client configuration of a conversion webhook.
type Webhook struct {
	URL      *string
	Service  *Service
	CABundle []byte
}

// Service is the address of a conversion webhook in a cluster.
type Service struct {
	Namespace, Name string
	Path            *string
	Port            int32
}

// Status is what an API server says about a CRD.
type Status struct {
	AcceptedNames      Names
	StoredVersions     []string
	ObservedGeneration int64
	Conditions         []Condition

	hasStored bool // storedVersions are written
}

// Condition is a condition of a CRD.
type Condition struct {
	Type, Status       string
	LastTransitionTime time.Time // zero if it is not a time
}

// True reports whether the first condition of the type is true.
func (s *Status) True(conditionType string) bool {
	i := slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == conditionType })
	return i >= 0 && s.Conditions[i].Status == "True"
}

// Parse reads a CRD. Parse is lenient: it ignores members of the wrong type and does not
// validate. It fails if the document is not JSON or not a CustomResourceDefinition.
func Parse(data []byte) (*CRD, error) { return ParseWithin(data, espalier.Limits{}) }

// ParseWithin is [Parse] with limits.
func ParseWithin(data []byte, limits espalier.Limits) (*CRD, error) {
	doc, err := jsondoc.Parse(data, jsondoc.Limits(limits))
	if err != nil {
		return nil, syntaxError(err)
	}
	r := reader{doc}
	root := jsondoc.Root
	d := &CRD{APIVersion: r.text(root, "apiVersion"), JSON: data}
	kind := r.text(root, "kind")
	if kind != kindCRD || d.APIVersion != apiVersionV1 && d.APIVersion != apiVersionV1beta1 {
		doc.Release()
		return nil, fmt.Errorf("%w: apiVersion is %q, kind is %q", ErrNotCRD, d.APIVersion, kind)
	}
	d.index = &index{data: data, limits: jsondoc.Limits(limits), known: map[uint64]*source{}, doc: doc}
	if metadata, ok := r.member(root, "metadata"); ok {
		d.Name, d.Annotations = r.text(metadata, "name"), r.textMap(metadata, "annotations")
	}
	if spec, ok := r.member(root, "spec"); ok {
		r.spec(d, spec)
	} else {
		d.Conversion.Strategy = "None"
	}
	if status, ok := r.member(root, "status"); ok {
		d.Status = r.status(status)
	}
	return d, nil
}

// Release gives the index of the document back for reuse, and drops the syntax trees of the
// schemas. It saves memory and is never necessary: d stays valid, and what needs them, such
// as [Validate], makes them again. Nothing else may use d during the call.
func (d *CRD) Release() {
	if d.index == nil || d.index.doc == nil {
		return
	}
	d.index.doc.Release()
	d.index.doc = nil
	for _, s := range d.index.known {
		s.parsed, s.tree, s.problems = false, nil, nil
	}
}

// Decodable returns why an API server cannot decode spec, with the place; nil if it can.
// Parse ignores such members, and a server must not: without a caBundle, say, it would trust
// other certificates.
func (d *CRD) Decodable() error {
	doc := d.index.get()
	spec, ok := doc.Get(jsondoc.Root, "spec")
	if !ok {
		return nil
	}
	s := shaper{doc: doc, path: []byte("spec"), at: []byte("/spec")}
	if err := s.check(spec, specShape); err != nil {
		return err
	}
	return nil
}

// Version returns the first version called name, or nil.
func (d *CRD) Version(name string) *Version {
	for i := range d.Versions {
		if d.Versions[i].Name == name {
			return &d.Versions[i]
		}
	}
	return nil
}

// StorageVersion returns the first version that objects are stored in, or nil.
func (d *CRD) StorageVersion() *Version {
	for i := range d.Versions {
		if d.Versions[i].Storage {
			return &d.Versions[i]
		}
	}
	return nil
}

// Compile prepares the schema of the version for running; see [CompileSchema].
func (v *Version) Compile(o espalier.CompileOptions) (*espalier.Schema, *espalier.Rules, error) {
	if v.Schema == nil {
		return nil, nil, fmt.Errorf("version %q has no schema", v.Name)
	}
	return compileJSON(v.Schema, o)
}

// spec reads spec.
func (r reader) spec(d *CRD, spec jsondoc.Value) {
	beta := d.APIVersion == apiVersionV1beta1
	d.Group, d.scope = r.text(spec, "group"), r.text(spec, "scope")
	d.Namespaced = d.scope == "Namespaced" || beta && d.scope == ""
	d.PreserveUnknownFields = r.flag(spec, "preserveUnknownFields", beta)
	if names, ok := r.member(spec, "names"); ok {
		d.Names = r.names(names)
	}
	if d.Singular == "" {
		d.Singular = strings.ToLower(d.Kind)
	}
	if d.ListKind == "" && d.Kind != "" {
		d.ListKind = d.Kind + "List"
	}
	d.Conversion = r.conversion(spec, beta)
	r.versions(d, spec, beta)
}

func (r reader) names(v jsondoc.Value) Names {
	return Names{
		Plural: r.text(v, "plural"), Singular: r.text(v, "singular"), Kind: r.text(v, "kind"), ListKind: r.text(v, "listKind"),
		ShortNames: r.texts(v, "shortNames"), Categories: r.texts(v, "categories"),
	}
}

func (r reader) conversion(spec jsondoc.Value, beta bool) Conversion {
	v, ok := r.member(spec, "conversion")
	if !ok {
		return Conversion{Strategy: "None"}
	}
	c := Conversion{Strategy: r.text(v, "strategy")}
	webhook, client := v, "webhookClientConfig" // in v1beta1
	if !beta {
		if webhook, ok = r.member(v, "webhook"); !ok {
			return c
		}
		client = "clientConfig"
	}
	c.ReviewVersions = r.texts(webhook, "conversionReviewVersions")
	config, ok := r.member(webhook, client)
	if !ok {
		return c
	}
	c.Webhook = &Webhook{URL: r.optional(config, "url")}
	if b, ok := r.member(config, "caBundle"); ok {
		c.Webhook.CABundle, _ = decodeBytes(r.doc, b)
	}
	if s, ok := r.member(config, "service"); ok {
		c.Webhook.Service = &Service{
			Namespace: r.text(s, "namespace"), Name: r.text(s, "name"), Path: r.optional(s, "path"), Port: r.integer(s, "port", 443),
		}
	}
	return c
}

// versions reads the versions, and for v1beta1 what is said for all of them.
func (r reader) versions(d *CRD, spec jsondoc.Value, beta bool) {
	var all Version
	if beta {
		r.version(&all, spec, "validation", "/spec", beta, d.index)
		all.SelectableFields = nil // newer than v1beta1
	}
	list, ok := r.list(spec, "versions")
	if ok {
		d.Versions = make([]Version, 0, r.doc.Len(list))
	}
	for i, item := range r.doc.Items(list) {
		v := all
		v.at, v.Name = item, r.text(item, "name")
		v.Served, v.Storage = r.flag(item, "served", false), r.flag(item, "storage", false)
		v.Deprecated, v.DeprecationWarning = r.flag(item, "deprecated", false), r.optional(item, "deprecationWarning")
		r.version(&v, item, "schema", "/spec/versions/"+strconv.Itoa(i), beta, d.index)
		d.Versions = append(d.Versions, v)
	}
	if name := r.text(spec, "version"); beta && len(d.Versions) == 0 && name != "" {
		all.Name, all.Served, all.Storage = name, true, true
		d.Versions = []Version{all}
	}
}

// version reads what a version says, or what spec says for all versions. schema is the name
// of the member with the schema, pointer that of in.
func (r reader) version(v *Version, in jsondoc.Value, schema, pointer string, beta bool, x *index) {
	if sub, ok := r.member(in, "subresources"); ok {
		v.hasSubresource = true
		_, v.Status = r.member(sub, "status")
		v.Scale = nil
		if s, ok := r.member(sub, "scale"); ok {
			v.Scale = &Scale{r.text(s, "specReplicasPath"), r.text(s, "statusReplicasPath"), r.optional(s, "labelSelectorPath"), s}
		}
	}
	if list, ok := r.list(in, "additionalPrinterColumns"); ok {
		v.Columns = make([]Column, 0, r.doc.Len(list))
		for _, item := range r.doc.Items(list) {
			c := Column{
				Name: r.text(item, "name"), Type: r.text(item, "type"), Format: r.text(item, "format"), Description: r.text(item, "description"),
				Priority: r.integer(item, "priority", 0), JSONPath: r.text(item, "jsonPath"), at: item,
			}
			if beta && c.JSONPath == "" {
				c.JSONPath = r.text(item, "JSONPath")
			}
			v.Columns = append(v.Columns, c)
		}
	}
	if list, ok := r.list(in, "selectableFields"); ok {
		v.SelectableFields = make([]SelectableField, 0, r.doc.Len(list))
		for _, item := range r.doc.Items(list) {
			v.SelectableFields = append(v.SelectableFields, SelectableField{r.text(item, "jsonPath"), item})
		}
	}
	around, ok := r.member(in, schema)
	if !ok {
		return
	}
	v.hasSchema = true
	if s, ok := r.member(around, "openAPIV3Schema"); ok {
		v.Schema, v.Offset = r.doc.Raw(s), r.doc.Offset(s)
		v.Pointer = pointer + "/" + schema + "/openAPIV3Schema"
		v.source = x.source(s)
	}
}

func (r reader) status(v jsondoc.Value) Status {
	var s Status
	if names, ok := r.member(v, "acceptedNames"); ok {
		s.AcceptedNames = r.names(names)
	}
	_, s.hasStored = r.member(v, "storedVersions")
	s.StoredVersions = r.texts(v, "storedVersions")
	if n, ok := r.member(v, "observedGeneration"); ok {
		s.ObservedGeneration, _ = r.doc.Int64(n)
	}
	conditions, _ := r.list(v, "conditions")
	for _, item := range r.doc.Items(conditions) {
		c := Condition{Type: r.text(item, "type"), Status: r.text(item, "status")}
		if t, err := time.Parse(time.RFC3339, r.text(item, "lastTransitionTime")); err == nil {
			c.LastTransitionTime = t
		}
		s.Conditions = append(s.Conditions, c)
	}
	return s
}

func syntaxError(err error) error {
	if se, ok := err.(*jsondoc.SyntaxError); ok {
		return &espalier.SyntaxError{Offset: se.Offset, Msg: se.Msg}
	}
	return err
}
