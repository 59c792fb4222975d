package requests_test

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// mistake is something that a client does to an object, mostly out of ignorance.
type mistake struct {
	name string
	on   []verb // the kinds of request that it is of use for; none means all
	// apply reports whether the object has a place for the mistake.
	apply func(r *rand.Rand, root *tree.Node) bool
}

func (m *mistake) suits(v verb) bool { return len(m.on) == 0 || slices.Contains(m.on, v) }

// mistakes are all of them.
var mistakes = slices.Concat(
	membersOf("metadata", metadataMembers),
	only(create, membersOf("metadata", createdMembers)),
	membersOf("spec", specMembers),
	membersOf("status", statusMembers),
	rootMistakes,
)

// metadataMembers are raw members, which replace those of the same name. Names and namespaces are not among them: an
// update must find its object.
var metadataMembers = []string{
	`"labels":{"a b":"x"}`, `"labels":{"a":"b c"}`, `"labels":{"":"x"}`, `"labels":{"a/b/c":"x"}`, `"labels":{"UPPER/a":"x","b":"-"}`, `"labels":{"a":1}`, `"labels":{"a":null}`,
	`"labels":null`, `"labels":[]`, `"labels":{"a":"` + strings.Repeat("v", 64) + `"}`, `"labels":{"a":true,"b":{}}`, `"labels":"x"`, `"labels":{"app":"web","tier":"front"}`,
	`"annotations":{"a b":"x"}`, `"annotations":{"UPPER":"x"}`, `"annotations":{"/x":"y","":"z"}`, `"annotations":{"a":1}`, `"annotations":{"a":null,"b":"c"}`, `"annotations":[1]`,
	`"annotations":{"large":"` + strings.Repeat("a", 262145) + `"}`, `"annotations":{"note.example/x":"free text: {}"}`,
	`"finalizers":["plain"]`, `"finalizers":["a.b"]`, `"finalizers":["requests.example/clean"]`, `"finalizers":["orphan"]`, `"finalizers":["orphan","foregroundDeletion"]`, `"finalizers":["kubernetes","plain","plain"]`,
	`"finalizers":["a b","c/d/e",""]`, `"finalizers":[1]`, `"finalizers":[null]`, `"finalizers":null`, `"finalizers":[]`, `"finalizers":"x"`,
	`"finalizers":["b","a"]`, `"finalizers":["` + strings.Repeat("f", 64) + `","` + strings.Repeat("d", 254) + `/x"]`,
	`"ownerReferences":[{}]`, `"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]`, `"ownerReferences":[{"apiVersion":"a/b/c","kind":"K","name":"n","uid":"u"}]`,
	`"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}]`, `"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","more":1}]`, `"ownerReferences":[{"uid":3}]`,
	`"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":true},{"apiVersion":"v1","kind":"K","name":"m","uid":"v","controller":true}]`,
	`"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u"},{"apiVersion":"v1","kind":"K","name":"n","uid":"u"}]`, `"ownerReferences":[null]`, `"ownerReferences":{}`,
	`"uid":"0b0c0d0e-0000-4000-8000-000000000000"`, `"uid":1`, `"uid":""`, `"generation":-1`, `"generation":7`, `"generation":"1"`, `"generation":1.5`,
	`"creationTimestamp":"2020-01-01T00:00:00Z"`, `"creationTimestamp":"yesterday"`, `"creationTimestamp":null`, `"creationTimestamp":"9999-12-31T23:59:59-23:59"`, `"deletionTimestamp":"2020-01-01T00:00:00Z"`, `"deletionTimestamp":3`,
	`"deletionGracePeriodSeconds":-1`, `"deletionGracePeriodSeconds":30`, `"deletionGracePeriodSeconds":"30"`, `"selfLink":"/x"`, `"selfLink":1`,
	`"managedFields":[]`, `"managedFields":null`, `"managedFields":[{}]`, `"managedFields":[{"operation":"Nope"}]`, `"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"X"}]`, `"managedFields":[{"fieldsV1":3}]`,
	`"managedFields":[{"manager":"m","operation":"Update","apiVersion":"requests.example/v1","time":"2024-05-17T12:30:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]`,
	`"unknown":1`, `"clusterName":"c"`, `"Labels":{"a":"b"}`, `"annotation":{"a":{"b":1}}`, `"":1`, `"a\"b":1`, `"a.b":1`, `"<&>":1`, `"é":1`,
}

