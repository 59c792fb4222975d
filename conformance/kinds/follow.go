package kinds

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// A step changes a stored object in one way.
type step struct {
	weight int
	fits   func(*Kind) bool
	build  func(*script) *Request
}

func whole(k *Kind) bool { return k.can("update") }

func patchable(k *Kind) bool { return k.can("patch") }

// subresources that take the whole object.
var subresources = []string{"status", "approval", "resize", "ephemeralcontainers"}

// steps are all ways, in an order that must stay: the choice depends on it.
var steps = []step{
	{26, whole, (*script).update},
	{12, patchable, (*script).mergePatch},
	{10, patchable, (*script).jsonPatch},
	{12, patchable, (*script).strategicPatch},
	{16, patchable, (*script).apply},
	{16, func(k *Kind) bool { return len(k.subresources()) > 0 }, (*script).subresource},
	{6, func(k *Kind) bool { _, ok := k.Sub["scale"]; return ok }, (*script).scale},
	{3, func(k *Kind) bool { _, ok := k.Sub["eviction"]; return ok }, (*script).evict},
	{3, func(k *Kind) bool { _, ok := k.Sub["binding"]; return ok }, (*script).bind},
	{4, func(k *Kind) bool { return k.can("create") }, (*script).again},
	{4, whole, (*script).missing},
}

// subresources returns those of the kind that take the whole object.
func (k *Kind) subresources() []string {
	var out []string
	for _, name := range subresources {
		if sub, ok := k.Sub[name]; ok && slices.Contains(sub.Verbs, "update") {
			out = append(out, name)
		}
	}
	return out
}

// follow sends one more request. It returns false if no other one can be compared.
func (s *script) follow(ctx context.Context) (bool, error) {
	sum := 0
	for _, st := range steps {
		if st.fits(s.kind) {
			sum += st.weight
		}
	}
	if sum == 0 {
		return false, nil
	}
	n := s.src.IntN(sum)
	for _, st := range steps {
		if !st.fits(s.kind) {
			continue
		}
		if n -= st.weight; n < 0 {
			return s.write(ctx, st.build(s))
		}
	}
	return false, nil
}

// changed returns the stored object with changes. An update of an unchanged object must change nothing.
func (s *script) changed() map[string]any {
	n := generator.Number(s.src)
	object, _ := generator.Mutate(s.src, s.stored, s.kind.Schema, s.kind.Known, n)
	return object
}

func (s *script) request(method, contentType, purpose string, body any) *Request {
	return &Request{Method: method, Path: s.kind.path(), Name: s.name, Query: s.query(), Type: contentType, Body: body, Purpose: purpose}
}

func (s *script) update() *Request {
	object := s.changed()
	if meta, ok := object["metadata"].(map[string]any); ok {
		if s.src.Chance(20) {
			delete(meta, "resourceVersion")
		}
		if s.src.Chance(50) {
			delete(meta, "managedFields")
		}
	}
	return s.request(http.MethodPut, "application/json", "update", object)
}

func (s *script) mergePatch() *Request {
	return s.request(http.MethodPatch, "application/merge-patch+json", "merge patch", generator.Merge(s.stored, s.changed()))
}

func (s *script) jsonPatch() *Request {
	return s.request(http.MethodPatch, "application/json-patch+json", "JSON patch", generator.JSONPatch(s.src, s.stored, s.changed()))
}

func (s *script) strategicPatch() *Request {
	return s.request(http.MethodPatch, "application/strategic-merge-patch+json", "strategic patch", generator.Strategic(s.src, s.kind.Schema, s.stored, s.changed()))
}

// apply applies a change of the stored object, or one of the seed, as a client does that keeps its manifest.
func (s *script) apply() *Request {
	object := s.changed()
	if s.src.Chance(50) {
		object, _ = generator.Mutate(s.src, s.seed, s.kind.Schema, s.kind.Known, generator.Number(s.src))
	}
	return s.applyRequest(object, s.name)
}

func (s *script) applyRequest(object map[string]any, name any) *Request {
	q := s.query()
	q.Set("fieldManager", fieldManagers[s.src.IntN(len(fieldManagers))])
	if s.src.Chance(60) {
		q.Set("force", "true")
	}
	body := generator.Applied(s.src, object)
	if meta, ok := body["metadata"].(map[string]any); ok && s.stored != nil && s.src.Chance(90) {
		meta["name"] = name
	}
	return &Request{Method: http.MethodPatch, Path: s.kind.path(), Name: name, Query: q, Type: "application/apply-patch+yaml", Body: body, Purpose: "apply"}
}

