package openapi

import (
	"cmp"
	"encoding/base64"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// parameter is a parameter of an operation, in the path or in the query.
type parameter struct {
	name, in, kind, description string

	shared string // the name under which documents of v2 have it once; may be empty
}

const (
	prettyText    = "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget)."
	namespaceText = "object name and auth scope, such as for teams and projects"
)

// catalog is the parameters of all operations. They are the same for all
// resources, except for the description of a name.
type catalog struct {
	list, get, create, update, patch, remove []parameter
	pretty, namespace                        parameter

	deleteBody, patchBody string // names of shared parameters of v2
	v2                    []byte // the shared parameters of v2, as a JSON object
}

var parameters = sync.OnceValue(func() *catalog {
	c := &catalog{
		list: optionsOf(metav1.ListOptions{}), get: optionsOf(metav1.GetOptions{}), create: optionsOf(metav1.CreateOptions{}),
		update: optionsOf(metav1.UpdateOptions{}), patch: optionsOf(metav1.PatchOptions{}), remove: optionsOf(metav1.DeleteOptions{}),
		pretty:    parameter{name: "pretty", in: "query", kind: "string", description: prettyText},
		namespace: parameter{name: "namespace", in: "path", kind: "string", description: namespaceText},
	}
	e := &encoder{compact: true}
	written := map[string]bool{}
	e.object(func() {
		share := func(name string, p *parameter, write func(e *encoder)) string {
			one := &encoder{compact: true}
			write(one)
			shared := name + "-" + shortHash(one.b)
			if !written[shared] {
				written[shared] = true
				e.key(shared)
				e.raw(one.b)
			}
			if p != nil {
				p.shared = shared
			}
			return shared
		}
		for _, list := range [][]parameter{c.list, c.get, c.create, c.update, c.patch, c.remove} {
			for i := range list {
				// Clients look for these two in the operations themselves.
				if p := &list[i]; p.name != "dryRun" && p.name != "fieldValidation" {
					share(p.name, p, p.writeV2)
				}
			}
		}
		share("pretty", &c.pretty, c.pretty.writeV2)
		share("namespace", &c.namespace, c.namespace.writeV2)
		c.deleteBody = share("body", nil, func(e *encoder) { e.bodyV2(metaModel+"DeleteOptions", optionalBody) })
		c.patchBody = share("body", nil, func(e *encoder) { e.bodyV2(metaModel+"Patch", requiredBody) })
	})
	c.v2 = e.b
	return c
})

// AppendParameters appends the JSON object of the parameters that operations in
// documents of v2 refer to.
func AppendParameters(dst []byte) []byte { return append(dst, parameters().v2...) }

// shortHash tells parameters of one name apart. It is part of names that
// clients may have seen elsewhere.
func shortHash(data []byte) string {
	h := fnv.New64()
	_, _ = h.Write(data) // never fails
	return base64.URLEncoding.EncodeToString(h.Sum(nil)[:6])
}

// optionsOf lists the fields of options that a query can say, by name.
func optionsOf(options documented) (list []parameter) {
	t, texts := reflect.TypeOf(options), options.SwaggerDoc()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		kind := queryKind(f.Type)
		if kind == "" {
			continue // also what has no name: the type information
		}
		list = append(list, parameter{name: name, in: "query", kind: kind, description: texts[name]})
	}
	slices.SortFunc(list, byName)
	return list
}

func byName(a, b parameter) int { return cmp.Compare(a.name, b.name) }

// queryKind is the type of a parameter, or empty if a query cannot say it.
func queryKind(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.String, reflect.Slice: // a list is repeated, which is not said
		return "string"
	default:
		return ""
	}
}

func (p *parameter) writeV3(e *encoder) {
	e.object(func() {
		e.text("name", p.name)
		e.text("in", p.in)
		e.optional("description", p.description)
		if p.in == "path" {
			e.flag("required")
		}
		e.key("schema")
		e.object(func() {
			e.text("type", p.kind)
			e.flag("uniqueItems")
		})
	})
}

// writeV2 writes the members in the order that the names of shared parameters
// are computed from.
func (p *parameter) writeV2(e *encoder) {
	e.object(func() {
		e.flag("uniqueItems")
		e.text("type", p.kind)
		e.optional("description", p.description)
		e.text("name", p.name)
		e.text("in", p.in)
		if p.in == "path" {
			e.flag("required")
		}
	})
}

// body says whether a request has one.
type body int

const (
	noBody body = iota
	optionalBody
	requiredBody
)

// bodyV2 writes the parameter that stands for the body.
func (e *encoder) bodyV2(model string, need body) {
	e.object(func() {
		e.text("name", "body")
		e.text("in", "body")
		if need == requiredBody {
			e.flag("required")
		}
		e.key("schema")
		e.object(func() { e.text("$ref", V2.ref(model)) })
	})
}

func (e *encoder) sharedV2(name string) {
	e.object(func() { e.text("$ref", "#/parameters/"+name) })
}
