package mistakes

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

//go:embed cases.yaml
var table []byte

type entry struct {
	Name     string
	Schema   map[string]any
	Next     map[string]any
	CRD      map[string]any
	NextCRD  map[string]any
	Version  map[string]any
	Metadata map[string]any
	Stored   []string
	Object   map[string]any
	Old      map[string]any
}

// A Form is what a case is about.
type Form string

// The forms.
const (
	Object Form = "object"        // a new object
	Update Form = "update"        // an object and its old state
	CRD    Form = "CRD"           // a new CRD
	Change Form = "change of CRD" // a CRD and its old state; the object, if there is one, is of the old CRD
)

// A Case is a mistake, or something correct. Documents that it does not need are nil.
type Case struct {
	Name      string
	Form      Form
	Group     string // no other case has it
	CRD, Next []byte // Next is the changed CRD
	Object    []byte
	Old       []byte // the object before an update
}

// Version is the version of all objects, Kind their kind.
const (
	Version = "v1"
	Kind    = "Web"
)

// Cases returns the cases in the order of the table.
func Cases() ([]Case, error) {
	var entries []entry
	if err := yaml.UnmarshalStrict(table, &entries); err != nil {
		return nil, err
	}
	var cases []Case
	for i := range entries {
		e := &entries[i]
		c := Case{Name: e.Name, Group: strings.ReplaceAll(strings.ToLower(e.Name), " ", "-") + ".example"}
		c.CRD = e.document(c.Group, e.Schema, e.CRD)
		c.Object, c.Old = e.object(c.Group, e.Object), e.object(c.Group, e.Old)
		switch {
		case e.Next != nil || e.NextCRD != nil:
			c.Form, c.Next = Change, e.document(c.Group, e.Next, e.NextCRD)
		case e.Old != nil:
			c.Form = Update
		case e.Object != nil:
			c.Form = Object
		default:
			c.Form = CRD
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// document is the CRD with the schema of spec.
func (e *entry) document(group string, spec, more map[string]any) []byte {
	version := map[string]any{"name": Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
		"type": "object", "properties": map[string]any{"spec": spec},
	}}}
	maps.Copy(version, e.Version)
	s := map[string]any{
		"group": group, "scope": "Namespaced", "versions": []any{version},
		"names": map[string]any{"kind": Kind, "listKind": Kind + "List", "plural": "webs", "singular": "web"},
	}
	maps.Copy(s, more)
	doc := map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "webs." + group}, "spec": s}
	if e.Stored != nil {
		doc["status"] = map[string]any{"storedVersions": e.Stored}
	}
	return oracle.Marshal(doc)
}

func (e *entry) object(group string, spec map[string]any) []byte {
	if spec == nil {
		return nil
	}
	metadata := map[string]any{"name": "a", "namespace": "default"}
	maps.Copy(metadata, e.Metadata)
	return oracle.Marshal(map[string]any{"apiVersion": group + "/" + Version, "kind": Kind, "metadata": metadata, "spec": spec})
}

// A Resource answers requests for the objects of a CRD.
type Resource interface {
	Do(q oracle.Operation) oracle.Answer
}

// An Evaluator says what a server does with CRDs and objects.
type Evaluator struct {
	CRD      func(doc []byte, o oracle.CRDOptions) oracle.CRDResult
	Resource func(doc []byte, version string) (Resource, error)
}

// Upstream is the evaluator with upstream's code.
func Upstream() Evaluator {
	return Evaluator{CRD: oracle.CRD, Resource: func(doc []byte, version string) (Resource, error) { return oracle.NewResource(doc, version) }}
}

// Evaluate returns why a server does not accept the case; nothing if it does. It fails if the case is none: its old state must be accepted.
func (e Evaluator) Evaluate(c *Case) ([]string, error) {
	refused := crdErrors(e.CRD(c.CRD, oracle.CRDOptions{}))
	if c.Form == CRD {
		return refused, nil
	}
	if len(refused) > 0 {
		return nil, fmt.Errorf("%s: the CRD is refused: %q", c.Name, refused)
	}
	switch {
	case c.Form == Object:
		return e.create(c.CRD, c.Object)
	case c.Form == Update:
		return e.update(c)
	}
	if c.Object != nil {
		refused, err := e.create(c.CRD, c.Object)
		if err != nil {
			return nil, err
		}
		if len(refused) > 0 {
			return nil, fmt.Errorf("%s: the object of the old CRD is refused: %q", c.Name, refused)
		}
	}
	if refused := crdErrors(e.CRD(c.Next, oracle.CRDOptions{Old: c.CRD})); len(refused) > 0 || c.Object == nil {
		return refused, nil
	}
	return e.create(c.Next, c.Object)
}

func (e Evaluator) create(crd, object []byte) ([]string, error) {
	r, err := e.Resource(crd, Version)
	if err != nil {
		return nil, err
	}
	return Refusals(r.Do(oracle.Operation{Verb: oracle.Create, Body: object})), nil
}

func (e Evaluator) update(c *Case) ([]string, error) {
	r, err := e.Resource(c.CRD, Version)
	if err != nil {
		return nil, err
	}
	body, err := withVersion(c.Object)
	if err != nil {
		return nil, err
	}
	stored, err := withVersion(c.Old)
	if err != nil {
		return nil, err
	}
	answer := r.Do(oracle.Operation{Verb: oracle.Update, Body: body, Old: stored})
	if answer.BadOld() {
		return nil, fmt.Errorf("%s: no server has stored the old object: %s", c.Name, answer.Refused)
	}
	return Refusals(answer), nil
}

// withVersion returns an object as it is in storage: an update needs a resourceVersion, and the uid of what is stored.
func withVersion(object []byte) ([]byte, error) {
	o, err := oracle.Decode(object)
	if err != nil {
		return nil, err
	}
	metadata, _ := o["metadata"].(map[string]any)
	metadata["resourceVersion"], metadata["uid"], metadata["generation"] = "1", string(oracle.UID), int64(1)
	metadata["creationTimestamp"] = oracle.Created.UTC().Format("2006-01-02T15:04:05Z")
	return oracle.Marshal(o), nil
}

// Refusals are the reasons of an answer, with strict field validation: none if the request succeeds.
func Refusals(a oracle.Answer) []string {
	switch {
	case a.Panic != nil:
		return []string{fmt.Sprint("panic: ", a.Panic)}
	case a.Refused != "":
		return []string{a.Refused}
	case a.Foreign != "":
		return []string{"of the kind " + a.Foreign}
	}
	return slices.Concat(a.Strict, a.Errors)
}

func crdErrors(r oracle.CRDResult) []string {
	switch {
	case r.Panic != nil:
		return []string{fmt.Sprint("panic: ", r.Panic)}
	case r.Undecodable != nil:
		return []string{r.Undecodable.Error()}
	}
	return r.Errors
}
