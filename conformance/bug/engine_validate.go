package bug

// validation are bugs of the validation of values, and of the texts of errors.
var validation = []Bug{
	{
		Name: "bound-2-63", What: "a bound of 2^63 is taken for the greatest integer, not for the smallest as upstream does",
		Example: `{"type":"number","minimum":9223372036854775808} with 1`,
		Edits:   []Edit{{execPackage, "number.go", "	if bound >= 1<<63 || bound < -1<<63 ||", "	if bound >= 1<<63 {\n		return math.MaxInt64\n	}\n	if bound < -1<<63 ||"}},
	},
	{
		Name: "bound-2-63-inside-not", What: "below not, a bound of 2^63 does not have upstream's meaning",
		Example: `{"type":"integer","not":{"maximum":9223372036854775808}} with 1`,
		Edits:   []Edit{{compilePackage, "lower_asserts.go", "*value != math.Trunc(*value) || math.Abs(*value) >= 1<<63", "*value != math.Trunc(*value)"}},
	},
	{
		Name: "multiple-beyond-53-bits", What: "a float beyond 2^53 is found to be a multiple",
		Example: `{"type":"number","multipleOf":2} with 1e300`,
		Edits:   []Edit{{execPackage, "number.go", "if math.Abs(f) > 1<<53-1 {", "if math.Abs(f) > math.MaxFloat64 {"}},
	},
	{
		Name: "format-float-range", What: "a number beyond 32-bit floats is accepted for the format float",
		Example: `{"type":"number","format":"float"} with 1e39`,
		Edits:   []Edit{{execPackage, "number.go", "return isInt || fitsFloat32(f)", "return isInt || f < math.MaxFloat64"}},
	},
	{
		Name: "int32-limit", What: "2^31 is accepted for the format int32",
		Example: `{"type":"integer","format":"int32"} with 2147483648`,
		Edits:   []Edit{{execPackage, "number.go", "i <= math.MaxInt32\n", "i <= math.MaxInt32+1\n"}},
	},
	{
		Name: "enum-whole-floats", What: "floats that an enum lists are compared as integers, also within lists",
		Example: `{"type":"number","enum":[1.0]} with 1.5, {"type":"array","items":{"type":"number"},"enum":[[2.0]]} with [2]`,
		Edits:   []Edit{{compilePackage, "lower_asserts.go", "keyOf := exec.EnumKey\n", "keyOf := exec.StrictEnumKey\n"}},
	},
	{
		Name: "enum-negative-zero", What: "an enum that lists -0.0 does not find 0",
		Example: `{"type":"number","enum":[-0.0]} with 0`,
		Edits:   []Edit{{execPackage, "enum.go", "	if f == 0 {\n		f = 0 // there are two zeros, and they are equal\n	}\n", ""}},
	},
	{
		Name: "min-length-bytes", What: "minLength counts bytes",
		Example: `{"type":"string","minLength":2} with "é"`,
		Edits:   []Edit{{execPackage, "validate.go", "ok = int64(utf8.RuneCount(text)) >= int64(a.Num)", "ok = int64(len(text)) >= int64(a.Num)"}},
	},
	{
		Name: "one-of-two", What: "a value that satisfies two branches of oneOf is accepted",
		Example: `{"type":"integer","oneOf":[{"minimum":1},{"minimum":2}]} with 3`,
		Edits:   []Edit{{execPackage, "validate.go", "ok = c.satisfied(v, a.Nodes, 2) == 1", "ok = c.satisfied(v, a.Nodes, 1) == 1"}},
	},
	{
		Name: "required-in-branch", What: "required names that are no properties of the same schema are not required",
		Example: `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]}]} with {}`,
		Edits:   []Edit{{execPackage, "validate.go", "return missing == 0 && missingOthers == 0", "return missing == 0 && missingOthers <= others.Len()"}},
	},
	{
		Name: "required-beyond-64", What: "of more than 64 properties, one that is present stands for a required one that is missing",
		Example: `70 properties, the first required, with the 65th only`,
		Edits:   []Edit{{planPackage, "props.go", "p.required[rank/64]>>(rank%64)&1 != 0", "p.required[0]>>(rank%64)&1 != 0"}},
	},
	{
		Name: "admit-additional-false", What: "Admit does not look for forbidden properties of an object that has no other validation",
		Example: `{"type":"object","additionalProperties":false} as field a, with {"a":{"b":1}}, given to Admit`,
		Edits:   []Edit{{compilePackage, "lower.go", "n.Flags&(plan.Embedded|plan.AdditionalFalse) != 0 ||", "n.Flags&plan.Embedded != 0 ||"}},
	},
	{
		Name: "admit-metadata-types", What: "Admit does not check the types that a schema states for metadata of embedded resources",
		Example: `embedded resource e with "metadata":{"type":"object","properties":{"labels":{"type":"array","items":{"type":"string"}}}}, with labels {"a":"b"}, given to Admit`,
		Edits:   []Edit{{compilePackage, "lower.go", " || at.validated && n.Accepts != plan.AnyKind)", " || at.nested && n.Accepts != plan.AnyKind)"}},
	},
	{
		Name: "bounds-order", What: "the errors about maximum and minimum change places",
		Example: `{"type":"integer","minimum":5,"maximum":3} with 4`,
		Edits: []Edit{{
			compilePackage, "lower_asserts.go", "	a.number(minimum, s.Minimum)\n	a.number(maximum, s.Maximum)\n",
			"	a.number(maximum, s.Maximum)\n	a.number(minimum, s.Minimum)\n",
		}},
	},
	{
		Name: "length-order", What: "a string that is too long and too short is refused for the other reason",
		Example: `{"type":"string","minLength":5,"maxLength":3} with "abcd"`,
		Edits: []Edit{{
			compilePackage, "lower_asserts.go", "	a.count(plan.MaxLength, s.MaxLength)\n	a.count(plan.MinLength, s.MinLength)\n",
			"	a.count(plan.MinLength, s.MinLength)\n	a.count(plan.MaxLength, s.MaxLength)\n",
		}},
	},
	{
		Name: "duplicate-reported-again", What: "three equal items of a set are two errors",
		Example: `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}} with ["a","a","a"]`,
		Edits:   []Edit{{execPackage, "lists.go", "if twin >= 0 && u.items[twin].hash&reported == 0 {", "if twin >= 0 {"}},
	},
	{
		Name: "duplicate-in-long-list", What: "four equal items of a set of more than eight are two errors",
		Example: `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}} with ["a","a","a","a","b","c","d","e","f"]`,
		Edits:   []Edit{{execPackage, "lists.go", "have.hash&^reported == x.hash &&", "have.hash == x.hash &&"}},
	},
	{
		Name: "list-map-absent-key", What: "an item of a list map without a key is a duplicate of any other",
		Example: `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}} with [{"k":"a"},{}]`,
		Edits:   []Edit{{execPackage, "lists.go", "if inV != inW || inV && !bytes.Equal(", "if inV && inW && !bytes.Equal("}},
	},
	{
		Name: "format-mismatch-text", What: "the error about an integer in place of a formatted string names another type",
		Example: `{"type":"string","format":"date"} with 1`,
		Edits:   []Edit{{execPackage, "explain.go", `is, form = "integer", "int64"`, `is, form = "integer", "int32"`}},
	},
	{
		Name: "error-twice", What: "an error that two branches have in common is reported twice",
		Example: `{"type":"integer","allOf":[{"maximum":5},{"maximum":5}]} with 6`,
		Edits:   []Edit{{execPackage, "explain.go", "seen[x.message] = true", "seen[x.Keyword] = true"}},
	},
	{
		Name: "one-of-best-branch", What: "of two branches of oneOf that match equally well the errors of the last are reported",
		Example: `{"type":"integer","oneOf":[{"minimum":5},{"minimum":7}]} with 3`,
		Edits:   []Edit{{execPackage, "explain_logical.go", "case best < 0 || b.matches > tried[best].matches:", "case best < 0 || b.matches >= tried[best].matches:"}},
	},
	{
		Name: "all-of-not-counted", What: "matches within allOf do not count when the best branch of anyOf is chosen",
		Example: `{"type":"string","anyOf":[{"pattern":"^a$"},{"allOf":[{"pattern":"^b$"}]}]} with "c"`,
		Edits:   []Edit{{execPackage, "explain_logical.go", "matches += e.allOf(v, a)", "e.allOf(v, a)"}},
	},
}

