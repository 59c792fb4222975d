package requests_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"

	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// verb is a kind of request.
type verb string

const (
	create verb = "create"
	update verb = "update"
	status verb = "status" // an update of the status subresource
)

// modes are the values of fieldValidation.
var modes = []string{"Strict", "Warn", "Ignore"}

// stored is an object on the server. Updates use its name.
type stored struct {
	name string
	json map[string][]byte // as the server shows it, by version
}

// request is one object on its way to the server and to the command line.
type request struct {
	number  int
	verb    verb
	mode    string
	def     *testCRD
	version *version // of the URL
	body    []byte
	old     *stored  // of an update
	oldAs   *version // in which the command line is given the old object
	origin  string   // how it was made
	// siblings are the requests with the same body in other modes, by mode.
	siblings map[string]*request

	server answer
	cli    answer
}

// String names the request.
func (r *request) String() string {
	return fmt.Sprintf("request %d: %s of %s/%s, fieldValidation=%s (%s)", r.number, r.verb, r.def.Kind, r.version.Name, r.mode, r.origin)
}

// path is where the request goes: where kubectl sends an object like that.
func (r *request) path() string {
	path := "/apis/" + group + "/" + url.PathEscape(r.version.Name)
	if !r.def.Cluster {
		path += "/namespaces/" + url.PathEscape(r.namespace())
	}
	path += "/" + r.def.plural()
	switch r.verb {
	case update:
		path += "/" + r.old.name
	case status:
		path += "/" + r.old.name + "/status"
	}
	return path
}

const (
	defaultNamespace = "default"
	otherNamespace   = "orchard"
)

func (r *request) namespace() string {
	if r.old != nil {
		return defaultNamespace
	}
	if root, err := tree.Parse(r.body); err == nil {
		if name := root.Get("metadata").Get("namespace").Text(); name != "" {
			return name
		}
	}
	return defaultNamespace
}

// generator makes requests; the same seed makes the same ones, but for what the server fills into old objects.
type generator struct {
	*rand.Rand
	all []*request
}

func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

// add adds a request in all modes.
func (g *generator) add(r request) {
	if !json.Valid(r.body) {
		return // syntax is no question of the schema: the server is told JSON, and files are YAML
	}
	siblings := map[string]*request{}
	for _, mode := range modes {
		one := r
		one.number, one.mode, one.siblings = len(g.all)+1, mode, siblings
		siblings[mode] = &one
		g.all = append(g.all, &one)
	}
}

// How many bodies are made for each CRD.
const (
	creates       = 16
	updates       = 16
	statusUpdates = 8
)

// systematic are the kinds whose objects are sent with every mistake, one at a time.
var systematic = map[string]bool{"Value": true, "Wide": true, "Stretched": true, "Scaled": true}

// generated are all requests.
func generated(all []*testCRD, seed uint64) []*request {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0x7265717565737473))}
	for _, d := range all {
		if systematic[d.Kind] {
			g.oneMistakeEach(d)
		}
	}
	g.exhibits(all)
	for _, d := range all {
		g.unchanged(d)
	}
	for _, d := range all {
		for range creates {
			g.create(d)
		}
		for range updates {
			g.change(d, update)
		}
		for i := range statusUpdates {
			if d.Status || i == 0 { // without a status subresource one such request is enough
				g.change(d, status)
			}
		}
	}
	return g.all
}

// oneMistakeEach sends an object that is right but for one mistake.
func (g *generator) oneMistakeEach(d *testCRD) {
	v := d.Versions[0].plan
	for i := range mistakes {
		m := &mistakes[i]
		about := strings.HasPrefix(m.name, "spec") || strings.HasPrefix(m.name, "status") || d.Kind == "Wide" && strings.Contains(m.name, "name")
		if d.Kind != "Value" && !about {
			continue
		}
		for _, verb := range []verb{create, update, status} {
			if !m.suits(verb) {
				continue
			}
			r := request{verb: verb, def: d, version: &d.Versions[0], origin: m.name}
			var root *tree.Node
			if verb == create {
				root = tree.Must(string(v.Append(nil, 1, generate.Options{APIVersion: d.apiVersion(r.version), Kind: d.Kind, Compact: true, Metadata: `{"name":"one"}`, Resolve: true, Size: 200})))
			} else {
				r.old, r.oldAs = d.olds[0], r.version
				root = tree.Must(string(r.old.json[r.version.Name]))
			}
			if m.apply(nil, root) {
				r.body = root.Bytes()
				r.redirect()
				g.add(r)
			}
		}
	}
}

// unchanged sends every old object back as it is.
func (g *generator) unchanged(d *testCRD) {
	verbs := []verb{update}
	if d.Status {
		verbs = append(verbs, status)
	}
	for _, old := range d.olds {
		for _, v := range d.served() {
			for _, verb := range verbs {
				g.add(request{verb: verb, def: d, version: v, old: old, oldAs: v, body: old.json[v.Name], origin: "unchanged " + old.name})
			}
		}
	}
}

