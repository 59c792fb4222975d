package bug

// schemaChecks are bugs of the checks of a schema and its defaults.
var schemaChecks = []Bug{
	{
		Name: "set-of-sets", What: "the items of a set may be sets",
		Example: `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}`,
		Edits:   []Edit{{compilePackage, "check_openapi.go", `*item.ListType != "atomic"`, `*item.ListType == "map"`}},
	},
	{
		Name: "list-key-default", What: "a key of a list map is refused because it is not required, although it has a default",
		Example: `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string","default":"a"}}}}`,
		Edits:   []Edit{{compilePackage, "check_openapi.go", "if !required && key.Default == nil &&", "if !required &&"}},
	},
	{
		Name: "nullable-set-items", What: "the items of a set may be nullable",
		Example: `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","nullable":true}}`,
		Edits:   []Edit{{compilePackage, "check_openapi.go", `(t == "set" || t == "map")`, `t == "map"`}},
	},
	{
		Name: "root-metadata-min-properties", What: "a schema may demand a number of fields in the object's own metadata",
		Example: `"metadata":{"type":"object","minProperties":1} at the root`,
		Edits:   []Edit{{compilePackage, "check_structure.go", "s.MaxProperties == nil && s.MinProperties == nil &&", "s.MaxProperties == nil &&"}},
	},
	{
		Name: "map-type-in-branch", What: "x-kubernetes-map-type is accepted below allOf, anyOf, oneOf and not",
		Example: `{"type":"object","anyOf":[{"x-kubernetes-map-type":"atomic"}]}`,
		Edits:   []Edit{{compilePackage, "check_structure.go", `{junctorMapType, "x-kubernetes-map-type", s.MapType != nil, undefined},`, ``}},
	},
	{
		Name: "incomplete-not", What: "below not, a schema may restrict fields that it does not specify",
		Example: `{"type":"object","not":{"properties":{"b":{"minimum":1}}}}`,
		Edits:   []Edit{{compilePackage, "check_structure.go", "if in.Not != nil {", "if in.Not != nil && w.check != incomplete {"}},
	},
	{
		Name: "metadata-map-default", What: "values of maps in the metadata of embedded resources may have defaults",
		Example: `embedded resource with "metadata":{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string","default":"a"}}}}`,
		Edits:   []Edit{{compilePackage, "check.go", "		if x.inMeta {\n			sub.noDefaults", "		if x.inMeta && x.root {\n			sub.noDefaults"}},
	},
	{
		Name: "default-api-version", What: "the object's own apiVersion may have a default",
		Example: `"apiVersion":{"type":"string","default":"a/v1"} at the root`,
		Edits:   []Edit{{compilePackage, "check.go", `name == "kind" || name == "apiVersion"`, `name == "kind"`}},
	},
	{
		Name: "int-or-string-second-all-of", What: "the types of int-or-string may be in any allOf, not in the first only",
		Example: `{"x-kubernetes-int-or-string":true,"allOf":[{"pattern":"a"},{"anyOf":[{"type":"integer"},{"type":"string"}]}]}`,
		Edits:   []Edit{{compilePackage, "check.go", "structural && i == 0 && intOrString(b.AnyOf)", "structural && i >= 0 && intOrString(b.AnyOf)"}},
	},
	{
		Name: "status-root-max-properties", What: "a schema with a status subresource may have maxProperties at its root",
		Example: `{"type":"object","maxProperties":5} with the status subresource`,
		Edits:   []Edit{{compilePackage, "check_root.go", "		keyword(\"maxProperties\", s.MaxProperties != nil) ||\n", ""}},
	},
	{
		Name: "message-carriage-return", What: "the message of a rule may contain a carriage return",
		Example: `{"type":"object","x-kubernetes-validations":[{"rule":"true","message":"a\rb"}]}`,
		Edits:   []Edit{{compilePackage, "check_validations.go", `strings.ContainsAny(s, "\n\r")`, `strings.ContainsAny(s, "\n")`}},
	},
	{
		Name: "default-unknown-below-preserved", What: "a default may have unknown fields in a specified child of an object that preserves them",
		Example: `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object"}},"default":{"a":{"x":1}}}`,
		Edits:   []Edit{{execPackage, "default.go", "if unspecified(d, k+1, child, false) {", "if unspecified(d, k+1, child, keep) {"}},
	},
	{
		Name: "default-whole-float", What: "a default is validated as it is going to be stored, not as it is written",
		Example: `{"type":"number","minimum":2.5,"default":2.0}`,
		Edits:   []Edit{{execPackage, "default.go", "e := explainer{d: d, exact: true}", "e := explainer{d: d}"}},
	},
	{
		Name: "default-as-new-value", What: "rules are not evaluated on a default as a new value",
		Example: `{"type":"string","default":"a","x-kubernetes-validations":[{"rule":"oldSelf.hasValue()","optionalOldSelf":true}]}`,
		Edits:   []Edit{{celPackage, "defaults.go", "if err == nil && len(r.found) == before {", "if err == nil && len(r.found) < before {"}},
	},
	{
		Name: "flag-any-value", What: "a keyword that must be a boolean may be anything",
		Example: `{"type":"object","nullable":"no"}`,
		Edits: []Edit{{
			syntaxPackage, "parse.go", "	case jsondoc.False, jsondoc.Null:\n	default:\n		p.wrong(v, \"a boolean\")\n	}",
			"	}",
		}},
	},
	{
		Name: "embedded-preserve-properties", What: "an embedded resource that preserves unknown fields must have properties",
		Example: `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`,
		Edits:   []Edit{{compilePackage, "check_structure.go", "if embedded && !preserve && len(s.Properties) == 0 {", "if embedded && len(s.Properties) == 0 {"}},
	},
	{
		Name: "bracket-path-escape", What: "a fieldPath with an escaped quote in a name does not lead to the field",
		Example: `"properties":{"a'b":{"type":"string"}} and a rule with "fieldPath":"['a\\'b']"`,
		Edits:   []Edit{{compilePackage, "check_validations.go", `if s[i] == '\'' && s[i-1] != '\\' {`, `if s[i] == '\'' {`}},
	},
}