// metadataRules are bugs of the validation of metadata, the object's own and that of embedded resources.
var metadataRules = []Bug{
	{
		Name: "namespace-64", What: "a namespace of 64 characters is accepted",
		Example: `metadata.namespace of 64 times "a"`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "return len(s) <= 63 && isSubdomain(s, lowerAlnum)", "return len(s) <= 64 && isSubdomain(s, lowerAlnum)"}},
	},
	{
		Name: "name-254", What: "a name of 254 characters is accepted",
		Example: `metadata.name of 254 times "a"`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "if len(s) > 253 {", "if len(s) > 254 {"}},
	},
	{
		Name: "label-64", What: "a label of 64 characters is accepted",
		Example: `metadata.labels {"a": 64 times "a"}`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "if len(s) == 0 || len(s) > 63 ||", "if len(s) == 0 || len(s) > 64 ||"}},
	},
	{
		Name: "annotations-each", What: "the limit on the size of all annotations holds for each of them",
		Example: `metadata.annotations with two values of 200,000 bytes`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "size > maxAnnotations {", "n > maxAnnotations {"}},
	},
	{
		Name: "both-deletion-finalizers", What: "a new object may have the finalizers orphan and foregroundDeletion",
		Example: `metadata.finalizers ["orphan","foregroundDeletion"]`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", `string(s) == "foregroundDeletion"`, `string(s) == "foreground"`}},
	},
	{
		Name: "grace-period-changes", What: "an update may change deletionGracePeriodSeconds",
		Example: `metadata.deletionGracePeriodSeconds 5, before 7`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "deletionTimestampField, deletionGracePeriodSecondsField} {", "deletionTimestampField} {"}},
	},
	{
		Name: "generation-decreases", What: "an update may set the generation back by one",
		Example: `metadata.generation 1, before 2`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "return after >= before &&", "return after+1 >= before &&"}},
	},
	{
		Name: "finalizers-swapped", What: "an object that is being deleted may get a finalizer",
		Example: `metadata.finalizers ["a/b","c/d"], before ["a/b"] with a deletionTimestamp`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "|| m.noNewFinalizers(old))", "|| old.noNewFinalizers(m))"}},
	},
	{
		Name: "two-controllers", What: "an object may have two controllers",
		Example: `metadata.ownerReferences with "controller":true in two of them`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "return controllers <= 1", "return controllers <= 2"}},
	},
	{
		Name: "embedded-kind-missing", What: "an embedded resource needs no kind if it has an apiVersion",
		Example: `embedded resource e with {"e":{"apiVersion":"v1"}}`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "return version && kind", "return version || kind"}},
	},
	{
		Name: "embedded-kind-64", What: "an embedded resource may have a kind of 64 characters",
		Example: `embedded resource e with "kind" of 64 times "a"`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", "len(s) > 0 && len(s) <= 63 && (s[0]", "len(s) > 0 && len(s) <= 64 && (s[0]"}},
	},
	{
		Name: "embedded-name-required", What: "an embedded resource with another error in its metadata is also told that it needs a name",
		Example: `embedded resource e with metadata {"labels":{"a":"/"}}`,
		Edits:   []Edit{{execPackage, "validate_metadata.go", `meta.Name = "fakename"`, `meta.Name = ""`}},
	},
	{
		Name: "owner-event", What: "an event may be an owner",
		Example: `metadata.ownerReferences [{"apiVersion":"v1","kind":"Event","name":"a","uid":"b"}]`,
		Edits:   []Edit{{execPackage, "validate_metadata_fast.go", `coreV1 = string(s) == "v1" || string(s) == "/v1"`, `coreV1 = string(s) == "/v1"`}},
	},
}

// ratcheting are bugs of the comparison with the object before an update.
var ratcheting = []Bug{
	{
		Name: "ratchet-removed-field", What: "an object that has lost a field counts as unchanged",
		Example: `{"type":"object","required":["b"],"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}} with {"a":1}, before {"a":1,"b":2}`,
		Edits: []Edit{{
			execPackage, "correlate.go", "	case jsondoc.Object:\n		if h.now.Len(p.now) != h.was.Len(p.was) {\n			return false\n		}\n		same := true",
			"	case jsondoc.Object:\n		same := true",
		}},
	},
	{
		Name: "ratchet-unknown-fields", What: "an object whose unknown fields have changed counts as unchanged",
		Example: `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"minProperties":2} as field a, with {"a":{"x":1}}, before {"a":{"x":2}}`,
		Edits: []Edit{{
			execPackage, "correlate.go", "same = ok && child != nil && h.unchanged(",
			"same = ok && (child == nil || h.unchanged(",
		}, {execPackage, "correlate.go", "now: k + 1, was: was, ok: true})\n			return same", "now: k + 1, was: was, ok: true}))\n			return same"}},
	},
	{
		Name: "ratchet-kind", What: "an error about the object's own kind does not fail an update if it was there before",
		Example: `"kind":{"type":"string","maxLength":1} at the root, with "kind":"AB" before and after`,
		Edits:   []Edit{{execPackage, "explain.go", `(string(key) == "apiVersion" || string(key) == "kind") {`, `string(key) == "apiVersion" {`}},
	},
	{
		Name: "list-duplicates-on-update", What: "an update may introduce duplicates in a set",
		Example: `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}} with ["a","a"], before ["a"]`,
		Edits:   []Edit{{execPackage, "verdict.go", "(j.Old == nil || len(inspect(j.Old, n, plan.ListsBelow)) == 0)", "j.Old == nil"}},
	},
	{
		Name: "rule-ratchet-atomic-items", What: "a rule about items of an atomic list fails an update that leaves the list as it was",
		Example: `{"type":"array","items":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 5"}]}} with [1] before and after`,
		Edits:   []Edit{{execPackage, "rules.go", "	return s.run.history.unchanged(s.nearest)\n", "	return false\n"}},
	},
	{
		Name: "old-null", What: "a transition rule sees an old value that was null",
		Example: `{"type":"integer","nullable":true,"x-kubernetes-validations":[{"rule":"self == oldSelf"}]} with 1, before null`,
		Edits:   []Edit{{execPackage, "rules.go", "s.HasOld = s.own.ok && r.Old.Kind(s.own.was) != jsondoc.Null", "s.HasOld = s.own.ok"}},
	},
	{
		Name: "ratchet-transition-rules", What: "a transition rule that fails is a warning if the value has not changed",
		Example: `{"type":"integer","x-kubernetes-validations":[{"rule":"self > oldSelf"}]} with 1 before and after`,
		Edits:   []Edit{{celPackage, "run.go", "if !p.old && r.site.Unchanged() {", "if r.site.Unchanged() {"}},
	},
	{
		Name: "ratchet-list-map-key", What: "items of a list map are compared by their first key only",
		Example: `list map with keys a and b and items with "c":{"type":"integer","maximum":5}: [{"a":1,"b":1,"c":9},{"a":1,"b":2,"c":1}], before [{"a":1,"b":2,"c":9}]`,
		Edits:   []Edit{{execPackage, "correlate.go", "listKey(h.now, item, p.node.Rare.ListMapKeys)", "listKey(h.now, item, p.node.Rare.ListMapKeys[:min(1, len(p.node.Rare.ListMapKeys))])"}, {execPackage, "correlate.go", "listKey(h.was, c, p.node.Rare.ListMapKeys)", "listKey(h.was, c, p.node.Rare.ListMapKeys[:min(1, len(p.node.Rare.ListMapKeys))])"}},
	},
}
