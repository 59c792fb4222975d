package generate

// resource writes an object with TypeMeta and ObjectMeta: the root, or an embedded resource.
func (w *writer) resource(n *node, share, depth int) {
	began := len(w.dst)
	w.dst = append(w.dst, '{')
	m := members{depth: depth, nth: w.nth}
	root := depth == 0
	if w.one(4) { // the specified properties first
		w.properties(n, &m, share, began, true)
		w.typeAndMeta(&m, root, share)
	} else {
		w.typeAndMeta(&m, root, share)
		w.properties(n, &m, share, began, true)
	}
	w.entries(n, &m, share, began)
	w.strangers(n, &m)
	if m.count > 0 {
		w.gap(depth)
	}
	w.dst = append(w.dst, '}')
}

var (
	oddVersions = []string{`"v1"`, `"a/b/c"`, `"/"`, `""`, `"g/"`, `"/v1"`, `3`, `null`, `{}`, `"a/b/"`, `"//"`, `true`, `[]`, `"<&>/v1"`, `"\u0061/v1"`, `"a\u2028/\ud800"`, "\"\xff/v\"", `1.0`, `"a/b/c/d"`}
	oddKinds    = []string{`3`, `null`, `""`, `true`, `[]`, `{}`, `"List"`, `"<&>"`, `"\ud800"`, `"T\u0072ee"`, `1e400`, `-0`, `"a/b"`, `[{"a":null}]`}
	oddMetas    = []string{`null`, `[]`, `3`, `"x"`, `true`, `{}`, `[{}]`, `1.5`, `""`, `{"name":null}`, `-0`, `"\ud800"`, `1e20`}
)

func (w *writer) typeAndMeta(m *members, root bool, share int) {
	often, hostile := 30, w.mode == Hostile
	if !root {
		often = 8
	}
	if !hostile || !w.one(often) {
		w.key(m, `"apiVersion"`)
		switch {
		case hostile && w.one(often):
			w.raw(w.of(oddVersions))
		case root:
			w.quoted(w.o.APIVersion)
		default:
			w.raw([]string{`"v1"`, `"apps/v1"`, `"orchard.example/v1beta1"`}[w.n(3)])
		}
	}
	if !hostile || !w.one(often) {
		w.key(m, `"kind"`)
		switch {
		case hostile && w.one(often):
			w.raw(w.of(oddKinds))
		case root:
			w.quoted(w.o.Kind)
		default:
			w.raw([]string{`"ConfigMap"`, `"Deployment"`, `"Tree"`}[w.n(3)])
		}
	}
	if !root && w.one(4) || hostile && w.one(25) {
		return
	}
	w.key(m, `"metadata"`)
	switch {
	case root && w.o.Metadata != "":
		w.raw(w.o.Metadata)
	case hostile && w.one(often):
		w.raw(w.of(oddMetas))
	default:
		w.metadata(m.depth+1, root, share)
	}
	if hostile && w.one(80) {
		w.key(m, `"metadata"`)
		w.metadata(m.depth+1, root, share)
	}
}

func (w *writer) quoted(s string) {
	w.dst = append(w.dst, '"')
	w.raw(s)
	w.dst = append(w.dst, '"')
}

// Members of ObjectMeta as the API server writes them, with how often (once in n) they occur.
var usualMeta = []struct {
	often   int
	members []string
}{
	{3, []string{`"namespace":"orchard"`, `"namespace":"default"`}},
	{4, []string{`"uid":"7d444840-9dc0-11d1-b245-5ffdce74fad2"`, `"uid":"00000000-0000-0000-0000-000000000001"`}},
	{4, []string{`"resourceVersion":"48813"`}},
	{3, []string{`"generation":1`, `"generation":7`, `"generation":2`}},
	{3, []string{`"creationTimestamp":"2024-05-17T12:30:00Z"`, `"creationTimestamp":null`}},
	{3, []string{`"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"kind\":\"Tree\"}\n","orchard.example/owner":"team a"}`, `"annotations":{"a":"b"}`}},
	{6, []string{`"finalizers":["orchard.example/prune"]`}},
	{8, []string{`"deletionTimestamp":"2024-05-18T00:00:00Z","deletionGracePeriodSeconds":30`, `"deletionGracePeriodSeconds":0`}},
	{6, []string{`"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u1","controller":true,"blockOwnerDeletion":true}]`,
		`"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n1","uid":"u1"}]`}},
	{6, []string{`"managedFields":[{"apiVersion":"orchard.example/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:replicas":{}}},"manager":"kubectl","operation":"Update","time":"2024-05-17T12:30:00Z"}]`,
		`"managedFields":[{"manager":"controller","operation":"Apply","apiVersion":"v1","time":"2024-05-17T12:30:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{}},"subresource":"status"}]`}},
	{12, []string{`"generateName":"tree-"`}},
	{20, []string{`"selfLink":"/apis/x"`}},
}