// createdMembers are for objects that are created.
var createdMembers = []string{
	`"name":"UPPER"`, `"name":"a/b"`, `"name":".."`, `"name":"a_b"`, `"name":"-a"`, `"name":""`, `"name":3`, `"name":null`, `"name":"` + strings.Repeat("n", 254) + `"`, `"name":"<&>"`, `"name":"a%b"`,
	`"generateName":"made-"`, `"generateName":"Made_"`, `"generateName":3`, `"generateName":"` + strings.Repeat("g", 260) + `"`,
	`"namespace":"orchard"`, `"namespace":""`, `"namespace":"a.b"`, `"namespace":"UPPER"`, `"namespace":"` + strings.Repeat("n", 64) + `"`, `"namespace":3`, `"namespace":null`,
	`"resourceVersion":"5"`, `"resourceVersion":"x"`, `"resourceVersion":"0"`, `"resourceVersion":""`, `"resourceVersion":5`,
}

var specMembers = []string{
	`"unknown":1`, `"unknown":{"a":{"b":[1]}}`, `"Name":"x"`, `"name":3`, `"name":null`, `"name":["a"]`, `"name":"far-too-long-for-most-schemas"`, `"size":"1"`, `"size":0`, `"size":-1`, `"size":1.5`, `"size":1.0`, `"size":1e3`,
	`"size":9223372036854775808`, `"size":null`, `"replicas":-1`, `"replicas":2147483648`, `"replicas":2147483647`, `"replicas":"3"`, `"replicas":1.5`, `"replicas":1.0`, `"replicas":null`, `"replicas":9223372036854775808`, `"replicas":{}`,
	`"pool":{"replicas":-1}`, `"pool":{"replicas":3000000000}`, `"pool":{"replicas":"3"}`, `"pool":{"replicas":2.5}`, `"pool":{"replicas":null}`, `"pool":3`, `"pool":[1]`, `"pool":{"replicas":{"a":1}}`,
	`"x.y":1`, `"a/b":{"c":1}`, `"<&>":1`, `"quo\"te":1`, `"back\\slash":1`, `"\u2028":1`, `"":1`, `"a[0]":1`, `"new\nline":1`,
}

var statusMembers = []string{
	`"unknown":1`, `"phase":"Gone"`, `"phase":3`, `"phase":null`, `"phase":"New"`, `"count":99`, `"count":"9"`, `"count":3`, `"replicas":-1`, `"replicas":2147483648`, `"replicas":"3"`, `"replicas":3`, `"selector":3`, `"selector":"a=b"`, `"selector":null`, `"done":0`, `"done":5`,
	`"pool":{"replicas":-1,"selector":{}}`, `"pool":{"replicas":3000000000}`, `"pool":{"selector":3}`, `"pool":{"selector":"a=b","replicas":1}`, `"pool":"x"`, `"notes":[{"text":""},{"at":"now"}]`, `"notes":{}`,
	`"conditions":[{"type":"A","status":"True"},{"type":"A","status":"False"}]`, `"conditions":[{"type":"","status":"Maybe"}]`, `"<&>":1`,
}

// membersOf are mistakes that set one member of a member of the object. Once in a while a random one keeps what was there
// before it: a key that appears twice.
func membersOf(parent string, members []string) []mistake {
	var list []mistake
	for _, raw := range members {
		name := raw
		if len(name) > 60 {
			name = name[:57] + "..."
		}
		list = append(list, mistake{name: parent + " {" + name + "}", apply: func(r *rand.Rand, root *tree.Node) bool {
			into := root.Get(parent)
			if into == nil && parent != "metadata" {
				into = tree.Obj()
				root.Set(parent, into)
			}
			if into == nil || into.Kind != tree.Object {
				return false
			}
			member := tree.Must("{" + raw + "}")
			if r != nil && r.IntN(12) == 0 {
				into.Keys, into.Kids = append(into.Keys, member.Keys[0]), append(into.Kids, member.Kids[0])
				return true
			}
			if i := into.Find(tree.Unquote(member.Keys[0])); i >= 0 {
				into.Kids[i] = member.Kids[0]
			} else {
				into.Keys, into.Kids = append(into.Keys, member.Keys[0]), append(into.Kids, member.Kids[0])
			}
			return true
		}})
	}
	return list
}

// only restricts mistakes to a kind of request.
func only(v verb, list []mistake) []mistake {
	for i := range list {
		list[i].on = []verb{v}
	}
	return list
}

