package kinds

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
)

// A difference between stored objects is intended if conformance/DIVERGENCES.md has a row for it. It is counted apart.
type difference struct {
	row   string // its name in DIVERGENCES.md
	kind  string
	rules []string // what the miss begins with
	// asked reports whether the request is one that the row is about.
	asked func(*Request) bool
}

var intended = []difference{
	{"token-review-status", "tokenreviews.authentication.k8s.io", []string{"status.user", "status.audiences", "status.error"}, func(r *Request) bool {
		return r.part("status") != nil
	}},
	{"health-for-all", "subjectaccessreviews.authorization.k8s.io", []string{"status.allowed "}, func(r *Request) bool {
		attributes, _ := r.part("spec")["nonResourceAttributes"].(map[string]any)
		return slices.Contains([]any{"/healthz", "/livez", "/readyz"}, attributes["path"])
	}},
	{"namespace-subresource-metadata", "namespaces", written, ofStatus},
	{"request-subresource-metadata", "certificatesigningrequests.certificates.k8s.io", written, func(r *Request) bool { return r.Sub != "" }},
}

// written is the metadata that a subresource of another server writes.
var written = []string{"metadata.labels", "metadata.finalizers", "metadata.ownerReferences", "metadata.managedFields"}

func ofStatus(r *Request) bool { return r.Sub == "status" }

// part is a field of the object that is sent.
func (r *Request) part(name string) map[string]any {
	object, _ := r.Body.(map[string]any)
	part, _ := object[name].(map[string]any)
	return part
}

// leaveOut removes the intended differences from an outcome, and returns the names of their rows.
func leaveOut(k *Kind, r *Request, o *answer.Outcome) []string {
	if !o.There || !o.Here || o.Equal {
		return nil
	}
	var rows []string
	stored := func(m answer.Miss) bool { return m.What == answer.StoredMiss }
	o.Misses = slices.DeleteFunc(o.Misses, func(m answer.Miss) bool {
		i := slices.IndexFunc(intended, func(d difference) bool {
			return d.kind == k.ID && d.asked(r) && slices.ContainsFunc(d.rules, func(rule string) bool { return strings.HasPrefix(m.Rule, rule) })
		})
		if i < 0 || !stored(m) {
			return false
		}
		if !slices.Contains(rows, intended[i].row) {
			rows = append(rows, intended[i].row)
		}
		return true
	})
	o.Equal = !slices.ContainsFunc(o.Misses, stored)
	return rows
}
