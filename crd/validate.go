package crd

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// ValidateOptions say how a CRD comes to an API server.
type ValidateOptions struct {
	// Old is the CRD before the change, as it is stored; nil if the CRD is created.
	Old *CRD
	// Verbatim validates the CRD, and Old, as they are going to be stored. Otherwise they are
	// what a client sends: the server writes status itself and keeps metadata that the client
	// leaves out.
	Verbatim bool
	// Strict asks for more warnings; see [espalier.CheckOptions].
	Strict bool
	// CompatibilityVersion is the Kubernetes version, such as "1.36", whose
	// formats are known and whose functions rules may use; see [cel.CheckOptions].
	CompatibilityVersion string
	// Undecodable, if not nil, is called for each value that no server can decode. Servers
	// stop at the first; Validate then goes on as if these values were left out.
	Undecodable func(*espalier.SyntaxError)
}

// Validate reports what an API server reports when the CRD, of apiextensions.k8s.io/v1, is
// created or, with Old, updated: errors and warnings about its metadata, names, versions and
// conversion, and what [Check] reports about its schemas. Findings are sorted by path and
// text. Their paths are those of the server, which calls a schema that all versions share
// spec.validation.openAPIV3Schema; their pointers and offsets lead to the place in the CRD.
//
// The error is for a CRD that no server can decode: a *[espalier.SyntaxError] with the place.
func Validate(d *CRD, o ValidateOptions) ([]finding.Finding, error) {
	c := &checker{o: o, doc: d.index.get(), crd: d, room: [2]int{maxRendered, maxRendered}}
	if d.APIVersion == apiVersionV1beta1 {
		c.apiVersion()
		return c.sorted(), nil
	}
	var err error
	if c.new, err = load(d, c.note, o.Undecodable); err != nil {
		return nil, err
	}
	c.ratchet = newCRD()
	if o.Old != nil {
		if o.Old.APIVersion == apiVersionV1beta1 {
			return nil, fmt.Errorf("the old CRD is in %s; use it as the API server returns it, in %s", apiVersionV1beta1, apiVersionV1)
		}
		if c.old, err = load(o.Old, nil, nil); err != nil {
			return nil, fmt.Errorf("the old CRD: %w", err)
		}
	}
	if !o.Verbatim {
		c.prepare()
	}
	if c.old != nil {
		c.ratchet = changed(c.new, c.old, before134(o.CompatibilityVersion))
	}
	c.metadata()
	if err := c.spec(); err != nil {
		return nil, err
	}
	c.status()
	return c.sorted(), nil
}

// load checks the shape of a CRD and reads it.
func load(d *CRD, note func(finding.ID, *field.Error, where), rest func(*espalier.SyntaxError)) (*model, error) {
	s := shaper{doc: d.index.get(), note: note, rest: rest}
	if err := s.check(jsondoc.Root, crdShape); err != nil {
		return nil, err
	}
	return newModel(d, rest)
}

// checker collects the errors that an API server finds in a CRD.
type checker struct {
	o        ValidateOptions
	crd      *CRD
	doc      *jsondoc.Doc
	new, old *model // old is nil if the CRD is created
	ratchet  ratchet

	found     []finding.Finding
	room      [2]int // bytes left for findings, by severity
	shortened bool   // there may be more to find
}

// maxRendered bounds the bytes rendered for the findings of one severity, beside
// those about schemas, which have their own bound.
const maxRendered = 16 << 20

// at returns the spot of a member of the CRD.
func (c *checker) at(names ...string) spot {
	s := spot{where: where{doc: c.doc}.to(names...)}
	for i, n := range names {
		if i > 0 {
			s.path += "."
		}
		s.path += n
	}
	return s
}

// note adds a finding with the identifier of its check.
func (c *checker) note(id finding.ID, e *field.Error, w where) {
	c.keep(finding.Finding{Check: id, Severity: finding.Warning, Type: e.Type, Path: e.Field, BadValue: e.BadValue, Detail: e.Detail, Pointer: w.pointer, Offset: w.offset()})
}

func (c *checker) keep(f finding.Finding) {
	if c.room[f.Severity] <= 0 {
		return
	}
	c.room[f.Severity] -= len(f.Path) + len(f.Pointer) + len(f.Detail) + sizeOf(f.BadValue) + 64
	c.found = append(c.found, f)
}

// sizeOf estimates the bytes that rendering a bad value takes.
func sizeOf(bad any) int {
	switch x := bad.(type) {
	case string:
		return len(x)
	case []byte:
		return len(x) * 4 / 3
	case []string:
		n := 0
		for _, s := range x {
			n += len(s) + 3
		}
		return n
	case []metav1.OwnerReference:
		n := 0
		for i := range x {
			n += 100 + len(x[i].Kind) + len(x[i].Name) + len(x[i].UID) + len(x[i].APIVersion)
		}
		return n
	case *versionsDump:
		return x.size
	}
	return 0
}

func (c *checker) add(r checkID, s spot, kind field.ErrorType, bad any, detail string) {
	c.keep(finding.Finding{
		Check: Checks[r].ID, Severity: Checks[r].Severity, Type: kind, Path: s.path, BadValue: bad, Detail: detail,
		Pointer: s.pointer, Offset: s.offset(),
	})
}

func (c *checker) invalid(r checkID, s spot, bad any, detail string) {
	c.add(r, s, field.ErrorTypeInvalid, bad, detail)
}

func (c *checker) required(r checkID, s spot, detail string) {
	c.add(r, s, field.ErrorTypeRequired, "", detail)
}

func (c *checker) forbidden(r checkID, s spot, detail string) {
	c.add(r, s, field.ErrorTypeForbidden, "", detail)
}

// oneOf reports a value that is not among the supported ones.
func (c *checker) oneOf(r checkID, s spot, value string, supported ...string) {
	switch {
	case value == "":
		c.required(r, s, "")
	case !slices.Contains(supported, value):
		e := field.NotSupported(nil, value, supported)
		c.add(r, s, e.Type, e.BadValue, e.Detail)
	}
}

func (c *checker) apiVersion() {
	c.invalid(apiVersionRemoved, c.at("apiVersion"), apiVersionV1beta1,
		"no API server serves it since Kubernetes 1.22; write the CRD in "+apiVersionV1)
}

// sorted returns the findings, sorted by path and text.
func (c *checker) sorted() []finding.Finding {
	if c.shortened || c.room[finding.Error] <= 0 || c.room[finding.Warning] <= 0 {
		c.found = append(c.found, finding.Finding{
			Check: Checks[tooManyFindings].ID, Severity: finding.Warning, Type: field.ErrorTypeTooMany, BadValue: len(c.found),
			Detail: "further findings are left out",
		})
	}
	sortFindings(c.found)
	return c.found
}

// sortFindings sorts by path and text. Texts are rendered where paths are equal,
// and once.
func sortFindings(list []finding.Finding) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	texts := make([]string, len(list))
	text := func(i int) string {
		if texts[i] == "" {
			texts[i] = list[i].Error()
		}
		return texts[i]
	}
	slices.SortStableFunc(order, func(i, j int) int {
		if c := cmp.Compare(list[i].Path, list[j].Path); c != 0 {
			return c
		}
		return cmp.Compare(text(i), text(j))
	})
	sorted := make([]finding.Finding, len(list))
	for i, k := range order {
		sorted[i] = list[k]
	}
	copy(list, sorted)
}
