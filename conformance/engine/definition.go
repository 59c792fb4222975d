package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd"
)

// Definition returns Espalier's verdict on a whole CRD. Of the warnings it has those that the reference knows. A finding
// whose place is not in the document is an error of its own.
func Definition(doc []byte, o oracle.DefinitionOptions) (v oracle.DefinitionVerdict) {
	defer func() {
		if p := recover(); p != nil {
			v = oracle.DefinitionVerdict{Panic: p}
		}
	}()
	findings, err := crd.Validate(doc, crd.ValidateOptions{Old: o.Old, Verbatim: o.Verbatim})
	if err != nil {
		return oracle.DefinitionVerdict{Undecodable: err}
	}
	for _, f := range findings {
		switch {
		case f.Severity == espalier.Error:
			v.Errors = append(v.Errors, f.Error())
		case f.Rule == "format-unrecognized" || f.Rule == "list-set-objects":
			v.Warnings = append(v.Warnings, f.Detail)
		}
		if f.Offset < 0 || f.Offset >= len(doc) || f.Pointer != "" && !strings.HasPrefix(f.Pointer, "/") {
			v.Errors = append(v.Errors, fmt.Sprintf("misplaced: %q, %d: %s", f.Pointer, f.Offset, f.Error()))
		}
	}
	slices.Sort(v.Errors)
	slices.Sort(v.Warnings)
	v.Warnings = slices.Compact(v.Warnings)
	return v
}
