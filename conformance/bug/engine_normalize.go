package bug

// normalization are bugs of pruning, defaulting and dropping nulls.
var normalization = []Bug{
	{
		Name: "preserve-inherited", What: "x-kubernetes-preserve-unknown-fields also covers the fields of specified children",
		Example: `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object"}}} with {"a":{"x":1},"z":1}`,
		Edits:   []Edit{{execPackage, "walk.go", "err := w.value(v, child, false)", "err := w.value(v, child, keep)"}},
	},
	{
		Name: "preserve-not-for-items", What: "an array that preserves unknown fields loses those of its items",
		Example: `{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object"}} with [{"x":1}]`,
		Edits:   []Edit{{execPackage, "walk.go", "w.value(c, items, keep); err", "w.value(c, items, false); err"}},
	},
	{
		Name: "duplicate-first-wins", What: "of a key that is written twice the first value is stored, in small objects whose keys are all specified",
		Example: `{"type":"object","properties":{"a":{"type":"integer"}}} with {"a":1,"a":2}, normalized without a report`,
		Edits:   []Edit{{execPackage, "walk.go", "list[i-1].rank > uint32(r)", "list[i-1].rank >= uint32(r)"}},
	},
	{
		Name: "nullable-default", What: "an explicit null of a nullable field is replaced by the default",
		Example: `{"type":"string","nullable":true,"default":"x"} with null`,
		Edits: []Edit{{
			execPackage, "walk.go", "child.Flags&plan.Nullable == 0 && w.null(k, child, first)",
			"child.Flags&(plan.Nullable|plan.HasDefault) != plan.Nullable && w.null(k, child, first)",
		}},
	},
	{
		Name: "null-item-default", What: "a null among the items of a list is replaced by the default, although null is allowed",
		Example: `{"type":"array","items":{"type":"string","nullable":true,"default":"x"}} with [null]`,
		Edits:   []Edit{{execPackage, "walk.go", "items.Flags&(plan.HasDefault|plan.Nullable) == plan.HasDefault", "items.Flags&plan.HasDefault != 0"}},
	},
	{
		Name: "default-not-filled", What: "a default of an object is filled in without the defaults of its fields",
		Example: `{"type":"object","default":{},"properties":{"b":{"type":"integer","default":1}}} as field a, with {}`,
		Edits:   []Edit{{execPackage, "exec.go", "	return FillDefaults(n, out)\n", "	return out, nil\n"}},
	},
	{
		Name: "metadata-default-not-filled", What: "a default inside the metadata of an embedded resource is filled in without the defaults of its fields",
		Example: `embedded resource e with "metadata":{"type":"object","default":{},"properties":{"labels":{"type":"object","default":{"a":"b"},"additionalProperties":{"type":"string"}}}}, with {"e":{"apiVersion":"v1","kind":"A"}}`,
		Edits:   []Edit{{compilePackage, "lower_default.go", "	return exec.FillDefaults(n, raw)\n", "	return raw, nil\n"}},
	},
	{
		Name: "embedded-kind-default-lost", What: "a stored embedded resource whose kind is no string does not get the default of kind",
		Example: `embedded resource e with "kind":{"type":"string","default":"A"}, stored as {"e":{"apiVersion":"v1","kind":5}}`,
		Edits: []Edit{{
			execPackage, "metadata.go", "child.Flags&plan.HasDefault != 0 && w.steps&Default != 0 {\n		w.member(k, first)",
			"child.Flags&plan.HasDefault != 0 && w.steps&Default != 0 && !w.storage {\n		w.member(k, first)",
		}},
	},
	{
		Name: "unspecified-array-kept", What: "objects in lists that no schema describes keep their fields",
		Example: `{"type":"object","additionalProperties":true} with {"a":[{"b":1}]}`,
		Edits:   []Edit{{execPackage, "walk.go", "w.unspecified(c, false)", "w.unspecified(c, true)"}},
	},
	{
		Name: "unknown-index", What: "the path of an unknown field in a list names the next item",
		Example: `{"type":"array","items":{"type":"object"}} as field a, with {"a":[{"x":1}]}: a[1].x`,
		Edits:   []Edit{{execPackage, "walk.go", "index: i - 1}", "index: i}"}},
	},
	{
		Name: "embedded-nulls-late", What: "nulls in the metadata of an embedded resource become empty strings, although its schema does not allow null",
		Example: `embedded resource e with "metadata":{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}}}}, with labels {"a":null}`,
		Edits:   []Edit{{execPackage, "metadata.go", "	return w.steps&DropNulls != 0 && w.containsNull(v)\n", "	return false\n"}},
	},
}