// exhibits sends what the dice may miss: each of these has shown a difference.
func (g *generator) exhibits(all []*testCRD) {
	for _, d := range all {
		v := d.storage()
		add := func(body string) {
			g.add(request{verb: create, def: d, version: v, origin: "exhibit", body: fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,%s}`, d.apiVersion(v), d.Kind, body)})
		}
		change := func(old *stored, path, raw string) {
			root := tree.Must(string(old.json[v.Name]))
			parent, name, _ := strings.Cut(path, ".")
			root.Get(parent).Set(name, tree.Must(raw))
			g.add(request{verb: update, def: d, version: v, old: old, oldAs: v, origin: "exhibit: " + path, body: root.Bytes()})
		}
		switch d.Kind {
		case "Numbers":
			add(`"metadata":{"name":"a"},"spec":{"object":{"size":1.0},"zero":0,"list":[1.0]}`)
			add(`"metadata":{"name":"a"},"spec":{"object":{"size":1},"zero":-0.0,"list":[1]}`)
			add(`"metadata":{"name":"a"},"spec":{"object":{"size":3},"zero":3,"list":[3]}`)
		case "Value":
			add(`"metadata":{"name":"A b","labels":{"a b":"c"}},"spec":{"name":"web","size":"1"}`)
			add(`"metadata":{"name":"a","generation":-1,"managedFields":[{}]},"spec":{"name":"web","size":0}`)
			change(d.olds[3], "metadata.deletionGracePeriodSeconds", "30")
			change(d.olds[3], "metadata.deletionTimestamp", `"2020-01-01T00:00:00Z"`)
			change(d.olds[3], "metadata.finalizers", `["requests.example/keep","plain","requests.example/more"]`)
			change(d.olds[3], "metadata.finalizers", `[]`)
		case "Wide":
			change(d.olds[0], "metadata.namespace", `"orchard"`)
			change(d.olds[1], "spec.name", `"much too long"`)
		case "Frozen":
			change(d.olds[2], "spec.size", "2")
			change(d.olds[0], "metadata.managedFields", "[null]")
		case "Joined":
			change(d.olds[0], "spec.d", "3")
		}
	}
}

// modesOf are how bad generated objects are: most are nearly right.
var modesOf = []generate.Mode{generate.Valid, generate.Valid, generate.Near, generate.Near, generate.Near, generate.Breach, generate.Breach, generate.Breach, generate.Hostile}

func (g *generator) object(d *testCRD, v *version, metadata string) ([]byte, string) {
	mode := modesOf[g.IntN(len(modesOf))]
	text := v.plan.Append(nil, g.Uint64(), generate.Options{
		Mode: mode, Size: 150 + g.IntN(500), APIVersion: d.apiVersion(v), Kind: d.Kind, Metadata: metadata, Resolve: true,
	})
	return text, [...]string{"valid", "near", "breach", "hostile"}[mode]
}

// create makes a request to create something.
func (g *generator) create(d *testCRD) {
	v := d.Versions[g.IntN(len(d.Versions))].Name
	r := request{verb: create, def: d, version: d.version(v)}
	metadata := ""
	if g.one(2) {
		metadata = fmt.Sprintf(`{"name":"n%d"}`, g.IntN(1000))
	}
	r.body, r.origin = g.object(d, r.version, metadata)
	if root, err := tree.Parse(r.body); err == nil && root.Kind == tree.Object {
		r.origin += g.spoil(root, create)
		r.body = root.Bytes()
	}
	r.redirect()
	g.add(r)
}

// redirect sends the request to the version that the object says it is of.
func (r *request) redirect() {
	root, err := tree.Parse(r.body)
	if err != nil {
		return
	}
	if name, ok := strings.CutPrefix(root.Get("apiVersion").Text(), group+"/"); ok && r.verb == create {
		if v := r.def.version(name); v != nil {
			r.version = v
		} else {
			r.version = &version{Name: name, Unserved: true}
		}
	}
}

// spoil makes none to three mistakes and names them.
func (g *generator) spoil(root *tree.Node, v verb) string {
	names := ""
	for range max(0, g.IntN(5)-1) {
		m := &mistakes[g.IntN(len(mistakes))]
		if m.suits(v) && m.apply(g.Rand, root) {
			names += ", " + m.name
		}
	}
	return names
}

// change makes a request to update something.
func (g *generator) change(d *testCRD, v verb) {
	served := d.served()
	r := request{verb: v, def: d, version: served[g.IntN(len(served))], old: d.olds[g.IntN(len(d.olds))]}
	r.oldAs = r.version
	if g.one(3) {
		r.oldAs = served[g.IntN(len(served))]
	}
	was := r.old.json[r.version.Name]
	other, origin := g.object(d, r.version, "")
	old := tree.Must(string(was))
	root, err := tree.Parse(generate.Edit(was, other, g.Uint64()))
	if err != nil || root.Kind != tree.Object {
		root = old.Clone()
	}
	r.origin = "edited with " + origin + " " + r.old.name
	if from, err := tree.Parse(other); err == nil && from.Kind == tree.Object {
		for i, key := range from.Keys {
			name := tree.Unquote(key)
			if often := 4; name != "metadata" && name != "kind" && name != "apiVersion" && (v == status && name == "status" && !g.one(3) || g.one(often)) {
				root.Set(name, from.Kids[i])
			}
		}
	}
	r.origin += g.spoil(root, v)
	g.addressed(&r, root, old)
	r.body = root.Bytes()
	g.add(r)
}

// addressed has an update say what it must to find its object. What else its metadata has become stays.
func (g *generator) addressed(r *request, root, old *tree.Node) {
	metadata, was := root.Get("metadata"), old.Get("metadata")
	if metadata == nil || metadata.Kind != tree.Object {
		metadata = was.Clone()
		root.Set("metadata", metadata)
	}
	for _, name := range []string{"name", "resourceVersion"} {
		for metadata.Find(name) >= 0 {
			metadata.Del(name)
		}
		metadata.Add(name, was.Get(name).Clone())
	}
	metadata.Del("namespace")
	if namespace := was.Get("namespace"); namespace != nil && !g.one(4) {
		metadata.Add("namespace", namespace.Clone())
	} else if r.def.Cluster && g.one(4) {
		metadata.Add("namespace", tree.Str(otherNamespace))
	}
	root.Set("apiVersion", tree.Str(r.def.apiVersion(r.version)))
	root.Set("kind", tree.Str(r.def.Kind))
}
