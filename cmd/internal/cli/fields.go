package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/finding"
)

// The ways to treat fields that are unknown or appear twice, as kubectl calls
// them.
const (
	fieldsStrict = "strict"
	fieldsWarn   = "warn"
	fieldsIgnore = "ignore"
)

// fieldsFlag adds --field-validation.
func fieldsFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "field-validation", fieldsStrict, "unknown and duplicate fields: strict (errors), warn (warnings) or ignore")
	Must(cmd.RegisterFlagCompletionFunc("field-validation", cobra.FixedCompletions([]string{fieldsStrict, fieldsWarn, fieldsIgnore}, cobra.ShellCompDirectiveNoFileComp)))
}

func checkFields(value string) error {
	switch value {
	case fieldsStrict, fieldsWarn, fieldsIgnore:
		return nil
	}
	return fmt.Errorf("--field-validation must be strict, warn or ignore, not %q", value)
}

// unknownFields are the checks of CRDs that strict field validation is about.
var unknownFields = map[finding.ID]bool{"unknown-field": true, "unknown-keyword": true, "duplicate-key": true}

// byFieldValidation gives a diagnostic of a CRD the severity that field validation gives it,
// and reports whether to show it.
func byFieldValidation(d *report.Diagnostic, fields string) bool {
	if !unknownFields[d.Check] {
		return true
	}
	switch fields {
	case fieldsIgnore:
		return false
	case fieldsStrict:
		d.Severity = finding.Error
	}
	return true
}
