package history

import (
	"strconv"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// A change edits the state of a history. It reports whether there was something to change.
type change struct {
	name  string
	warns bool // a server may warn of it
	apply func(w *writer) bool
}

var changeTable []change

// The table is filled here because its functions use it in turn.
func init() {
	changeTable = []change{
		{"add version", true, addVersion},
		{"remove version", false, removeVersion},
		{"rename version", false, renameVersion},
		{"move storage", false, moveStorage},
		{"serve or not", false, flip("served")},
		{"stored versions", false, storedVersions},
		{"deprecate", false, deprecate},
		{"add field", true, inSchema(addField)},
		{"remove field", false, inSchema(removeField)},
		{"change type", true, inSchema(changeType)},
		{"other schema", true, func(w *writer) bool { return withVersion(w, func(v *tree.Node) { setSchema(v, w.schema()) }) }},
		{"no schema", false, func(w *writer) bool { return withVersion(w, func(v *tree.Node) { v.Del("schema") }) }},
		{"default", false, inSchema(addDefault)},
		{"add rule", false, inSchema(addRule)},
		{"costly rule", false, inSchema(costlyRule)},
		{"change rule", false, changeRule},
		{"format", true, inSchema(addFormat)},
		{"list type", true, inSchema(addList)},
		{"conversion", false, conversion},
		{"review versions", false, reviewVersions},
		{"CA bundle", false, caBundle},
		{"plural", false, inNames("plural", `"trees"`, `"shrubs"`, `"Shrubs"`)},
		{"kind", false, inNames("kind", `"Tree"`, `"Shrub"`, `"lower"`, `"-"`)},
		{"singular", false, inNames("singular", `"tree"`, `"shrub"`, `"Shrub"`, `""`)},
		{"list kind", false, inNames("listKind", `"TreeList"`, `"Forest"`, `""`, `"Tree"`)},
		{"short names", false, inNames("shortNames", `["t"]`, `["t","tr"]`, `[]`, `["T"]`, `["t","t"]`)},
		{"categories", false, inNames("categories", `["all"]`, `["all","garden"]`, `[]`, `["All"]`)},
		{"scope", false, inSpec("scope", `"Namespaced"`, `"Cluster"`, `"Cluster"`, `"other"`)},
		{"group", false, inSpec("group", `"orchard.example"`, `"other.example"`, `"nodots"`)},
		{"preserve", false, inSpec("preserveUnknownFields", `true`, `false`, `false`, `null`)},
		{"selectable fields", false, selectable},
		{"printer columns", false, columns},
		{"status subresource", false, statusSubresource},
		{"scale subresource", false, scaleSubresource},
		{"approval", false, approval},
		{"labels", false, inMetadata("labels", `{"a":"b"}`, `{}`, `{"a/b":"c"}`, `{"a":"b c"}`)},
		{"finalizers", false, inMetadata("finalizers", `["a.b/c"]`, `[]`, `["customresourcecleanup.apiextensions.k8s.io"]`, `["a b"]`)},
		{"uid", false, inMetadata("uid", `"0c1e"`, `"other"`)},
		{"nothing", false, func(*writer) bool { return true }},
	}
}

// Changes are the names of the changes.
func Changes() (names []string) {
	for _, c := range changeTable {
		names = append(names, c.name)
	}
	return names
}

// Warns reports whether a server may warn of a change.
func Warns(name string) bool {
	for _, c := range changeTable {
		if c.name == name {
			return c.warns
		}
	}
	return false
}

func inMetadata(name string, options ...string) func(*writer) bool {
	return func(w *writer) bool { w.metadata().Set(name, w.node(options...)); return true }
}

func inSpec(name string, options ...string) func(*writer) bool {
	return func(w *writer) bool { w.spec().Set(name, w.node(options...)); return true }
}

func inNames(name string, options ...string) func(*writer) bool {
	return func(w *writer) bool { w.spec().Have("names", tree.Object).Set(name, w.node(options...)); return true }
}

func withVersion(w *writer, f func(v *tree.Node)) bool {
	v := w.version()
	if v != nil {
		f(v)
	}
	return v != nil
}

func flip(name string) func(*writer) bool {
	return func(w *writer) bool {
		return withVersion(w, func(v *tree.Node) { v.Set(name, tree.Lit(strconv.FormatBool(!v.Get(name).Is("true")))) })
	}
}

func addVersion(w *writer) bool {
	list := w.versions()
	if len(list) == 0 || len(list) > 6 {
		return false
	}
	v := list[w.IntN(len(list))].Clone()
	v.Set("name", tree.Str(w.choose("v"+strconv.Itoa(2+w.IntN(7)), "v2alpha1", "v1beta"+strconv.Itoa(w.IntN(9)), "v1", "V_9")))
	if !w.one(6) {
		v.Set("storage", tree.Lit("false"))
	}
	if w.one(3) {
		setSchema(v, w.schema())
	}
	all := w.spec().Get("versions")
	all.Kids = append(all.Kids, v)
	return true
}

func removeVersion(w *writer) bool {
	all := w.spec().Have("versions", tree.Array)
	if len(all.Kids) < 2 && !w.one(6) || len(all.Kids) == 0 {
		return false
	}
	all.Cut(w.IntN(len(all.Kids)))
	return true
}

func renameVersion(w *writer) bool {
	return withVersion(w, func(v *tree.Node) { v.Set("name", tree.Str(w.choose("v7", "v1gamma", "v1", "v8beta2"))) })
}

// moveStorage stores objects in another version. The old version stays among the stored ones.
func moveStorage(w *writer) bool {
	list := w.versions()
	if len(list) < 2 && !w.one(6) || len(list) == 0 {
		return false
	}
	to := w.IntN(len(list))
	for i, v := range list {
		if !v.Get("storage").Is("true") || i == to || !w.one(10) { // rarely two of them
			v.Set("storage", tree.Lit(strconv.FormatBool(i == to)))
		}
	}
	return true
}

// storedVersions is what a migration writes, or a mistake in it.
func storedVersions(w *writer) bool {
	stored := w.root.Have("status", tree.Object).Have("storedVersions", tree.Array)
	switch {
	case w.one(4) || len(stored.Kids) == 0:
		stored.Kids = append(stored.Kids, tree.Str(w.choose("v1", "v2", "v3", "v9")))
	case w.one(6):
		stored.Kids = nil
	default:
		stored.Cut(w.IntN(len(stored.Kids)))
	}
	return true
}

func deprecate(w *writer) bool {
	return withVersion(w, func(v *tree.Node) {
		v.Set("deprecated", w.node("true", "true", "false"))
		if w.one(2) {
			v.Set("deprecationWarning", w.node(`"use another"`, `"gone soon"`, `""`, `"a\nb"`, `null`))
		}
	})
}

func conversion(w *writer) bool {
	w.spec().Set("conversion", w.node(`{"strategy":"None"}`, `{"strategy":"None"}`, `null`, `{"strategy":"Webhook"}`, `{"strategy":"Other"}`,
		`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://a.b/c"}}}`,
		`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1","v1beta1"],"clientConfig":{"service":{"name":"n","namespace":"m","path":"/p","port":8443}}}}`,
		`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"http://a.b","service":{"name":"n","namespace":"m"}}}}`,
		`{"strategy":"None","webhook":{"conversionReviewVersions":["v1"]}}`))
	return true
}

// webhook returns the webhook of the conversion, and makes one if there is none.
func (w *writer) webhook() *tree.Node {
	c := w.spec().Have("conversion", tree.Object)
	c.Set("strategy", tree.Str("Webhook"))
	hook := c.Have("webhook", tree.Object)
	if hook.Get("clientConfig") == nil {
		hook.Set("clientConfig", tree.Must(`{"url":"https://a.b/c"}`))
	}
	if hook.Get("conversionReviewVersions") == nil {
		hook.Set("conversionReviewVersions", tree.Must(`["v1"]`))
	}
	return hook
}

func reviewVersions(w *writer) bool {
	w.webhook().Set("conversionReviewVersions", w.node(`["v1"]`, `["v1","v1beta1"]`, `["v2"]`, `["foo","bar"]`, `[]`, `["v1","v1"]`, `["V1"]`))
	return true
}

const certificate = `"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="`

func caBundle(w *writer) bool {
	w.webhook().Get("clientConfig").Set("caBundle", w.node(`null`, `""`, `"bm90IFBFTQ=="`, certificate))
	return true
}

func selectable(w *writer) bool {
	return withVersion(w, func(v *tree.Node) {
		if w.one(8) {
			many := tree.Arr()
			for i := range 9 {
				many.Kids = append(many.Kids, tree.Must(`{"jsonPath":".spec.f`+strconv.Itoa(i)+`"}`))
			}
			v.Set("selectableFields", many)
			return
		}
		v.Set("selectableFields", w.node(`[]`, `[{"jsonPath":".spec.name"}]`, `[{"jsonPath":".spec.replicas"},{"jsonPath":".spec.name"}]`, `[{"jsonPath":".spec.none"}]`,
			`[{"jsonPath":".spec.name"},{"jsonPath":".spec.name"}]`, `[{"jsonPath":"spec.name"}]`, `[{"jsonPath":".metadata.name"}]`, `[{"jsonPath":".spec.on"}]`))
	})
}

func columns(w *writer) bool {
	return withVersion(w, func(v *tree.Node) {
		v.Set("additionalPrinterColumns", w.node(`[]`, `[{"name":"A","type":"string","jsonPath":".spec.name"}]`, `[{"name":"A","type":"date","jsonPath":".metadata.creationTimestamp","priority":1}]`,
			`[{"name":"","type":"string","jsonPath":".a"}]`, `[{"name":"A","type":"other","jsonPath":".a"}]`, `[{"name":"A","type":"integer","format":"int32","jsonPath":"{.a"}]`))
	})
}

func statusSubresource(w *writer) bool {
	return withVersion(w, func(v *tree.Node) {
		sub := v.Have("subresources", tree.Object)
		if sub.Get("status") != nil {
			sub.Del("status")
			return
		}
		sub.Set("status", tree.Obj())
	})
}

func scaleSubresource(w *writer) bool {
	return withVersion(w, func(v *tree.Node) {
		v.Have("subresources", tree.Object).Set("scale", w.node(`null`, `{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}`,
			`{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas","labelSelectorPath":".status.selector"}`,
			`{"specReplicasPath":".spec[0]","statusReplicasPath":".status.replicas"}`, `{"specReplicasPath":".status.x","statusReplicasPath":".spec.x"}`, `{}`))
	})
}

func approval(w *writer) bool {
	w.metadata().Set("annotations", w.node(`{}`, `{"api-approved.kubernetes.io":"https://a.b/c"}`, `{"api-approved.kubernetes.io":"unapproved, later"}`, `{"api-approved.kubernetes.io":"nonsense"}`, `{"other":"x"}`))
	return true
}
