package compare

import (
	"context"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
)

func TestGrammarFindsNothingAndCounts(t *testing.T) {
	counts, found, err := Run(context.Background(), nil, Config{Seed: 200, Grammar: 300})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		t.Error(d)
	}
	if counts.Grammar.Accepted.Load() < 30 || counts.Grammar.Validated.Load() < 1000 || counts.Grammar.Odd.Load() < 100 {
		t.Error("hardly anything was compared:", &counts.Grammar)
	}
	for _, table := range counts.Tables {
		if strings.Contains(table.String(), ": 0 of ") {
			t.Error(table)
		}
	}
}

// TestValidateRaw pins what the reference's answer about bytes of any form is: the one about the stored form.
func TestValidateRaw(t *testing.T) {
	pair, d := Compile([]byte(`{"type":"object","properties":{"f":{"type":"integer","enum":[2]}}}`))
	if d != nil {
		t.Fatal(d)
	}
	for raw, want := range map[string]string{
		`{"f":2.0}`: "valid", ` {"f":3,"\u0066":20e-1}`: "valid", `{"f":3.0}`: "invalid", `{"f":2}x`: "undecodable", "\xef\xbb\xbf{}": "undecodable",
	} {
		d, theirs, row := pair.ValidateRaw([]byte(raw), oracle.ValidateOptions{})
		if d != nil || row != "" {
			t.Error(d, row)
		}
		got := "invalid"
		if theirs.Undecodable != nil {
			got = "undecodable"
		} else if theirs.Valid() {
			got = "valid"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

// TestRowsAreOwed sees that a row of DIVERGENCES.md is demanded, not only allowed.
func TestRowsAreOwed(t *testing.T) {
	pair, d := Compile([]byte(`{"type":"object","properties":{"f":{"type":"number","maximum":9223372036854775808,"exclusiveMaximum":true},"g":{"type":"string","nullable":true,"enum":[null,"a"]}}}`))
	if d != nil {
		t.Fatal(d)
	}
	object := []byte(`{"f":9223372036854775807,"g":null}`)
	theirs := pair.theirs.Validate(object, oracle.ValidateOptions{})
	if len(theirs.Errors) != 2 {
		t.Fatal(theirs.String())
	}
	for _, e := range theirs.Errors {
		if got := pair.owed(object, &oracle.Validation{Errors: []string{e}}); got != e {
			t.Errorf("%s: owed %q", e, got)
		}
	}
	if ours := pair.ours.Validate(object, oracle.ValidateOptions{}); !ours.Valid() {
		t.Error(ours.String())
	}
	if _, _, row := pair.ValidateRaw(object, oracle.ValidateOptions{}); row == "" {
		t.Error("the difference is not explained")
	}
	broken := []byte(`{"f":9223372036854775809}`)
	if !pair.trulyBroken(broken, []string{"FieldValueInvalid|f|1|f in body should be less than 1|"}) {
		t.Error("an error that is right would be excused")
	}
}
