package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
)

// maxBytes is the size of the largest form.
const maxBytes = 64 << 10

// service is a form for the objects of one version of a CRD.
type service struct {
	definition *crd.CRD
	version    string
	form       []field
	schema     *espalier.Schema
	rules      *espalier.Rules // CEL rules
}

// New returns the handler of a form for a CRD. It compiles the schema once.
func New(definition []byte, version string) (http.Handler, error) {
	text, err := yaml.YAMLToJSON(definition)
	if err != nil {
		return nil, err
	}
	s := &service{version: version}
	if s.definition, err = crd.Parse(text); err != nil {
		return nil, err
	}
	v := s.definition.Version(version)
	if v == nil {
		return nil, fmt.Errorf("the CRD %s has no version %s", s.definition.Name, version)
	}
	if s.schema, s.rules, err = v.Compile(espalier.CompileOptions{}); err != nil {
		return nil, err
	}
	var root schema
	if err := json.Unmarshal(v.Schema, &root); err != nil {
		return nil, err
	}
	if root.Properties["spec"] == nil {
		return nil, fmt.Errorf("the CRD %s has no spec", s.definition.Name)
	}
	s.form = append([]field{{Path: "metadata.name", Description: "The name of the object.", Type: "string", Required: true}},
		fieldsOf("spec", root.Properties["spec"], true)...)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, http.StatusOK, page{Fields: s.form})
	})
	mux.HandleFunc("POST /{$}", s.post)
	return mux, nil
}

// post makes an object of a form, and answers with the object or with the form and its errors.
func (s *service) post(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBytes)
	if err := r.ParseForm(); err != nil {
		status := http.StatusBadRequest
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "reading the form failed: "+err.Error(), status)
		return
	}
	p := page{Fields: append([]field{}, s.form...)}
	object, err := json.Marshal(objectOf(s.definition.Group+"/"+s.version, s.definition.Kind, p.Fields, r.PostForm))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// This is all that Espalier has to do.
	result, validation, err := s.schema.Admit(object, espalier.AdmitOptions{
		Validate: espalier.ValidateOptions{Scope: espalier.Namespaced, Rules: s.rules, Limits: espalier.Limits{MaxBytes: 2 * maxBytes}},
	})
	if err != nil { // not an object of any kind, or too large
		p.Errors = append(p.Errors, err.Error())
	}
	for _, v := range validation.Errors {
		if text := strings.TrimSuffix(v.Type.String()+": "+v.Detail, ": "); !place(p.Fields, v.Path, text) {
			p.Errors = append(p.Errors, v.Error())
		}
	}
	if err != nil || !validation.Valid() {
		s.answer(w, http.StatusUnprocessableEntity, p)
		return
	}
	// Store the object here, or send it to a server: it is complete and valid.
	stored, err := yaml.JSONToYAML(result.Bytes)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.answer(w, http.StatusOK, page{Object: string(stored)})
}

// page is what the template shows: a form, or an object.
type page struct {
	Kind   string
	Fields []field
	Errors []string // that belong to no field
	Object string
}

// answer writes a page. html/template escapes everything that comes from users.
func (s *service) answer(w http.ResponseWriter, status int, p page) {
	p.Kind = s.definition.Kind
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
	w.WriteHeader(status)
	_ = view.Execute(w, p) // the client has gone
}

var view = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<title>{{.Kind}}</title>
<style>body {font: 1rem sans-serif; max-width: 40em; margin: 2em auto} label, input, select, textarea {display: block; margin: .3em 0} .error {color: #b00}</style>
{{if .Object}}<h1>{{.Kind}}</h1>
<pre>{{.Object}}</pre>
<a href="/">Another one</a>
{{else}}<h1>New {{.Kind}}</h1>
{{range .Errors}}<p class="error">{{.}}</p>
{{end}}<form method="post">
{{range .Fields}}<label for="{{.Path}}">{{.Path}}{{if .Required}} *{{end}} <small>{{.Description}}{{if .Default}} Default: {{.Default}}.{{end}}</small></label>
{{$value := .Value}}{{if .Options}}<select id="{{.Path}}" name="{{.Path}}"><option></option>{{range .Options}}<option{{if eq . $value}} selected{{end}}>{{.}}</option>{{end}}</select>
{{else if eq .Type "boolean"}}<select id="{{.Path}}" name="{{.Path}}"><option></option><option{{if eq $value "true"}} selected{{end}}>true</option><option{{if eq $value "false"}} selected{{end}}>false</option></select>
{{else if eq .Type "array"}}<textarea id="{{.Path}}" name="{{.Path}}">{{.Value}}</textarea>
{{else}}<input id="{{.Path}}" name="{{.Path}}" value="{{.Value}}">
{{end}}{{range .Errors}}<p class="error">{{.}}</p>
{{end}}{{end}}<button>Create</button>
</form>
{{end}}</html>
`))