// oddMeta are members of ObjectMeta that are wrong, unusual, or unknown.
var oddMeta = []string{
	`"name":3`, `"name":null`, `"name":""`, `"Name":"x"`, `"name":"<&>\u2028\ud800"`, `"name":{}`, `"name":"a","name":"b"`, `"generateName":{}`, `"generateName":null`, `"generateName":"g-"`,
	`"namespace":true`, `"namespace":null`, `"namespace":""`, `"selfLink":"/x"`, `"selfLink":3`, `"uid":1`, `"uid":null`, `"uid":""`, `"uid":"u\u0000"`, `"resourceVersion":12`, `"resourceVersion":""`, `"resourceVersion":null`,
	`"generation":"1"`, `"generation":1.0`, `"generation":1.5`, `"generation":1e3`, `"generation":-1`, `"generation":0`, `"generation":-0`, `"generation":9223372036854775807`, `"generation":9223372036854775808`, `"generation":null`, `"generation":[]`, `"generation":true`, `"generation":1e400`,
	`"creationTimestamp":null`, `"creationTimestamp":""`, `"creationTimestamp":"2020-01-01T00:00:00.123456Z"`, `"creationTimestamp":"2020-01-01T01:00:00+02:00"`, `"creationTimestamp":"2020-01-01"`, `"creationTimestamp":"0001-01-01T00:00:00Z"`,
	`"creationTimestamp":"0000-01-01T00:00:00Z"`, `"creationTimestamp":"9999-12-31T23:59:59Z"`, `"creationTimestamp":"9999-12-31T23:59:59-23:59"`, `"creationTimestamp":"2020-02-30T00:00:00Z"`, `"creationTimestamp":"2020-01-01t00:00:00z"`, `"creationTimestamp":3`,
	`"creationTimestamp":{}`, `"creationTimestamp":"2020-01-01T24:00:00Z"`, `"creationTimestamp":"2016-12-31T23:59:60Z"`, `"creationTimestamp":"2020-01-01T00:00:00,5Z"`, `"creationTimestamp":"2020-01-01T00:00:00+24:00"`, `"creationTimestamp":"2020-1-1T0:0:0Z"`,
	`"creationTimestamp":"2020-01-01T00:00:00"`, `"creationTimestamp":" 2020-01-01T00:00:00Z"`, `"creationTimestamp":"2020-01-01T00:00:00.999999999Z"`, `"creationTimestamp":"2020-01-01T0:00:00Z"`, `"creationTimestamp":true`, `"creationTimestamp":"\u0032020-01-01T00:00:00Z"`,
	`"creationTimestamp":"0001-01-01T00:00:00+01:00"`, `"creationTimestamp":"10000-01-01T00:00:00Z"`, `"creationTimestamp":"2020-01-01T00:00:00-00:00"`, `"creationTimestamp":"0001-01-01T00:00:00.5Z"`,
	`"deletionTimestamp":null`, `"deletionTimestamp":"2020-01-01T00:00:00Z"`, `"deletionTimestamp":"x"`, `"deletionTimestamp":0`, `"deletionTimestamp":"0001-01-01T00:00:00Z"`, `"deletionTimestamp":""`, `"deletionGracePeriodSeconds":null`, `"deletionGracePeriodSeconds":"30"`,
	`"deletionGracePeriodSeconds":1.0`, `"deletionGracePeriodSeconds":0`, `"deletionGracePeriodSeconds":-5`, `"deletionGracePeriodSeconds":{}`,
	`"labels":{}`, `"labels":null`, `"labels":[]`, `"labels":{"a":null}`, `"labels":{"a":1}`, `"labels":{"":""}`, `"labels":{"a":"\ud800","<&>":"\u2028"}`, `"labels":{"b":"2","a":"1","B":"3"}`, `"labels":{"a":"1","\u0061":"2"}`, `"labels":{"a":{},"b":"c"}`, `"labels":"x"`, `"labels":{"a":true}`,
	`"annotations":{}`, `"annotations":null`, `"annotations":{"a":null,"b":"c"}`, `"annotations":{"x":["y"]}`, `"annotations":3`, `"annotations":{"a":"\"\\\/\b\f\n\r\t\u0001\u007f"}`, `"annotations":{"a":1.5,"b":{}}`,
	`"ownerReferences":[]`, `"ownerReferences":null`, `"ownerReferences":[null]`, `"ownerReferences":[{}]`, `"ownerReferences":[{"name":"n"}]`, `"ownerReferences":{}`, `"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","extra":{"a":1}}]`, `"ownerReferences":[{"controller":null,"blockOwnerDeletion":false}]`,
	`"ownerReferences":[{"controller":"true"}]`, `"ownerReferences":[{"uid":3}]`, `"ownerReferences":[3]`, `"ownerReferences":[{"Name":"n","x":1},{"y":2}]`, `"ownerReferences":[{"name":null,"uid":null}]`, `"ownerReferences":"x"`,
	`"finalizers":[]`, `"finalizers":null`, `"finalizers":[null]`, `"finalizers":["a","a"]`, `"finalizers":[1]`, `"finalizers":"x"`, `"finalizers":[["a"]]`, `"finalizers":[""]`, `"finalizers":["<\u0026>"]`, `"finalizers":["a",null,"b"]`,
	`"managedFields":[]`, `"managedFields":null`, `"managedFields":[{}]`, `"managedFields":[null]`, `"managedFields":{}`, `"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":null,"fieldsType":"FieldsV1","fieldsV1":null}]`, `"managedFields":[{"fieldsV1":{}}]`,
	`"managedFields":[{"fieldsV1":[1,2]}]`, `"managedFields":[{"fieldsV1":3}]`, `"managedFields":[{"fieldsV1":"x"}]`, `"managedFields":[{"fieldsV1":true,"unknown":1}]`, `"managedFields":[{"fieldsV1":{"f:b":{},"f:a":{"<":1.0,"x":1e3}}}]`, `"managedFields":[{"fieldsV1":{ "z" : null , "k:{\"a\":1}":{"\u2028":-0.0}}}]`,
	`"managedFields":[{"fieldsV1":{"v:\"a\\b\"":[{}],"i:0":9223372036854775808}}]`, `"managedFields":[{"time":"2020-01-01T00:00:00Z","subresource":"status"}]`, `"managedFields":[{"time":"bad"}]`, `"managedFields":[{"operation":3}]`, `"managedFields":[{"fieldsV1":{"a":"\ud800<&>"},"fieldsType":""}]`,
	`"managedFields":[{"time":"2020-01-01T00:00:00.5+01:00"},{"x":1,"y":{"z":2}}]`, `"managedFields":[{"fieldsV1":{"a":1,"a":2}}]`, `"managedFields":[{"fieldsV1":false}]`, `"managedFields":[{"fieldsV1":""}]`, `"managedFields":[{"fieldsV1":1e400}]`,
	`"clusterName":"c"`, `"initializers":null`, `"unknown":1`, `"unknown":null`, `"unknown":{"a":{"b":1}}`, `"unknown":[1,{"c":2}]`, `"":1`, `"a.b":1`, `"\ud800":1`, "\"\xff\":1", `"apiVersion":"v1"`, `"kind":"K"`, `"metadata":{}`, `"spec":{}`, `"LABELS":{"a":"b"}`, `"creationtimestamp":"x"`,
}

