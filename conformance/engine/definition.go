package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
)

// CRD returns Espalier's result for a whole CRD. Of the warnings it has those that the reference knows. A finding
// whose place is not in the document is an error of its own.
func CRD(doc []byte, o oracle.CRDOptions) (v oracle.CRDResult) {
	defer func() {
		if p := recover(); p != nil {
			v = oracle.CRDResult{Panic: p}
		}
	}()
	findings, err := validate(doc, o)
	if err != nil {
		return oracle.CRDResult{Undecodable: err}
	}
	for _, f := range findings {
		switch {
		case f.Severity == finding.Error:
			v.Errors = append(v.Errors, f.Error())
		case f.Check == "format-unrecognized" || f.Check == "list-set-objects":
			v.Warnings = append(v.Warnings, f.Detail)
		}
		if f.Offset < 0 || f.Offset >= len(doc) || f.Pointer != "" && !strings.HasPrefix(f.Pointer, "/") {
			v.Errors = append(v.Errors, fmt.Sprintf("misplaced: %q, %d: %s", f.Pointer, f.Offset, f.Error()))
		}
	}
	v.Ordered = slices.Clone(v.Errors)
	slices.Sort(v.Errors)
	slices.Sort(v.Warnings)
	v.Warnings = slices.Compact(v.Warnings)
	return v
}

func validate(doc []byte, o oracle.CRDOptions) ([]finding.Finding, error) {
	d, err := crd.Parse(doc)
	if err != nil {
		return nil, err
	}
	defer d.Release()
	options := crd.ValidateOptions{Verbatim: o.Verbatim, CompatibilityVersion: o.Compatibility}
	if o.Old != nil {
		if options.Old, err = crd.Parse(o.Old); err != nil {
			return nil, err
		}
		defer options.Old.Release()
	}
	return crd.Validate(d, options)
}
