package kinds

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
)

// A difference between stored objects is intended if conformance/DIVERGENCES.md has a row for it. It is counted apart.
type difference struct {
	row   string   // its name in DIVERGENCES.md
	kind  string   // all kinds if empty
	rules []string // what the miss begins with
	// asked reports whether the request is one that the row is about.
	asked func(*Request) bool
	// refused, if not nil, reports whether a refusal there is intended to be none here: a miss of the whole answer.
	refused func(answer.Miss) bool
}

var intended = []difference{
	{"token-review-status", "tokenreviews.authentication.k8s.io", []string{"status.authenticated", "status.user", "status.audiences", "status.error"}, func(r *Request) bool {
		return r.part("status") != nil
	}, nil},
	{"health-for-all", "subjectaccessreviews.authorization.k8s.io", []string{"status.allowed "}, func(r *Request) bool {
		attributes, _ := r.part("spec")["nonResourceAttributes"].(map[string]any)
		return slices.Contains([]any{"/healthz", "/livez", "/readyz"}, attributes["path"])
	}, nil},
	{"patch-without-version", "", nil, unversioned, func(answer.Miss) bool { return true }},
	{"quota-status-metadata", "resourcequotas", append([]string{"metadata.annotations"}, written...), ofStatus, ofMetadata},
	{"namespace-subresource-metadata", "namespaces", written, ofStatus, ofMetadata},
	{"request-subresource-metadata", "certificatesigningrequests.certificates.k8s.io", written, func(r *Request) bool { return r.Sub != "" }, ofMetadata},
}

// written is the metadata that a subresource of another server writes.
var written = []string{"metadata.labels", "metadata.finalizers", "metadata.ownerReferences", "metadata.managedFields"}

func ofStatus(r *Request) bool { return r.Sub == "status" }

// ofMetadata reports whether a refusal is about metadata that is not written here.
func ofMetadata(m answer.Miss) bool { return strings.Contains(m.Rule, " metadata.") }

// unversioned reports whether a request is a patch that removes apiVersion.
func unversioned(r *Request) bool {
	switch body := r.Body.(type) {
	case map[string]any: // a merge patch
		version, ok := body["apiVersion"]
		return r.Type == "application/merge-patch+json" && ok && (version == nil || version == "")
	case []any: // a JSON patch
		return slices.ContainsFunc(body, func(e any) bool {
			op, _ := e.(map[string]any)
			return op["path"] == "/apiVersion" && (op["op"] == "remove" || op["value"] == nil || op["value"] == "")
		})
	}
	return false
}

// part is a field of the object that is sent.
func (r *Request) part(name string) map[string]any {
	object, _ := r.Body.(map[string]any)
	part, _ := object[name].(map[string]any)
	return part
}

// leaveOut removes the intended differences from an outcome, and returns the names of their rows.
func leaveOut(k *Kind, r *Request, o *answer.Outcome) []string {
	if !o.There {
		return leaveOutRefusal(k, r, o)
	}
	if !o.Here || o.Equal {
		return nil
	}
	var rows []string
	stored := func(m answer.Miss) bool { return m.What == answer.StoredMiss }
	o.Misses = slices.DeleteFunc(o.Misses, func(m answer.Miss) bool {
		i := slices.IndexFunc(intended, func(d difference) bool {
			return d.about(k, r) && slices.ContainsFunc(d.rules, func(rule string) bool { return strings.HasPrefix(m.Rule, rule) })
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

func (d difference) about(k *Kind, r *Request) bool {
	return (d.kind == "" || d.kind == k.ID) && d.asked(r)
}

// leaveOutRefusal is leaveOut for a request that is refused there. It is counted as if both servers had answered alike.
func leaveOutRefusal(k *Kind, r *Request, o *answer.Outcome) []string {
	for _, d := range intended {
		if d.refused == nil || len(o.Misses) == 0 || !d.about(k, r) || slices.ContainsFunc(o.Misses, func(m answer.Miss) bool { return !d.refused(m) }) {
			continue
		}
		o.There, o.SameField, o.SameText, o.Equal, o.Misses = o.Here, true, true, true, nil
		return []string{d.row}
	}
	return nil
}
