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

// maxMessage bounds the message of a condition, which every client that reads the CRD
// gets. Kubernetes has the same bound for metav1.Condition.
const maxMessage = 32 << 10

// unstructural returns the condition about schemas that are not structural, or nil. Only
// CRDs from before apiextensions.k8s.io/v1 have such.
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

// violations returns the violations of the rules for structural schemas, or the reason
// why the schema cannot be checked.
func violations(path *field.Path, s *syntax.Schema) (faults []string, problem string) {
	if problem := compile.ConversionProblem(s); problem != "" {
		return nil, problem
	}
	result := compile.Validate(s, compile.CheckOptions{Path: path, UncheckedDefaults: true})
	if !result.Unstructural {
		return nil, ""
	}
	for i := range result.Findings {
		if f := &result.Findings[i]; aboutStructure(f) {
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
	switch f.Check {
	case "type-required", "root-type-object", "items-required", "root-additional-properties",
		"embedded-type", "embedded-additional-properties", "embedded-properties",
		"type-meta-string", "metadata-object", "root-metadata",
		"int-or-string-exclusive", "pattern-invalid", "incomplete":
		return true
	}
	return strings.HasPrefix(string(f.Check), "junctor-")
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
