package bug

// expressions are bugs of the types, values and results of CEL rules.
var expressions = []Bug{
	{
		Name: "old-self-in-sets", What: "rules about the items of sets may use oldSelf",
		Example: `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}`,
		Edits:   []Edit{{celPackage, "inspect.go", `(w.schema.ListType == nil || *w.schema.ListType != "map")`, `(w.schema.ListType == nil || *w.schema.ListType == "atomic")`}},
	},
	{
		Name: "message-blank", What: "a message of blanks is used",
		Example: `{"rule":"false","message":"no","messageExpression":"'  '"}`,
		Edits:   []Edit{{celPackage, "run.go", "text = strings.TrimSpace(text)", `text = strings.Trim(text, "\n")`}},
	},
	{
		Name: "rule-array-value", What: "the error of a rule about a list shows the list",
		Example: `{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"false"}]} with ["a"]`,
		Edits:   []Edit{{celPackage, "run.go", "t != plan.Object && t != plan.Array {", "t != plan.Object {"}},
	},
	{
		Name: "budget-not-summed", What: "an object may cost more than its budget if no single rule does",
		Example: `a list of 1,000 strings of 2,000 bytes whose items have the rule "self.matches(p) || true" with a pattern of 300 characters`,
		Edits:   []Edit{{celPackage, "run.go", "	r.remaining -= int64(cost)\n	if err != nil {\n		return r.failed(p, err)", "	if err != nil {\n		return r.failed(p, err)"}},
	},
	{
		Name: "limit-goes-on", What: "rules go on after one that has exceeded the limit",
		Example: `rules "self.all(x, self.all(y, self.all(z, x != 'q' || y != z)))" and "false" on a list of 500 strings`,
		Edits: []Edit{{
			celPackage, "run.go", "due to call cost exceeds limit for rule: %s\", text, p.text()))\n		r.remaining = -1\n		return false",
			"due to call cost exceeds limit for rule: %s\", text, p.text()))\n		return true",
		}},
	},
	{
		Name: "set-sum-duplicates", What: "what is added to a set twice is in it twice",
		Example: `set with the rule "size(self + ['x','x']) == size(self) + 1"`,
		Edits:   []Edit{{celPackage, "value_sets.go", "			seen[k] = struct{}{}\n			values = append(values, v)", "			values = append(values, v)"}},
	},
	{
		Name: "set-equals-repeated", What: "a set equals a list that repeats a part of it",
		Example: `set with the rule "self == ['a','a']" with ["a","b"]`,
		Edits:   []Edit{{celPackage, "value_sets.go", "		seen[k] = struct{}{}\n	}\n	return types.Bool(len(seen) == len(set))", "		seen[k] = struct{}{}\n	}\n	return types.Bool(len(seen) <= len(set))"}},
	},
	{
		Name: "map-sum-replaces", What: "of two new items with the same key that are added to a list map only the last is kept",
		Example: `list map with key k and the rule "size(self + oldSelf) == 2" with [], before [{"k":"a","v":"1"},{"k":"a","v":"2"}]`,
		Edits:   []Edit{{celPackage, "value_sets.go", "		} else {\n			values = append(values, v)\n		}\n	}\n	return &sumMap", "		} else {\n			places[valueKey(v, names)] = len(values)\n			values = append(values, v)\n		}\n	}\n	return &sumMap"}},
	},
	{
		Name: "null-map-entry", What: "an entry of a map whose value is null is not in the map",
		Example: `{"type":"object","additionalProperties":{"type":"string","nullable":true},"x-kubernetes-validations":[{"rule":"'a' in self"}]} with {"a":null}`,
		Edits:   []Edit{{celPackage, "value_object.go", "if !ok || o.fields() && o.doc.Kind(v) == jsondoc.Null {", "if !ok || o.doc.Kind(v) == jsondoc.Null {"}},
	},
	{
		Name: "generate-name-unseen", What: "rules do not see generateName if the schema specifies kind, apiVersion and name",
		Example: `"apiVersion", "kind" and "metadata":{"type":"object","properties":{"name":{"type":"string"}}} with the rule "self.metadata.generateName == ''"`,
		Edits:   []Edit{{planPackage, "plan.go", ` && meta.Property("generateName").is(String)`, ``}},
	},
	{
		Name: "message-optional-old", What: "a messageExpression sees the optional that the rule sees, instead of the old value",
		Example: `{"rule":"false","optionalOldSelf":true,"messageExpression":"oldSelf.hasValue() ? 'a' : 'b'"} for an update, or a new object`,
		Edits:   []Edit{{celPackage, "run.go", "r.eval(&p.message, &r.plain, p,", "r.eval(&p.message, &r.optional, p,"}},
	},
	{
		Name: "path-beside-bad-message", What: "the fieldPath of a rule counts although its messageExpression does not compile",
		Example: `{"rule":"oldSelf == self","fieldPath":".a","messageExpression":"1"} of a stored CRD`,
		Edits:   []Edit{{celPackage, "program.go", "return p // upstream then", "p.message = evaluator{} // upstream then"}},
	},
	{
		Name: "rules-of-nullable-items", What: "rules about nullable items of a set are not checked",
		Example: `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","nullable":true,"x-kubernetes-validations":[{"rule":"self + 1"}]}}`,
		Edits:   []Edit{{celPackage, "inspect.go", `"list-map-items-object": ofList, "list-items-nullable": ofList,`, `"list-map-items-object": ofList,`}},
	},
	{
		Name: "date-type", What: "rules see a date as a string",
		Example: `{"type":"string","format":"date","x-kubernetes-validations":[{"rule":"self.getFullYear() > 2000"}]}`,
		Edits:   []Edit{{celPackage, "types.go", `case "date", "date-time":`, `case "date-time":`}},
	},
	{
		Name: "int-as-double", What: "a rule about a number fails for values that are whole",
		Example: `{"type":"number","x-kubernetes-validations":[{"rule":"self / 2.0 < 1.0"}]} with 1`,
		Edits:   []Edit{{celPackage, "value.go", "		case t == plan.Number && whole:\n			return types.Double(i)\n", "		case t == plan.Number && whole:\n			return types.Int(i)\n"}},
	},
	{
		Name: "keyword-field", What: "rules cannot use fields by names that are keywords",
		Example: `"properties":{"namespace":{"type":"string"}} with the rule "self.namespace == 'a'"`,
		Edits:   []Edit{{celPackage, "types.go", `case t.keywords && escaped == "__"+name+"__":`, `case t.keywords && escaped == "_"+name+"_":`}},
	},
	{
		Name: "optional-old-ignored", What: "a rule with optionalOldSelf is not evaluated for new objects",
		Example: `{"rule":"oldSelf.hasValue()","optionalOldSelf":true} for a new object`,
		Edits:   []Edit{{celPackage, "run.go", "case p.old && !r.site.HasOld && !p.optionalOld():", "case p.old && !r.site.HasOld:"}},
	},
}

