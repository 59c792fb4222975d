package bug

// crds are bugs of the validation of a whole CRD, new or updated.
var crds = []Bug{
	{
		Name: "no-storage-version", What: "a CRD without a storage version is told less",
		Example: `a CRD whose only version has "storage":false`,
		Edits:   []Edit{{crdPackage, "validate_spec.go", "if storage != 1 {", "if storage > 1 {"}},
	},
	{
		Name: "warning-characters", What: "a deprecation warning may have 256 characters of several bytes",
		Example: `"deprecated":true,"deprecationWarning": 200 times "é"`,
		Edits:   []Edit{{crdPackage, "validate_spec.go", "if len(text) > 256 {", "if utf8.RuneCountInString(text) > 256 {"}},
	},
	{
		Name: "replicas-prefix", What: "specReplicasPath may begin with any name that begins with spec",
		Example: `"scale":{"specReplicasPath":".special.replicas","statusReplicasPath":".status.replicas"}`,
		Edits:   []Edit{{crdPackage, "validate_spec.go", `!strings.HasPrefix(p.path, p.under+".")`, `!strings.HasPrefix(p.path, p.under)`}},
	},
	{
		Name: "selector-under-spec", What: "labelSelectorPath must be under status",
		Example: `"labelSelectorPath":".spec.selector"`,
		Edits:   []Edit{{crdPackage, "validate_spec.go", `!strings.HasPrefix(*p, ".spec.") && `, ``}},
	},
	{
		Name: "selectable-nine", What: "a version may have nine selectable fields",
		Example: `"selectableFields" with nine paths`,
		Edits:   []Edit{{crdPackage, "validate_spec.go", "n > maxSelectable && !c.ratchet", "n > maxSelectable+1 && !c.ratchet"}},
	},
	{
		Name: "kind-changes", What: "the kind of an established CRD may change",
		Example: `"names":{"kind":"A"}, before "B", with the condition Established`,
		Edits:   []Edit{{crdPackage, "validate_spec.go", "		unchanged(at.to(\"names\", \"kind\"), m.Kind, old.Kind, m.Kind)\n", ""}},
	},
	{
		Name: "review-versions-ratcheted", What: "a CRD that gets a webhook may name unknown review versions only",
		Example: `"conversionReviewVersions":["v9"], before "strategy":"None"`,
		Edits:   []Edit{{crdPackage, "ratchet.go", "len(old.Conversion.ReviewVersions) > 0 && !understoodAny", "!understoodAny"}},
	},
	{
		Name: "set-not-ratcheted", What: "an update is refused because of a set of objects that the CRD had before",
		Example: `{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}} before and after`,
		Edits:   []Edit{{crdPackage, "ratchet.go", "	r.tolerance.ListSets = r.tolerance.ListSets || nonAtomicSet(s)\n", "	_ = nonAtomicSet(s)\n"}},
	},
	{
		Name: "equal-schemas-max-length", What: "a schema that loses a maxLength counts as unchanged, and its rules may cost more than the limit",
		Example: `{"type":"array","items":{"type":"string","x-kubernetes-validations":[{"rule":"self.contains('a')"}]}}, before with "maxLength":5`,
		Edits:   []Edit{{crdPackage, "equal.go", "equalPointers(a.MaxLength, b.MaxLength) && equalPointers(a.MinLength, b.MinLength)", "equalPointers(a.MinLength, b.MinLength)"}},
	},
	{
		Name: "equal-rules-field-path", What: "the rules of a second version that differ in fieldPath only are not checked",
		Example: `version v1 with "fieldPath":".a", version v2 with "fieldPath":".missing"`,
		Edits:   []Edit{{crdPackage, "equal.go", "a.MessageExpression == b.MessageExpression && a.FieldPath == b.FieldPath &&", "a.MessageExpression == b.MessageExpression &&"}},
	},
	{
		Name: "approval-on-update", What: "an update may take away the approval of a group of Kubernetes",
		Example: `group "a.k8s.io", no annotation, before "api-approved.kubernetes.io":"https://github.com/kubernetes/kubernetes/pull/1"`,
		Edits: []Edit{{
			crdPackage, "validate_names.go", "if c.old != nil && approvalOf(c.old.meta.Annotations[approvedAnnotation]) == state {",
			"if c.old != nil {",
		}},
	},
	{
		Name: "url-and-service", What: "a conversion webhook may have a URL and a service",
		Example: `"clientConfig":{"url":"https://a.example/","service":{"name":"a","namespace":"b"}}`,
		Edits:   []Edit{{crdPackage, "validate_conversion.go", "case (x.URL == nil) == (x.Service == nil):", "case x.URL == nil && x.Service == nil:"}},
	},
	{
		Name: "categories-unchecked", What: "categories may be anything",
		Example: `"names":{"categories":["A B"]}`,
		Edits:   []Edit{{crdPackage, "validate_names.go", "	c.words(n.Categories, s.to(\"categories\"))\n", ""}},
	},
	{
		Name: "status-of-first-version", What: "a schema that all versions share is checked for a status subresource of the first version only",
		Example: `two versions with {"type":"object","maxProperties":5}, the second with "subresources":{"status":{}}`,
		Edits: []Edit{{
			crdPackage, "validate_spec.go", "status := slices.ContainsFunc(m.versions, func(v version) bool { return v.Status })",
			"status := slices.ContainsFunc(m.versions[:1], func(v version) bool { return v.Status })",
		}},
	},
	{
		Name: "protected-subdomain", What: "a group below kubernetes.io needs no approval",
		Example: `group "a.kubernetes.io" without an annotation`,
		Edits:   []Edit{{crdPackage, "validate_names.go", `!strings.HasSuffix(g, ".kubernetes.io")`, `g != ".kubernetes.io"`}},
	},
	{
		Name: "stored-version-removed", What: "the error about a stored version that is gone names another place of status.storedVersions",
		Example: `"storedVersions":["v1","v2"] without v2 among the versions`,
		Edits:   []Edit{{crdPackage, "validate_names.go", `at.as(s.path+"["+strconv.Itoa(i)+"]")`, `at.as(s.path+"["+strconv.Itoa(len(c.new.stored)-1-i)+"]")`}},
	},
	{
		Name: "selectable-duplicate", What: "a selectable field may be listed twice",
		Example: `"selectableFields":[{"jsonPath":".spec.a"},{"jsonPath":".spec.a"}]`,
		Edits:   []Edit{{crdPackage, "validate_spec.go", "		name := path.String()\n", "		name := path.Index(i).String()\n"}},
	},
}
