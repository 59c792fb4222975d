package crdcontroller

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/syntax"
	"github.com/espalier-dev/espalier/server/catalog"
)

// maxMessage bounds the message of a condition, which every reader of the
// definition gets. It is what Kubernetes permits the conditions of others.
const maxMessage = 32 << 10

// unstructural says what keeps the schemas of a definition from being
// structural, or nothing. Only definitions that come from before
// apiextensions.k8s.io/v1 have such.
func unstructural(e *catalog.Entry, data []byte) (*v1.CustomResourceDefinitionCondition, error) {
	d, err := crd.Parse(data)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	c := &v1.CustomResourceDefinitionCondition{Type: v1.NonStructuralSchema}
	var faults []string
	if e.PreserveUnknownFields {
		faults = append(faults, field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true, "must be false").Error())
	}
	for i := range d.Versions {
		v := &d.Versions[i]
		if v.Schema == nil {
			continue
		}
		path := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		found, problem := violations(path, crdtree.Parse(v).Tree)
		if problem != "" {
			c.Status, c.Reason = v1.ConditionUnknown, "StructuralError"
			c.Message = shorten(fmt.Sprintf("failed to check validation schema for version %s: %s", v.Name, problem))
			return c, nil
		}
		faults = append(faults, found...)
	}
	if len(faults) == 0 {
		return nil, nil
	}
	c.Status, c.Reason = v1.ConditionTrue, "Violations"
	c.Message = aggregate(faults)
	return c, nil
}

// violations returns what the rules for structural schemas have against a
// schema, or why it cannot be judged by them.
func violations(path *field.Path, s *syntax.Schema) (faults []string, problem string) {
	if problem := compile.ConversionProblem(s); problem != "" {
		return nil, problem
	}
	verdict := compile.Judge(s, compile.CheckOptions{Path: path, UncheckedDefaults: true})
	if !verdict.Unstructural {
		return nil, ""
	}
	for i := range verdict.Findings {
		if f := &verdict.Findings[i]; aboutStructure(f) {
			faults = append(faults, f.Error())
		}
	}
	slices.Sort(faults)
	return faults, ""
}

// aboutStructure tells the rules of KEP-2335 from the others that a schema is
// checked by when it is created.
func aboutStructure(f *finding.Finding) bool {
	if f.Severity != finding.Error {
		return false
	}
	switch f.Rule {
	case "type-required", "root-type-object", "items-required", "root-additional-properties",
		"embedded-type", "embedded-additional-properties", "embedded-properties",
		"type-meta-string", "metadata-object", "root-metadata",
		"int-or-string-exclusive", "pattern-invalid", "incomplete":
		return true
	}
	return strings.HasPrefix(string(f.Rule), "junctor-")
}

// aggregate lists faults as upstream lists several errors, each once. It stops
// when the message is full.
func aggregate(faults []string) string {
	seen := nameSet{}
	var list strings.Builder
	for _, f := range faults {
		if _, ok := seen[f]; ok {
			continue
		}
		if seen[f] = struct{}{}; len(seen) > 1 {
			list.WriteString(", ")
		}
		list.WriteString(f)
		if list.Len() > maxMessage {
			break
		}
	}
	if len(seen) == 1 {
		return shorten(list.String())
	}
	return shorten("[" + list.String() + "]")
}

// shorten makes a message fit for a condition: it reads back as it was
// written, and is cut at a character if it has to be.
func shorten(message string) string {
	const mark = " …"
	message = strings.ToValidUTF8(message, "\ufffd")
	if len(message) <= maxMessage {
		return message
	}
	cut := maxMessage - len(mark)
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + mark
}