// estimates are bugs of the estimated costs.
var estimates = []Bug{
	{
		Name: "cost-date", What: "the smallest size of a date is that of any string",
		Example: `an unbounded list of {"type":"string","format":"date"} whose items have a rule`,
		Edits: []Edit{{
			celPackage, "size.go", "		case \"date\":\n			return cel.JSONDateSize\n		case \"date-time\":\n			return cel.MinDatetimeSizeJSON",
			"		case \"date-time\":\n			return cel.MinDatetimeSizeJSON",
		}},
	},
	{
		Name: "cost-required-default", What: "required fields with a default count for the smallest size of an object",
		Example: `a list of {"type":"object","required":["a"],"properties":{"a":{"type":"string","default":"x"}}} whose items have the rule "true"`,
		Edits:   []Edit{{celPackage, "size.go", "exposed(p) && p.Flags&plan.HasDefault == 0 {", "exposed(p) {"}},
	},
	{
		Name: "cost-map-entries", What: "a map is estimated to have more entries than fit a request",
		Example: `{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.all(k, k != '')"}]}`,
		Edits:   []Edit{{celPackage, "size.go", "isEmbedded(n.Additional)) + 6)", "isEmbedded(n.Additional)) + 5)"}},
	},
	{
		Name: "cost-enum-max-length", What: "the values of an enum decide the estimate although there is a maxLength",
		Example: `{"type":"string","enum":["a"],"maxLength":100,"x-kubernetes-validations":[{"rule":"self.contains('a')"}]}`,
		Edits:   []Edit{{celPackage, "size.go", "a != nil && assertion(n, plan.MaxLength) == nil {", "a != nil {"}},
	},
	{
		Name: "cost-bytes", What: "bytes are estimated to have four bytes each",
		Example: `{"type":"string","format":"byte","maxLength":100,"x-kubernetes-validations":[{"rule":"string(self).contains('a')"}]}`,
		Edits:   []Edit{{celPackage, "size.go", "		return maxLength(n, 1)\n", "		return maxLength(n, 4)\n"}},
	},
	{
		Name: "cost-five-named", What: "five rules are named when all rules together cost too much",
		Example: `a schema with six rules whose estimates are above a fifth of the limit for a schema`,
		Edits:   []Edit{{celPackage, "check.go", "const mostExpensive = 4", "const mostExpensive = 5"}},
	},
	{
		Name: "cost-factor-text", What: "the factor by which a limit is exceeded is written with other digits",
		Example: `a rule whose estimate is 1.7 times the limit`,
		Edits:   []Edit{{celPackage, "check.go", "case factor < 1.5:", "case factor < 2:"}},
	},
	{
		Name: "cost-generate-name", What: "generateName is estimated to be as long as a name",
		Example: `{"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.generateName.contains('a')"}]}`,
		Edits:   []Edit{{celPackage, "view.go", "maxGenerateName = maxName - 1", "maxGenerateName = maxName"}},
	},
	{
		Name: "cost-cardinality", What: "a rule below an unbounded list is estimated to be evaluated more often than it can be",
		Example: `{"type":"array","items":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]}}`,
		Edits:   []Edit{{celPackage, "expression.go", "apiservercel.DefaultMaxRequestSizeBytes / (size + 1)", "apiservercel.DefaultMaxRequestSizeBytes / max(size, 1)"}},
	},
	{
		Name: "cost-message-times", What: "the estimate of a messageExpression is multiplied by the number of values",
		Example: `a list with "maxItems":1000 whose items, strings, have the rule "true" with the messageExpression "self"`,
		Edits:   []Edit{{celPackage, "check.go", `"estimated messageExpression cost", r.messageCost)`, `"estimated messageExpression cost", multiply(r.messageCost, r.times))`}},
	},
	{
		Name: "cost-int-or-string", What: "the maxLength of an int-or-string does not lower the estimate",
		Example: `{"x-kubernetes-int-or-string":true,"maxLength":10,"x-kubernetes-validations":[{"rule":"string(self).contains('a')"}]}`,
		Edits:   []Edit{{celPackage, "size.go", "		return maxLength(n, 4)\n	}\n	switch n.Type {", "		return maxText\n	}\n	switch n.Type {"}},
	},
	{
		Name: "cost-duration-min", What: "the smallest size of a duration is that of a string",
		Example: `an unbounded list of {"type":"string","format":"duration"} whose items have a rule`,
		Edits:   []Edit{{celPackage, "size.go", "		case \"duration\":\n			return cel.MinDurationSizeJSON\n", ""}},
	},
}
