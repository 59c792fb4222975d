package cli

import (
	"errors"
	"maps"
	"reflect"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/report"
)

// defaultNamespace is where kubectl puts objects that name none.
const defaultNamespace = "default"

// request is an object on its way into a server.
type request struct {
	version *compiled
	object  []byte // normalized
	old     []byte // the object as it is stored, if it is
	status  bool   // only the status is written
}

// judge validates what the server would store, and reports.
func (r *request) judge(out *verdict) {
	object, err := r.prepare(out)
	if err != nil {
		out.unreadable(err)
		return
	}
	scope := espalier.Cluster
	if r.version.definition.Namespaced {
		scope = espalier.Namespaced
	}
	found, err := r.version.schema.Validate(object, espalier.ValidateOptions{
		Old: r.old, Scope: scope, Rules: r.version.rules, ReadOnly: true,
	})
	if err != nil {
		out.unreadable(err)
		return
	}
	if r.status {
		found.Errors = ofStatus(found.Errors)
	}
	out.violations(r.version, object, found)
}

// ofStatus leaves out what is not looked at when status is written: the rest of
// the object was accepted before.
func ofStatus(all []espalier.Violation) []espalier.Violation {
	var kept []espalier.Violation
	for _, v := range all {
		switch v.Keyword {
		case "x-kubernetes-validations", "x-kubernetes-list-type", "metadata":
			kept = append(kept, v)
		default:
			if v.At == "status" || strings.HasPrefix(v.At, "status.") || strings.HasPrefix(v.At, "status[") {
				kept = append(kept, v)
			}
		}
	}
	if len(kept) == 1 && unchecked(kept[0]) {
		return nil // for errors that were left out
	}
	return kept
}

// unchecked reports whether a violation only says that rules could not be
// evaluated because of others.
func unchecked(v espalier.Violation) bool {
	return v.Keyword == "x-kubernetes-validations" && strings.HasPrefix(v.Detail, "some validation rules were not checked")
}

// prepare does to the object, and to the old one, what a server does before it
// validates: it fills in the namespace and a generated name, takes status away
// from those who may not write it, and keeps what clients cannot change. On the
// way it says what has nothing to do with the schema.
func (r *request) prepare(out *verdict) ([]byte, error) {
	object, err := decode(r.object)
	if err != nil {
		return nil, err
	}
	metadata := object.member("metadata")
	r.namespace(metadata, out)
	if metadata.text("name") == "" && metadata.text("generateName") != "" {
		base := metadata.text("generateName")
		metadata["name"] = base[:min(len(base), maxGenerated)] + "x2b4d"
	}
	if r.old == nil {
		if _, ok := object["status"]; ok && r.version.version.Status {
			r.ignored("a new object cannot have a status", out)
			delete(object, "status")
		}
		r.beside(object, nil, out)
		return object.encode()
	}
	old, err := decode(r.old)
	if err != nil {
		return nil, err
	}
	before := old.member("metadata")
	r.namespace(before, nil)
	keep(metadata, before)
	old["apiVersion"] = object["apiVersion"]
	switch status, was := object["status"], old["status"]; {
	case r.status:
		object = maps.Clone(old)
		object.set("status", status)
	case r.version.version.Status:
		if _, ok := object["status"]; ok && !reflect.DeepEqual(status, was) {
			r.ignored("an update of the object does not change its status", out)
		}
		object.set("status", was)
	}
	r.beside(object, old, out)
	if r.old, err = old.encode(); err != nil {
		return nil, err
	}
	return object.encode()
}

// maxGenerated is how much of a generateName the server takes.
const maxGenerated = 58

func (r *request) ignored(message string, out *verdict) {
	out.add(report.Diagnostic{Rule: ruleStatusIgnored, Path: "status", Pointer: "/status", Place: out.key("/status"),
		Message: "status: " + message})
}

// namespace fills the namespace in, or removes it where there is none.
func (r *request) namespace(metadata tree, out *verdict) {
	switch named := metadata.text("namespace"); {
	case r.version.definition.Namespaced && named == "":
		metadata["namespace"] = defaultNamespace
	case !r.version.definition.Namespaced && named != "":
		delete(metadata, "namespace")
		if out != nil {
			out.add(report.Diagnostic{Rule: ruleNamespaceIgnored, Path: "metadata.namespace", Pointer: "/metadata/namespace",
				Message: "metadata.namespace: " + r.version.definition.Kind + " is of cluster scope; the namespace is removed", Place: out.of("/metadata/namespace")})
		}
	}
}

// keep gives the metadata of a changed object what the server keeps of the old
// one. Manifests rarely have a resourceVersion: kubectl sends them as patches,
// to which the server adds its own.
func keep(metadata, before tree) {
	if before.text("resourceVersion") == "" {
		before["resourceVersion"] = "1"
	}
	if metadata.text("resourceVersion") == "" {
		metadata["resourceVersion"] = before["resourceVersion"]
	}
	if metadata.text("uid") == "" {
		metadata.set("uid", before["uid"])
	}
	for _, name := range []string{"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"} {
		if was, ok := before[name]; ok || name == "generation" {
			metadata.set(name, was)
		}
	}
}

// tree is a decoded object.
type tree map[string]any

func decode(object []byte) (tree, error) {
	doc, err := jsondoc.Parse(object, jsondoc.Limits{})
	if err != nil {
		return nil, err
	}
	defer doc.Release()
	t, ok := doc.Any(jsondoc.Root).(map[string]any)
	if !ok {
		return nil, errors.New("an object was expected at the root of the document")
	}
	return t, nil
}

func (t tree) encode() ([]byte, error) { return jsondoc.AppendAny(nil, map[string]any(t)) }

// member returns an object within another, which gets it if it has none. One
// that is something else is left for validation to refuse.
func (t tree) member(name string) tree {
	if m, ok := t[name].(map[string]any); ok {
		return m
	}
	m := make(map[string]any)
	if t[name] == nil {
		t[name] = m
	}
	return m
}

func (t tree) text(name string) string {
	s, _ := t[name].(string)
	return s
}

// set sets a member, or removes it.
func (t tree) set(name string, value any) {
	if value == nil {
		delete(t, name)
		return
	}
	t[name] = value
}
