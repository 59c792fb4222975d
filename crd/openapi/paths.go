package openapi

import (
	"slices"
	"strings"
	"unicode"
)

// Resource is what the paths of a resource depend on. Whether it has the
// subresources that other resources have is up to it.
type Resource struct {
	Group, Version         string
	Plural, Kind, ListKind string
	Model, ListModel       string // names of models; if empty, those of custom resources
	Namespaced             bool
	Status, Scale          bool

	// Verbs are the supported verbs, as in authorization: create, deletecollection
	// and so on. Nil means all verbs of custom resources.
	Verbs []string
	// Parts are further subresources, whose objects are those of the resource.
	Parts []Part
	// Typed says that there is a Go type of the objects: protobuf and strategic
	// merge patches are understood, too.
	Typed bool
}

// Part is a subresource and its verbs: get, update, patch.
type Part struct {
	Name  string
	Verbs []string
}

// ScaleModel is the model of the scale subresource.
const ScaleModel = "io.k8s.api.autoscaling.v1.Scale"

// operation is what can be done at a path.
type operation struct {
	method, action   string
	verb             string // begins its name and says what it does
	name             string // what follows the verb in its name
	description      string
	request, answer  string // models
	body             body
	parameters       []parameter
	created, accepts bool // answers 201 and 202, too
}

// AppendPaths appends the paths of a resource with all that can be done there,
// as members of the object in which a document has its paths: compact, divided
// by commas, without braces.
func AppendPaths(dst []byte, r Resource, f Format) []byte {
	if r.Model == "" {
		r.Model, r.ListModel = ModelName(r.Group, r.Version, r.Kind), ModelName(r.Group, r.Version, r.ListKind)
	}
	w := &pathWriter{encoder: encoder{b: dst, compact: true, empty: true}, Resource: r, format: f, catalog: parameters()}
	w.write()
	return w.b
}

type pathWriter struct {
	encoder
	Resource
	*catalog
	format Format
}

func (w *pathWriter) write() {
	base := "/apis/" + w.Group + "/" + w.Version
	if w.Group == "" {
		base = "/api/" + w.Version
	}
	root, scope := base+"/"+w.Plural, ""
	var common []parameter
	if w.Namespaced {
		w.path(root, nil, w.only(w.Verbs, []operation{w.listing(w.Kind + "ForAllNamespaces")}))
		root, scope = base+"/namespaces/{namespace}/"+w.Plural, "Namespaced"
		common = append(common, w.namespace)
	}
	name := scope + w.Kind
	w.path(root, common, w.only(w.Verbs, []operation{
		w.listing(name),
		{
			method: "post", action: "post", verb: "create", name: name, description: "create" + article(w.Kind) + w.Kind,
			request: w.Model, body: requiredBody, answer: w.Model, parameters: w.create, created: true, accepts: true,
		},
		{
			method: "delete", action: "deletecollection", verb: "delete", name: "collection" + name, description: "delete collection of " + w.Kind,
			answer: metaModel + "Status", parameters: w.list,
		},
	}))
	common = append([]parameter{{name: "name", in: "path", kind: "string", description: "name of the " + w.Kind}}, common...)
	item := append(w.changing(name, "", w.Model), operation{
		method: "delete", action: "delete", verb: "delete", name: name, description: "delete" + article(w.Kind) + w.Kind,
		request: metaModel + "DeleteOptions", body: optionalBody, answer: metaModel + "Status", parameters: w.remove, accepts: true,
	})
	w.path(root+"/{name}", common, w.only(w.Verbs, item))
	if w.Status {
		w.path(root+"/{name}/status", common, w.changing(name+"Status", " status of", w.Model))
	}
	if w.Scale {
		w.path(root+"/{name}/scale", common, w.changing(name+"Scale", " scale of", ScaleModel))
	}
	for _, p := range w.Parts {
		w.path(root+"/{name}/"+p.Name, common, w.only(p.Verbs, w.changing(name+capital(p.Name), " "+p.Name+" of", w.Model)))
	}
}

// verbs are what operations are authorized by, where that is not their action.
var verbs = map[string]string{"post": "create", "put": "update"}

// only returns the operations that are among some verbs; nil are all.
func (w *pathWriter) only(allowed []string, operations []operation) []operation {
	if allowed == nil {
		return operations
	}
	return slices.DeleteFunc(operations, func(o operation) bool {
		verb := o.action
		if v, ok := verbs[verb]; ok {
			verb = v
		}
		return !slices.Contains(allowed, verb)
	})
}

func (w *pathWriter) listing(name string) operation {
	return operation{
		method: "get", action: "list", verb: "list", name: name, description: "list objects of kind " + w.Kind,
		answer: w.ListModel, parameters: w.list,
	}
}

// changing is reading, replacing and patching, of an object or a part of it.
func (w *pathWriter) changing(name, part, model string) []operation {
	what := part + " the specified " + w.Kind
	return []operation{
		{method: "get", action: "get", verb: "read", name: name, description: "read" + what, answer: model, parameters: w.get},
		{
			method: "put", action: "put", verb: "replace", name: name, description: "replace" + what,
			request: model, body: requiredBody, answer: model, parameters: w.update, created: true,
		},
		{
			method: "patch", action: "patch", verb: "patch", name: name, description: "partially update" + what,
			request: metaModel + "Patch", body: requiredBody, answer: model, parameters: w.patch,
		},
	}
}

