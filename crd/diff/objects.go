package diff

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Fate is a set of what becomes of an object.
type Fate uint8

// What can become of an object.
const (
	// BecomesInvalid: the old CRD accepts it, the new one refuses it.
	BecomesInvalid Fate = 1 << iota
	// LosesFields: the new CRD prunes what the old one keeps.
	LosesFields
	// NewlyDefaulted: the new CRD fills in what the old one does not.
	NewlyDefaulted
	// KeepsFields: the new CRD keeps what the old one prunes.
	KeepsFields
	// ChangesOtherwise: what is stored differs in another way, such as by a
	// default that has changed or is gone.
	ChangesOtherwise
	// NotServed: the new CRD does not serve its version.
	NotServed
	// Unknown: it is not an object of the resource, or of none of the old
	// CRD's versions; the other members say nothing.
	Unknown
)

// String lists the members of the set.
func (f Fate) String() string {
	var names []string
	for i, name := range []string{"becomes invalid", "loses fields", "is newly defaulted", "keeps fields", "changes otherwise", "is not served", "is not an object of the resource"} {
		if f>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Outcome is what becomes of one object when the CRD changes. The zero
// Fate is for an object that stays as it is.
type Outcome struct {
	Object      int    // its place among the objects given
	Name        string // namespace/name, as far as the object says
	Version     string // of its apiVersion
	Fate        Fate
	Invalid     []espalier.Violation // violations of the new CRD that the old one does not have
	WasInvalid  bool                 // the old CRD refuses it as well
	Pruned      []string             // paths
	Defaulted   []string             // paths
	Kept        []string             // paths
	Explanation string               // for NotServed, Unknown and ChangesOtherwise
}

// Objects runs objects through both CRDs, as new objects that clients
// send, and says what becomes of each. It fails if a schema does not compile.
func Objects(old, now *crd.CRD, objects [][]byte, limits espalier.Limits) ([]Outcome, error) {
	before, after := newEvaluator(old, "old"), newEvaluator(now, "new")
	list := make([]Outcome, len(objects))
	for i, object := range objects {
		list[i] = Outcome{Object: i}
		if err := list[i].evaluate(before, after, object, limits); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// evaluator validates objects with one CRD.
type evaluator struct {
	*crd.CRD
	which    string
	compiled map[string]*compiled
}

type compiled struct {
	schema *espalier.Schema // nil if every object is valid
	rules  *espalier.Rules
	only   bool // the schema validates, and nothing is pruned or filled in
}

func newEvaluator(d *crd.CRD, which string) *evaluator {
	return &evaluator{d, which, map[string]*compiled{}}
}

func (c *evaluator) version(v *crd.Version) (*compiled, error) {
	if x, ok := c.compiled[v.Name]; ok {
		return x, nil
	}
	x := &compiled{only: c.PreserveUnknownFields}
	if v.Schema != nil {
		var err error
		if x.schema, x.rules, err = v.Compile(espalier.CompileOptions{Stored: true, ValidationOnly: x.only}); err != nil {
			return nil, fmt.Errorf("the %s CRD: version %s: %w", c.which, v.Name, err)
		}
	}
	c.compiled[v.Name] = x
	return x, nil
}

// result is the object that a CRD stores, or its errors.
type result struct {
	bytes     []byte
	refused   error // the object cannot be one
	errors    []espalier.Violation
	pruned    []string
	defaulted []string
}

func (c *evaluator) evaluate(v *crd.Version, object []byte, limits espalier.Limits) (result, error) {
	x, err := c.version(v)
	if err != nil {
		return result{}, err
	}
	validate := espalier.ValidateOptions{Rules: x.rules, Limits: limits}
	if x.schema == nil || x.only {
		r := result{bytes: object}
		if x.schema != nil {
			validation, err := x.schema.Validate(object, validate)
			r.refused, r.errors = err, validation.Errors
		}
		return r, nil
	}
	var report espalier.Report
	admitted, validation, err := x.schema.Admit(object, espalier.AdmitOptions{Report: &report, Validate: validate})
	if err != nil {
		return result{refused: err}, nil
	}
	r := result{bytes: admitted.Bytes, errors: validation.Errors, pruned: report.Pruned()}
	for i := range report.Changes {
		if report.Changes[i].What == espalier.Defaulted {
			r.defaulted = append(r.defaulted, report.Changes[i].Path)
		}
	}
	return r, nil
}

func (x *Outcome) evaluate(before, after *evaluator, object []byte, limits espalier.Limits) error {
	version, name, problem := identify(before, object, limits)
	x.Name, x.Version = name, version
	was := before.Version(version)
	if problem == "" && was == nil {
		problem = fmt.Sprintf("the old CRD has no version %q", version)
	}
	if problem != "" {
		x.Fate, x.Explanation = Unknown, problem
		return nil
	}
	is := after.Version(version)
	if before.Group != after.Group || before.Kind != after.Kind || is == nil || !is.Served {
		x.Fate |= NotServed
		x.Explanation = fmt.Sprintf("the new CRD does not serve %s of %s", after.Kind, version)
		if is == nil {
			is = after.StorageVersion() // what is stored is read in this one
		}
	}
	if is == nil {
		return nil
	}
	a, err := before.evaluate(was, object, limits)
	if err != nil {
		return err
	}
	b, err := after.evaluate(is, object, limits)
	if err != nil {
		return err
	}
	x.compare(&a, &b)
	return nil
}

// compare records the differences of the second result from the first.
func (x *Outcome) compare(a, b *result) {
	x.WasInvalid = a.refused != nil || len(a.errors) > 0
	if b.refused != nil {
		if a.refused == nil {
			x.Fate |= BecomesInvalid
			x.Explanation = b.refused.Error()
		}
		return
	}
	known := map[string]bool{}
	for _, e := range a.errors {
		known[e.Error()] = true
	}
	for _, e := range b.errors {
		if !known[e.Error()] {
			x.Invalid = append(x.Invalid, e)
		}
	}
	if len(x.Invalid) > 0 {
		x.Fate |= BecomesInvalid
	}
	if x.Pruned = minus(b.pruned, a.pruned); len(x.Pruned) > 0 {
		x.Fate |= LosesFields
	}
	if x.Defaulted = minus(b.defaulted, a.defaulted); len(x.Defaulted) > 0 {
		x.Fate |= NewlyDefaulted
	}
	if x.Kept = minus(a.pruned, b.pruned); len(x.Kept) > 0 {
		x.Fate |= KeepsFields
	}
	if x.Fate&^NotServed == 0 && a.refused == nil && string(a.bytes) != string(b.bytes) {
		x.Fate |= ChangesOtherwise
		x.Explanation = "the stored object differs: a default changed or was removed, or the API server drops or keeps a null"
	}
}

func minus(list, without []string) []string {
	return slices.DeleteFunc(slices.Clone(list), sets.New(without...).Has)
}

// identify reads of what kind and version an object is and what it is called.
func identify(d *evaluator, object []byte, limits espalier.Limits) (version, name, problem string) {
	doc, err := jsondoc.Parse(object, jsondoc.Limits(limits))
	if err != nil {
		var syntax *jsondoc.SyntaxError
		if errors.As(err, &syntax) {
			return "", "", fmt.Sprintf("not JSON: %s at byte %d", syntax.Msg, syntax.Offset)
		}
		return "", "", err.Error()
	}
	defer doc.Release()
	text := func(path ...string) string {
		v := jsondoc.Root
		for _, name := range path {
			m, ok := doc.Get(v, name)
			if !ok {
				return ""
			}
			v = m
		}
		if doc.Kind(v) != jsondoc.String {
			return ""
		}
		return doc.Text(v)
	}
	name = text("metadata", "name")
	if ns := text("metadata", "namespace"); ns != "" {
		name = ns + "/" + name
	}
	group, version, ok := strings.Cut(text("apiVersion"), "/")
	if kind := text("kind"); !ok || group != d.Group || kind != d.Kind {
		return version, name, fmt.Sprintf("it is a %s of %q, not a %s of %s", kind, text("apiVersion"), d.Kind, d.Group)
	}
	return version, name, ""
}