// metadataForm are bugs of the coercion of metadata to the form of ObjectMeta.
var metadataForm = []Bug{
	{
		Name: "generation-zero-kept", What: "a generation of 0 is stored, where upstream leaves it out",
		Example: `{"metadata":{"generation":0}} in a request`,
		Edits:   []Edit{{execPackage, "objectmeta.go", "return n != 0, kind == jsondoc.Number && ok", "return n >= 0, kind == jsondoc.Number && ok"}},
	},
	{
		Name: "grace-period-zero-dropped", What: "a deletionGracePeriodSeconds of 0 is lost",
		Example: `{"metadata":{"deletionGracePeriodSeconds":0}}`,
		Edits:   []Edit{{execPackage, "objectmeta.go", `"deletionGracePeriodSeconds": pointerInt`, `"deletionGracePeriodSeconds": optionalInt`}},
	},
	{
		Name: "leap-second", What: "a timestamp with second 60 is accepted",
		Example: `{"metadata":{"creationTimestamp":"2016-12-31T23:59:60Z"}}`,
		Edits:   []Edit{{execPackage, "objectmeta.go", "two(18) > 59", "two(18) > 60"}},
	},
	{
		Name: "zero-time-kept", What: "the zero time is stored, where upstream leaves it out",
		Example: `{"metadata":{"creationTimestamp":"0001-01-01T00:00:00Z"}}`,
		Edits:   []Edit{{execPackage, "objectmeta.go", "if year < 2 ||", "if year < 1 ||"}},
	},
	{
		Name: "stored-generation-zero", What: "a stored object of generation 0 does not get generation 1",
		Example: `{"metadata":{"generation":0}} read from storage`,
		Edits:   []Edit{{execPackage, "objectmeta.go", "w.d.Raw(g)[0] == '0' || w.d.Raw(g)[0] == '-'", "w.d.Raw(g)[0] == '-'"}},
	},
	{
		Name: "generation-for-requests", What: "a new object with unusual metadata gets generation 1 while it is decoded",
		Example: `{"metadata":{"labels":{"a":null}}} in a request`,
		Edits:   []Edit{{execPackage, "metadata.go", "if of == rootResource && w.storage && meta.Generation == 0 {", "if of == rootResource && meta.Generation == 0 {"}},
	},
	{
		Name: "owner-without-uid", What: "an owner reference without a uid is stored without one, where upstream writes an empty one",
		Example: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a"}]}}`,
		Edits:   []Edit{{execPackage, "objectmeta.go", "return required == s.required", "return required <= s.required"}},
	},
	{
		Name: "root-error-order", What: "an object whose kind and apiVersion are both no strings is refused for the other one",
		Example: `{"apiVersion":1,"kind":2}`,
		Edits:   []Edit{{execPackage, "exec.go", `{"kind", "apiVersion"}`, `{"apiVersion", "kind"}`}},
	},
	{
		Name: "two-slashes", What: "an apiVersion with two slashes is accepted",
		Example: `{"apiVersion":"a/b/c"}`,
		Edits:   []Edit{{execPackage, "exec.go", "bytes.Count(d.Raw(v), []byte{'/'}) > 1", "bytes.Count(d.Raw(v), []byte{'/'}) > 2"}},
	},
	{
		Name: "admit-negative-zero", What: "Admit validates the float -0, although 0 is stored",
		Example: `{"type":"object","properties":{"a":{"type":"number","x-kubernetes-validations":[{"rule":"1.0/self < 0.0"}]}}} with {"a":-0.0}, given to Admit`,
		Edits:   []Edit{{execPackage, "exec.go", "changes&^Mismatched == 0 && d.Settled() {", "changes&^Mismatched == 0 {"}},
	},
}
