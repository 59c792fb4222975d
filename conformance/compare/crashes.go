package compare

import (
	"strings"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

// crashes are the functions in which the reference crashes, with the rows of DIVERGENCES.md that describe it. A crash
// elsewhere is a difference like any other.
var crashes = map[string]string{
	"validation.propertyTypeInfoAccessor.accessTypeInfo by validation.(*CELSchemaContext).TypeInfo":        "reference-crash",
	"validation.additionalItemsTypeInfoAccessor.accessTypeInfo by validation.(*CELSchemaContext).TypeInfo": "reference-crash",
	"validation.itemsTypeInfoAccessor.accessTypeInfo by validation.(*CELSchemaContext).TypeInfo":           "reference-crash",
	"interpreter.(*evalMap).Exec by interpreter.(*evalMap).Eval":                                           "rule-literal-crash",
	"cel.ValidFieldPath by validation.ValidateCustomResourceSelectableFields":                              "selectable-fields-crash",
}

// crashRow is the row that describes a crash of the reference, or "".
func crashRow(panicked any) string {
	c, ok := panicked.(*oracle.Crash)
	if !ok {
		return ""
	}
	return crashes[c.In]
}

// describedCrash is crashRow for the text of a crash.
func describedCrash(text string) bool {
	for in := range crashes {
		if strings.HasSuffix(text, " in "+in) {
			return true
		}
	}
	return false
}
