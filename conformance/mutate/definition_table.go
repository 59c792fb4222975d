package mutate

import (
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// crdMutation edits a CRD. It reports whether it found something to do.
type crdMutation struct {
	name  string
	apply func(g *definer) bool
}

var crdTable []crdMutation

// The table is filled here because its functions use it in turn.
func init() {
	crdTable = []crdMutation{
		{"name", inMetadata("name", `"x"`, `""`, `null`, `"A.b"`, `"trees.orchard.example"`)},
		{"metadata", func(g *definer) bool {
			merge(g.metadata(), g.node(`{"labels":{"a/b/c":"x","-":"y"}}`, `{"labels":{"a":"not valid!"}}`, `{"annotations":{"a b":"c"}}`, `{"namespace":"n"}`, `{"generateName":"x-"}`,
				`{"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"e","uid":"1"},{"apiVersion":"a/b/c","kind":"","name":"","uid":""}]}`,
				`{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true},{"apiVersion":"v1","kind":"B","name":"b","uid":"2","controller":true}]}`,
				`{"finalizers":["x","orphan","foregroundDeletion"]}`, `{"finalizers":["a.b/d"]}`, `{"generation":-1}`, `{"generation":1}`, `{"uid":"other"}`, `{"resourceVersion":""}`, `{"resourceVersion":"8"}`,
				`{"managedFields":[{"operation":"Nonsense","fieldsType":"x","fieldsV1":{"f:a":{}}}]}`, `{"creationTimestamp":"2020-01-01T00:00:00Z"}`, `{"creationTimestamp":null}`,
				`{"deletionGracePeriodSeconds":5}`, `{"foo":1}`))
			return true
		}},
		{"malformed", malformCRD},
		{"approval", inMetadata("annotations", `{}`, `null`, `{"api-approved.kubernetes.io":""}`, `{"api-approved.kubernetes.io":"https://a.b/c"}`,
			`{"api-approved.kubernetes.io":"unapproved, later"}`, `{"api-approved.kubernetes.io":"nonsense"}`, `{"api-approved.kubernetes.io":"/path"}`)},
		{"group", mutateGroup},
		{"group", mutateGroup},
		{"scope", inSpec("scope", `"Cluster"`, `"Namespaced"`, `"cluster"`, `""`, `null`)},
		{"names", mutateNames}, {"names", mutateNames}, {"names", mutateNames},
		{"preserve", inSpec("preserveUnknownFields", `true`, `true`, `false`, `null`)},
		{"conversion", mutateConversion}, {"conversion", mutateConversion}, {"conversion", mutateConversion},
		{"versions", mutateVersions}, {"versions", mutateVersions},
		{"version", mutateVersion}, {"version", mutateVersion}, {"version", mutateVersion}, {"version", mutateVersion},
		{"columns", perVersion("additionalPrinterColumns", mutateColumns)}, {"columns", perVersion("additionalPrinterColumns", mutateColumns)},
		{"selectable", perVersion("selectableFields", mutateSelectable)}, {"selectable", perVersion("selectableFields", mutateSelectable)},
		{"subresources", perVersion("subresources", mutateSubresources)}, {"subresources", perVersion("subresources", mutateSubresources)},
		{"schema", mutateSchema}, {"schema", mutateSchema}, {"schema", mutateSchema}, {"schema", mutateSchema},
		{"schemas", func(g *definer) bool { g.plant(); return true }},
		{"status", mutateStatus}, {"status", mutateStatus},
	}
}

func inMetadata(name string, options ...string) func(*definer) bool {
	return func(g *definer) bool {
		g.metadata().Set(name, g.node(options...))
		return true
	}
}

// spec returns the specification, if there is one.
func (g *definer) spec() *tree.Node {
	if s := g.root.Get("spec"); s != nil && s.Kind == tree.Object {
		return s
	}
	return nil
}

func inSpec(name string, options ...string) func(*definer) bool {
	return func(g *definer) bool {
		s := g.spec()
		if s != nil {
			s.Set(name, g.node(options...))
		}
		return s != nil
	}
}

// malformCRD gives a member a value of the wrong type, or one that is unknown, or null.
func malformCRD(g *definer) bool {
	at := []*tree.Node{g.root, g.metadata(), g.root.Get("spec"), g.root.Get("spec").Get("names"), g.root.Get("spec").Get("conversion"), g.root.Get("status")}
	at = append(at, versionsOf(g.root)...)
	n := at[g.IntN(len(at))]
	if n == nil || n.Kind != tree.Object || len(n.Keys) == 0 {
		return false
	}
	i := g.IntN(len(n.Keys))
	if key := tree.Unquote(n.Keys[i]); n == g.root && (key == "apiVersion" || key == "kind") {
		return false
	}
	switch g.IntN(4) {
	case 0:
		n.Kids[i] = g.node(`null`, `null`, `1`, `"x"`, `[]`, `{}`, `true`, `[null]`, `1.5`)
	case 1:
		n.Keys[i] = tree.Quote(tree.Unquote(n.Keys[i]) + "s")
	case 2:
		n.Kids[i] = tree.Lit("null")
	default:
		n.Cut(i)
	}
	return true
}

func mutateGroup(g *definer) bool {
	s := g.spec()
	if s == nil {
		return false
	}
	group := g.choose("", "nodots", "Upper.example", "a..b", "x.k8s.io", "kubernetes.io", "y.kubernetes.io", "k8s.io", "orchard.example", strings.Repeat("a", 300)+".b")
	s.Set("group", tree.Str(group))
	if g.one(2) {
		g.metadata().Set("name", tree.Str(s.Get("names").Get("plural").Text()+"."+group))
	}
	return true
}

func mutateNames(g *definer) bool {
	names := g.root.Get("spec").Get("names")
	if names == nil || names.Kind != tree.Object {
		return false
	}
	switch g.IntN(4) {
	case 0:
		names.Set(g.choose("plural", "singular", "kind", "listKind"), g.node(`""`, `null`, `"UPPER"`, `"a.b"`, `"-x"`, `"é"`, `"Tree"`, `"trees"`, `"0day"`))
	case 1:
		names.Set(g.choose("shortNames", "categories"), g.node(`[]`, `null`, `["a","B","c.d",""]`, `["ok"]`, `[null]`, `["a","a"]`))
	case 2:
		names.Set("listKind", tree.Str(names.Get("kind").Text()))
	case 3:
		names.Del(g.choose("singular", "listKind", "kind", "plural"))
	}
	return true
}

const aCertificate = `"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="`

func mutateConversion(g *definer) bool {
	s := g.spec()
	if s == nil {
		return false
	}
	if g.one(3) {
		s.Set("conversion", g.node(`null`, `{}`, `{"strategy":"None"}`, `{"strategy":"Webhook"}`, `{"strategy":"Other"}`, `{"strategy":""}`, `{"strategy":"Webhook","webhook":{}}`,
			`{"strategy":"None","webhook":{"conversionReviewVersions":["v1"]}}`, `{"strategy":"None","webhook":{"clientConfig":{}}}`, `{"strategy":"None","webhook":{"conversionReviewVersions":[]}}`))
		return true
	}
	s.Set("conversion", tree.Must(`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"service":{"name":"n","namespace":"m"}}}}`))
	webhook := s.Get("conversion").Get("webhook")
	if g.one(2) {
		webhook.Set("conversionReviewVersions", g.node(`[]`, `null`, `["v1","v1"]`, `["v2"]`, `["V1","v1beta1"]`, `["v1beta1","x.y",""]`, `["foo","bar"]`))
	}
	client := webhook.Get("clientConfig")
	switch g.IntN(4) {
	case 0:
		client.Set("service", g.node(`null`, `{}`, `{"name":"n"}`, `{"namespace":"n"}`, `{"name":"n","namespace":"m","port":0}`, `{"name":"n","namespace":"m","port":70000}`,
			`{"name":"n","namespace":"m","path":"//"}`, `{"name":"n","namespace":"m","path":"/a//b/"}`, `{"name":"n","namespace":"m","path":"a/B"}`, `{"name":"n","namespace":"m","path":"/"}`,
			`{"name":"n","namespace":"m","path":"/ok/fine","port":8443}`, `{"name":"n","namespace":"m","port":99999999999}`))
	case 1:
		client.Del("service")
		client.Set("url", g.node(`""`, `"https://a.b/c"`, `"http://a.b"`, `"https://"`, `"https://u:p@a/b?c=d#e"`, `"%zz"`, `"a b"`, `"https://a:x"`, `null`))
	case 2:
		client.Set("url", tree.Str("https://a.b/c"))
	}
	if g.one(2) {
		client.Set("caBundle", g.node(`""`, `null`, `"Cg=="`, `"bm90IFBFTQ=="`, aCertificate, `"not base64!"`, `[1,2]`, `[300]`))
	}
	return true
}

func mutateVersions(g *definer) bool {
	s := g.spec()
	list := s.Get("versions")
	if list == nil || list.Kind != tree.Array {
		return false
	}
	if len(list.Kids) == 0 || g.one(8) {
		s.Set("versions", g.node(`[]`, `null`, `[null]`, `[{}]`, `[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]`))
		return true
	}
	i := g.IntN(len(list.Kids))
	switch g.IntN(4) {
	case 0:
		list.Cut(i)
	case 1:
		list.Kids = append(list.Kids, list.Kids[i].Clone())
	case 2:
		v := list.Kids[i].Clone()
		if v.Kind == tree.Object {
			v.Set("name", tree.Str(g.choose("v9", "v9beta1", "v10alpha2")))
			v.Set("storage", g.node("false", "false", "true"))
		}
		list.Kids = append(list.Kids, v)
	case 3:
		j := g.IntN(len(list.Kids))
		list.Kids[i], list.Kids[j] = list.Kids[j], list.Kids[i]
	}
	return true
}

func mutateVersion(g *definer) bool {
	list := versionsOf(g.root)
	if len(list) == 0 {
		return false
	}
	v := list[g.IntN(len(list))]
	switch g.IntN(6) {
	case 0:
		v.Set("name", g.node(`""`, `"V1"`, `"v1.2"`, `"1"`, `"v7"`, `"a-very-long-name-of-a-version-that-is-longer-than-sixty-three-characters"`, `null`))
	case 1:
		v.Set("storage", g.node("true", "false", "null"))
	case 2:
		v.Set("served", g.node("true", "false"))
	case 3:
		v.Set("deprecated", g.node("true", "true", "false"))
	case 4:
		v.Set("deprecated", g.node("true", "true", "false"))
		v.Set("deprecationWarning", g.node(`""`, `"use v2"`, `"a\nb"`, `"\u0007"`, `"é \ufffd \u200b"`, tree.Quote(strings.Repeat("long ", 60)), `null`))
	case 5:
		v.Set("schema", g.node(`null`, `{}`, `{"openAPIV3Schema":null}`, `{"openAPIV3Schema":{}}`, `{"openAPIV3Schema":[]}`))
	}
	return true
}

// perVersion sets a member of one version, or the same one of all.
func perVersion(name string, grow func(g *definer) *tree.Node) func(*definer) bool {
	return func(g *definer) bool {
		list := versionsOf(g.root)
		if len(list) == 0 {
			return false
		}
		value := grow(g)
		if g.one(2) {
			for _, v := range list {
				v.Set(name, value.Clone())
			}
			return true
		}
		list[g.IntN(len(list))].Set(name, value)
		return true
	}
}

func mutateColumns(g *definer) *tree.Node {
	return g.node(`null`, `[]`, `[null]`, `[{}]`, `[{"name":"A","type":"string","jsonPath":".spec.a"}]`, `[{"name":"","type":"float","jsonPath":"spec.a","format":"x"}]`,
		`[{"name":"A","type":"date","jsonPath":".","priority":1},{"name":"B","type":"integer","jsonPath":"[","format":"int64"}]`, `[{"name":"A","type":"number","jsonPath":"","description":"d"}]`,
		`[{"name":"A","type":"boolean","jsonPath":".a[?(@"}]`, `[{"name":"A","type":"string","jsonPath":".a","priority":1.5}]`)
}

func mutateSelectable(g *definer) *tree.Node {
	return g.node(`null`, `[]`, `[{}]`, `[{"jsonPath":".spec.name"}]`, `[{"jsonPath":".spec.name"},{"jsonPath":".spec.name"}]`, `[{"jsonPath":".metadata.name"}]`, `[{"jsonPath":"spec"}]`,
		`[{"jsonPath":".spec"}]`, `[{"jsonPath":".spec['name']"}]`, `[{"jsonPath":"."}]`, `[{"jsonPath":".spec.on"},{"jsonPath":".spec.level"},{"jsonPath":".spec.m.k"},{"jsonPath":".absent"}]`,
		`[{"jsonPath":".a"},{"jsonPath":".kind"},{"jsonPath":".apiVersion"},{"jsonPath":".."},{"jsonPath":".'a.b'"}]`,
		`[{"jsonPath":".spec.m.a"},{"jsonPath":".spec.m.b"},{"jsonPath":".spec.m.c"},{"jsonPath":".spec.m.d"},{"jsonPath":".spec.m.e"},{"jsonPath":".spec.m.f"},{"jsonPath":".spec.m.g"},{"jsonPath":".spec.m.h"},{"jsonPath":".spec.m.i"}]`)
}

func mutateSubresources(g *definer) *tree.Node {
	return g.node(`null`, `{}`, `{"status":{}}`, `{"status":null}`, `{"scale":{}}`, `{"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}`,
		`{"scale":{"specReplicasPath":".status.x","statusReplicasPath":"status","labelSelectorPath":".x"},"status":{}}`, `{"scale":{"specReplicasPath":".spec","statusReplicasPath":".","labelSelectorPath":""}}`,
		`{"scale":{"specReplicasPath":"spec.a","statusReplicasPath":".status.b","labelSelectorPath":"y"}}`, `{"scale":{"specReplicasPath":".spec.a","statusReplicasPath":".status.b","labelSelectorPath":".status.s"}}`)
}

// mutateSchema mutates the schema of one version, or of all alike.
func mutateSchema(g *definer) bool {
	list := versionsOf(g.root)
	if len(list) == 0 {
		return false
	}
	i := g.IntN(len(list))
	s := list[i].Get("schema").Get("openAPIV3Schema")
	if s == nil || s.Kind != tree.Object {
		return false
	}
	before := string(s.Bytes())
	inner := &gardener{Rand: g.Rand, root: s}
	m := pick(inner)
	sites := inner.sites()
	if !m.apply(inner, sites[g.IntN(len(sites))]) {
		return false
	}
	if g.one(2) {
		for _, v := range list {
			if o := v.Get("schema").Get("openAPIV3Schema"); o != nil && o != s && string(o.Bytes()) == before {
				v.Get("schema").Set("openAPIV3Schema", s.Clone())
			}
		}
	}
	return true
}

func mutateStatus(g *definer) bool {
	if g.one(3) || g.root.Get("status") == nil || g.root.Get("status").Kind != tree.Object {
		g.setStatus()
		return true
	}
	status := g.root.Get("status")
	switch g.IntN(3) {
	case 0:
		status.Set("storedVersions", g.node(`[]`, `null`, `["v1"]`, `["v0"]`, `["v1","v1"]`, `["v9","v8","v1"]`, `[null]`))
	case 1:
		status.Set("acceptedNames", g.node(`{}`, `null`, `{"plural":"A B","kind":"x y","listKind":"x y"}`, `{"plural":"ok","kind":"Ok","shortNames":["S"],"categories":["C"]}`))
	case 2:
		status.Set("conditions", g.node(`[]`, `null`, `[{"type":"Established","status":"True"}]`, `[{"type":"Established","status":"Unknown"}]`, `[{"lastTransitionTime":"yesterday"}]`))
	}
	return true
}