// set is a mistake that sets a member of the object.
func set(member, raw string, on ...verb) mistake {
	return mistake{name: member + ": " + raw, on: on, apply: func(_ *rand.Rand, root *tree.Node) bool {
		root.Set(member, tree.Must(raw))
		return true
	}}
}

// twice is a mistake that has a member twice, the first one of another value.
func twice(member, raw string, on ...verb) mistake {
	return mistake{name: member + " twice: " + raw, on: on, apply: func(_ *rand.Rand, root *tree.Node) bool {
		if root.Find(member) < 0 {
			return false
		}
		root.Keys, root.Kids = slices.Insert(root.Keys, 0, tree.Quote(member)), slices.Insert(root.Kids, 0, tree.Must(raw))
		return true
	}}
}

// without is a mistake that leaves members away.
func without(path string, on ...verb) mistake {
	return mistake{name: "no " + path, on: on, apply: func(_ *rand.Rand, root *tree.Node) bool {
		parent, name, nested := strings.Cut(path, ".")
		if !nested {
			had := root.Find(parent) >= 0
			root.Del(parent)
			return had
		}
		into := root.Get(parent)
		had := into.Find(name) >= 0
		if had {
			into.Del(name)
		}
		return had
	}}
}

var rootMistakes = []mistake{
	set("unknown", `1`), set("unknown", `{"a":1}`), set("Spec", `{}`), set("spec", `null`), set("spec", `[]`), set("spec", `"x"`), set("spec", `{}`), set("<&>", `1`), set("items", `[]`), set("metadate", `{}`),
	set("status", `null`), set("status", `[]`), set("status", `"x"`), set("status", `{}`), set("status", `{"phase":"New"}`), set("status", `{"phase":"Gone","unknown":1}`), set("status", `"longer than four"`), set("status", `3`),
	set("metadata", `null`, create), set("metadata", `[]`, create), set("metadata", `"x"`, create), set("metadata", `{}`, create), set("metadata", `3`, create),
	set("apiVersion", `""`, create), set("apiVersion", `null`, create), set("apiVersion", `3`, create), set("apiVersion", `"requests.example/v9"`, create), set("apiVersion", `"requests.example"`, create), set("apiVersion", `"other.example/v1"`, create),
	set("apiVersion", `"requests.example/v1/x"`, create), set("apiVersion", `"requests.example/v1alpha2"`, create),
	set("kind", `""`, create), set("kind", `null`, create), set("kind", `3`, create), set("kind", `"Nothing"`, create), set("kind", `"value"`, create),
	twice("spec", `{"size":1}`), twice("spec", `3`), twice("metadata", `{"name":"other","unknown":1}`), twice("kind", `"Other"`), twice("apiVersion", `"v1"`), twice("status", `{"phase":"Done"}`), twice("unknown", `1`),
	without("metadata", create), without("metadata.name", create), without("spec"), without("status"), without("kind", create), without("apiVersion", create), without("metadata.uid", update, status), without("metadata.labels", update, status),
	without("metadata.creationTimestamp", update, status), without("metadata.managedFields", update, status), without("metadata.finalizers", update, status), without("metadata.generation", update, status),
	{name: "duplicates within", apply: func(_ *rand.Rand, root *tree.Node) bool {
		into := root.Get("spec")
		if into == nil || into.Kind != tree.Object {
			return false
		}
		into.Add("deep", tree.Must(`{"er":{"a":"x","a":"y","zz":1,"zz":2},"er":{"a":"z","b":[{"c":1,"c":2}]}}`))
		return true
	}},
	{name: "duplicates in metadata", apply: func(_ *rand.Rand, root *tree.Node) bool {
		into := root.Get("metadata")
		if into == nil || into.Kind != tree.Object {
			return false
		}
		into.Add("labels", tree.Must(`{"a":"1","a":"2"}`))
		into.Add("labels", tree.Must(`{"a":"3"}`))
		return true
	}},
	{name: "many unknown fields", apply: func(_ *rand.Rand, root *tree.Node) bool {
		for _, name := range []string{"metadata", "spec", "status"} {
			if into := root.Get(name); into != nil && into.Kind == tree.Object {
				for i := range 60 {
					into.Add("unknown"+string(rune('a'+i/26))+string(rune('a'+i%26)), tree.Lit("1"))
				}
			}
		}
		return true
	}},
}