// sharing are bugs that let one schema, or one object, have the answers of another.
var sharing = []Bug{
	{
		Name: "share-field-path", What: "two schemas whose rules differ in fieldPath only report errors at the same field",
		Example: `{"rule":"false","fieldPath":".a"} and, in another schema, {"rule":"false","fieldPath":".b"}`,
		Edits:   []Edit{{planPackage, "intern.go", "x.MessageExpression, x.Reason, x.FieldPath}", "x.MessageExpression, x.Reason}"}},
	},
	{
		Name: "share-list-map-keys", What: "two list maps with different keys have the same keys",
		Example: `items {"a":…,"b":…} with "x-kubernetes-list-map-keys":["a"] and, in another schema, ["b"]`,
		Edits:   []Edit{{planPackage, "intern.go", "k = appendList(appendText(k, r.Default), r.ListMapKeys)", "k = appendText(k, r.Default)"}},
	},
	{
		Name: "share-list-order", What: "two enums with the same values in another order have the errors of the one that was compiled first",
		Example: `"enum":["a","b"] and, in another schema, ["b","a"], with "c"`,
		Edits:   []Edit{{planPackage, "intern.go", "k = appendList(append(k, 1), a.List)", "k = append(k, 1)"}},
	},
	{
		Name: "share-default", What: "two schemas that differ in a default fill in the one that was compiled first",
		Example: `{"type":"object","x-kubernetes-map-type":"atomic","default":{}} and, in another schema, "default":{"a":1}`,
		Edits:   []Edit{{planPackage, "intern.go", "k = appendList(appendText(k, r.Default), r.ListMapKeys)", "k = appendList(k, r.ListMapKeys)"}},
	},
	{
		Name: "share-optional-old-self", What: "two schemas whose rules differ in optionalOldSelf only are evaluated alike",
		Example: `{"rule":"oldSelf != self"} and, in another schema, with "optionalOldSelf":true`,
		Edits:   []Edit{{planPackage, "intern.go", "		k = append(k, x.OptionalOldSelf)\n", ""}},
	},
	{
		Name: "share-format-text", What: "two schemas that write the same format differently have the texts and the type of the one that was compiled first",
		Example: `{"type":"string","format":"datetime"} and, in another schema, "date-time", with "x"`,
		Edits:   []Edit{{planPackage, "intern.go", "	k = appendText(k, a.Text)\n", ""}},
	},
	{
		Name: "share-bound-of-size", What: "the bound of a rule's cost for one size of objects is used for larger ones, whose budget is then not kept",
		Example: `"self.all(x, self.all(y, x != y))" on a list of 3,000 strings after one of 150`,
		Edits:   []Edit{{celPackage, "program.go", "if x == nil || x.size != size {", "if x == nil {"}},
	},
	{
		Name: "cost-without-old", What: "the budget of an update does not count what a rule does with the old object",
		Example: `"oldSelf.all(x, oldSelf.all(y, x == y || x != y))" on [], before a list of 10,000 strings`,
		Edits:   []Edit{{celPackage, "run.go", "r.size = sizeOf(run.Doc, run.Old)", "r.size = sizeOf(run.Doc)"}},
	},
}