// metadata writes an ObjectMeta.
func (w *writer) metadata(depth int, root bool, share int) {
	w.dst = append(w.dst, '{')
	began := len(w.dst)
	add := func(raw string) {
		if len(w.dst) > began {
			w.dst = append(w.dst, ',')
		}
		w.gap(depth + 1)
		w.raw(raw)
	}
	if w.mode != Hostile || !w.one(6) {
		add(`"name":`)
		w.text(1, 60)
	}
	if w.one(2) {
		add(`"labels":{"app":`)
		w.text(1, 40)
		if w.one(2) {
			w.raw(`,"app.kubernetes.io/part-of":`)
			w.text(1, 40)
		}
		w.dst = append(w.dst, '}')
	}
	if root && share > 300 || !root && w.one(4) {
		for i := range usualMeta {
			if u := &usualMeta[i]; w.n(u.often) == 0 {
				add(w.of(u.members))
			}
		}
	}
	if w.mode == Hostile && w.one(3) || w.mode == Near && w.one(12) {
		for range 1 + w.n(3) {
			add(w.of(oddMeta))
		}
	}
	if w.mode == Breach && w.one(12) {
		for range 1 + w.n(2) {
			add(w.of(invalidMeta))
		}
	}
	if w.mode != Valid && w.mode != Breach && w.trouble() {
		add(w.of(strangeKeys))
		w.dst = append(w.dst, ':')
		w.junk(2)
	}
	if len(w.dst) > began {
		w.gap(depth)
	}
	w.dst = append(w.dst, '}')
}