// subresource writes the status, or another subresource that takes the object. Most requests change the status; some change the rest.
func (s *script) subresource() *Request {
	names := s.kind.subresources()
	name := names[s.src.IntN(len(names))]
	object := generator.Copy(s.stored).(map[string]any)
	if name == "status" || name == "approval" {
		if status, ok := s.seed["status"]; ok && s.src.Chance(80) {
			object["status"] = generator.Copy(status)
		} else if s.kind.Schema.Properties["status"] != nil {
			object["status"] = generator.Value(s.src, s.kind.Schema.Properties["status"], s.kind.Known, "status")
		}
	}
	if n := generator.Number(s.src); n > 0 {
		object = s.mutatePart(object, name, n)
	}
	var r *Request
	switch s.src.IntN(6) {
	case 0:
		r = s.request(http.MethodPatch, "application/merge-patch+json", "merge patch of "+name, generator.Merge(s.stored, object))
	case 1:
		r = s.request(http.MethodPatch, "application/strategic-merge-patch+json", "strategic patch of "+name, generator.Strategic(s.src, s.kind.Schema, s.stored, object))
	case 2:
		r = s.request(http.MethodPatch, "application/json-patch+json", "JSON patch of "+name, generator.JSONPatch(s.src, s.stored, object))
	case 3:
		r = s.applyRequest(object, s.name)
		r.Purpose = "apply of " + name
		// Applied leaves the status out, as clients do that write the rest.
		if status, ok := object["status"]; ok {
			r.Body.(map[string]any)["status"] = generator.Copy(status)
		}
		if s.src.Chance(60) {
			delete(r.Body.(map[string]any), "spec")
		}
	default:
		r = s.request(http.MethodPut, "application/json", "update of "+name, object)
	}
	r.Sub = name
	return r
}

// mutatePart changes the status only, mostly: changes elsewhere have no effect.
func (s *script) mutatePart(object map[string]any, name string, n int) map[string]any {
	status, ok := object["status"].(map[string]any)
	if !ok || name != "status" && name != "approval" || s.src.Chance(15) {
		object, _ = generator.Mutate(s.src, object, s.kind.Schema, s.kind.Known, n)
		return object
	}
	object["status"], _ = generator.Mutate(s.src, status, s.kind.Schema.Properties["status"], s.kind.Known, n)
	return object
}

// again creates an object of a name that is taken. Servers differ in what they validate before they notice.
func (s *script) again() *Request {
	object, _ := generator.Mutate(s.src, s.seed, s.kind.Schema, s.kind.Known, s.src.IntN(2))
	if meta, ok := object["metadata"].(map[string]any); ok && s.src.Chance(80) {
		meta["name"] = s.name
	}
	r := &Request{Method: http.MethodPost, Path: s.kind.path(), Query: s.query(), Type: "application/json", Body: object, Purpose: "create again"}
	r.Query.Set("dryRun", "All")
	return r
}

// missing replaces an object that does not exist. Kinds differ in whether this creates it.
func (s *script) missing() *Request {
	object, _ := generator.Mutate(s.src, s.seed, s.kind.Schema, s.kind.Known, s.src.IntN(2))
	name := answer.Name(s.seed) + "-missing"
	if meta, ok := object["metadata"].(map[string]any); ok && s.src.Chance(80) {
		meta["name"] = name
		if s.src.Chance(20) {
			meta["uid"], meta["resourceVersion"] = "0f1c4f0a-5f0e-4f6c-9f8d-0a1b2c3d4e5f", "1"
		}
	}
	r := s.request(http.MethodPut, "application/json", "update of none", object)
	r.Name = name
	r.Query.Set("dryRun", "All")
	return r
}

func (s *script) scale() *Request {
	replicas := []any{int64(0), int64(1), int64(5), int64(-1), int64(2147483647), int64(2147483648), "3", nil, 1.5}
	spec := map[string]any{"replicas": replicas[s.src.IntN(len(replicas))]}
	body := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": s.name, "namespace": s.kind.namespace()}, "spec": spec}
	r := &Request{Method: http.MethodPut, Path: s.kind.path(), Name: s.name, Sub: "scale", Query: url.Values{"fieldManager": {"kinds"}}, Type: "application/json", Body: body, Purpose: "update of scale"}
	switch s.src.IntN(6) {
	case 0:
		delete(spec, "replicas")
	case 1:
		body["metadata"] = map[string]any{"name": "another"}
	case 2:
		r.Method, r.Type, r.Body, r.Purpose = http.MethodPatch, "application/merge-patch+json", map[string]any{"spec": spec}, "merge patch of scale"
	case 3:
		body["spec"], body["unknownField"] = spec, "x"
	}
	return r
}

func (s *script) evict() *Request {
	body := map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": s.name}}
	switch s.src.IntN(5) {
	case 0:
		body["metadata"] = map[string]any{"name": "another"}
	case 1:
		body["deleteOptions"] = map[string]any{"gracePeriodSeconds": int64(s.src.IntN(3)), "dryRun": []any{"All"}}
	case 2:
		body["deleteOptions"] = map[string]any{"preconditions": map[string]any{"uid": "0f1c4f0a-5f0e-4f6c-9f8d-0a1b2c3d4e5f"}}
	}
	r := s.request(http.MethodPost, "application/json", "eviction", body)
	r.Sub = "eviction"
	return r
}

func (s *script) bind() *Request {
	target := map[string]any{"apiVersion": "v1", "kind": "Node", "name": "node-1"}
	switch s.src.IntN(5) {
	case 0:
		delete(target, []string{"apiVersion", "kind", "name"}[s.src.IntN(3)])
	case 1:
		target["kind"] = "Pod"
	case 2:
		target["name"] = "Upper"
	}
	body := map[string]any{"apiVersion": "v1", "kind": "Binding", "metadata": map[string]any{"name": s.name, "annotations": map[string]any{"a": "b"}}, "target": target}
	r := s.request(http.MethodPost, "application/json", "binding", body)
	r.Sub = "binding"
	return r
}