// path writes a path. What all of its operations have in common, stands beside
// them; so do all parameters of the only operation.
func (w *pathWriter) path(path string, common []parameter, operations []operation) {
	if len(operations) == 0 {
		return
	}
	common = append(slices.Clip(common), w.pretty)
	if len(operations) == 1 {
		common = append(common, operations[0].parameters...)
		operations[0].parameters = nil
	}
	slices.SortFunc(common, byName)
	w.key(path)
	w.object(func() {
		for i := range operations {
			w.key(operations[i].method)
			w.object(func() { w.operation(&operations[i]) })
		}
		w.parameters(common, nil)
	})
}

func (w *pathWriter) operation(o *operation) {
	group := strings.TrimSuffix(w.Group, ".k8s.io")
	if group == "" {
		group = "core"
	}
	w.texts("tags", []string{identifier(group) + "_" + identifier(w.Version)})
	w.text("description", o.description)
	w.text("operationId", o.verb+capital(identifier(group))+capital(identifier(w.Version))+capital(identifier(o.name)))
	if w.format == V2 {
		w.texts("consumes", w.consumes(o))
		w.texts("produces", w.produces())
		w.texts("schemes", []string{"https"})
	}
	w.parameters(o.parameters, o)
	if w.format == V3 && o.body != noBody {
		w.key("requestBody")
		w.object(func() {
			w.content(w.consumes(o), o.request)
			if o.body == requiredBody {
				w.flag("required")
			}
		})
	}
	w.key("responses")
	w.object(func() { w.responses(o) })
	w.text("x-kubernetes-action", o.action)
	w.key("x-kubernetes-group-version-kind")
	w.groupVersionKind(w.Group, w.Version, w.Kind)
}

var (
	mediaTypes      = []string{"application/json", "application/yaml"}
	typedMediaTypes = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
	patchTypes      = []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	typedPatchTypes = []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
)

func (w *pathWriter) consumes(o *operation) []string {
	switch {
	case o.action != "patch":
		return w.produces()
	case w.Typed:
		return typedPatchTypes
	}
	return patchTypes
}

func (w *pathWriter) produces() []string {
	if w.Typed {
		return typedMediaTypes
	}
	return mediaTypes
}

// parameters writes a list of parameters, with the body of o if v2 counts it
// among them.
func (w *pathWriter) parameters(list []parameter, o *operation) {
	withBody := w.format == V2 && o != nil && o.body != noBody
	if len(list) == 0 && !withBody {
		return
	}
	w.key("parameters")
	w.array(func() {
		if withBody {
			w.next()
			w.body(o)
		}
		for i := range list {
			w.next()
			switch p := &list[i]; {
			case w.format == V3:
				p.writeV3(&w.encoder)
			case p.shared != "":
				w.sharedV2(p.shared)
			default:
				p.writeV2(&w.encoder)
			}
		}
	})
}

func (w *pathWriter) body(o *operation) {
	switch o.action {
	case "delete":
		w.sharedV2(w.deleteBody)
	case "patch":
		w.sharedV2(w.patchBody)
	default:
		w.bodyV2(o.request, o.body)
	}
}

func (w *pathWriter) responses(o *operation) {
	answer := func(code, description string) {
		w.key(code)
		w.object(func() {
			w.text("description", description)
			if w.format == V3 {
				w.content(w.produces(), o.answer)
				return
			}
			w.key("schema")
			w.object(func() { w.text("$ref", V2.ref(o.answer)) })
		})
	}
	answer("200", "OK")
	if o.created {
		answer("201", "Created")
	}
	if o.accepts {
		answer("202", "Accepted")
	}
	w.key("401")
	w.object(func() { w.text("description", "Unauthorized") })
}

func (w *pathWriter) content(types []string, model string) {
	w.key("content")
	w.object(func() {
		for _, t := range types {
			w.key(t)
			w.object(func() {
				w.key("schema")
				w.object(func() { w.text("$ref", V3.ref(model)) })
			})
		}
	})
}

// article is the article of a noun, between spaces.
func article(noun string) string {
	switch {
	case noun == "" || strings.HasSuffix(noun, "s") && !strings.HasSuffix(noun, "ss"):
		return " "
	case strings.ContainsRune("aeiouAEIOU", rune(noun[0])):
		return " an "
	default:
		return " a "
	}
}

// identifier makes one word of a name: what is not a letter, digit or
// underscore is left out, and the letter after it is a capital.
func identifier(name string) string {
	var b strings.Builder
	after := false
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && r != '_' && (i == 0 || !unicode.IsDigit(r)):
			after = true
			continue
		case after:
			r = unicode.ToUpper(r)
		}
		after = false
		b.WriteRune(r)
	}
	return b.String()
}

func capital(word string) string {
	for i, r := range word {
		return string(unicode.ToUpper(r)) + word[i+len(string(r)):]
	}
	return ""
}
