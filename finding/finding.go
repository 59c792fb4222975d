package finding

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Severity says how severe a finding is. The zero value is Error: a finding without a severity is an error.
type Severity uint8

// The severities, the most severe first.
const (
	// Error: API servers refuse it.
	Error Severity = iota
	// Warning: API servers accept it, but it is probably a mistake.
	Warning
	// Info: it is worth knowing.
	Info
)

var severities = []string{"error", "warning", "info"}

// String returns "error", "warning" or "info".
func (s Severity) String() string {
	if int(s) >= len(severities) {
		return fmt.Sprintf("Severity(%d)", uint8(s))
	}
	return severities[s]
}

// MarshalText makes severities words in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// AtLeast reports whether s is as severe as other, or more severe.
func (s Severity) AtLeast(other Severity) bool { return s <= other }

// ParseSeverity is the inverse of String.
func ParseSeverity(name string) (Severity, error) {
	i := slices.Index(severities, name)
	if i < 0 {
		return 0, fmt.Errorf("there is no severity %q: use error, warning or info", name)
	}
	return Severity(i), nil
}

// ID is the identifier of a check, such as "type-required". Identifiers are stable: programs and
// settings select and suppress findings by them.
type ID string

// Check describes a check.
type Check struct {
	ID          ID
	Severity    Severity // of its findings
	Explanation string   // the requirement, in one sentence
	Source      string   // the document that requires it, or an issue about it
}

// New is a row of a table of checks.
func New(id ID, severity Severity, explanation, source string) Check {
	return Check{ID: id, Severity: severity, Explanation: explanation, Source: source}
}

// Finding is one thing that is wrong with a schema or a CRD.
type Finding struct {
	Check    ID              // the check
	Severity Severity        //
	Type     field.ErrorType // the API server's error type; empty for advice
	Path     string          // the API server's field path, such as spec.properties[spec].type
	BadValue any             // the API server's bad value
	Detail   string          // what is wrong; the API server's words where it has some
	Summary  string          // what is wrong, for people, if Error is long: the CEL compiler's first error
	Fix      string          // what to write instead, if known: a sentence, or YAML
	Pointer  string          // RFC 6901 pointer into the document
	Offset   int             // byte offset in the document
}

// Error renders the finding as the API server would.
func (f Finding) Error() string {
	if f.Type == "" {
		return f.Path + ": " + f.Detail
	}
	e := field.Error{Type: f.Type, Field: f.Path, BadValue: f.BadValue, Detail: f.Detail}
	return e.Error()
}

// Errors returns the findings of severity Error.
func Errors(all []Finding) []Finding {
	var out []Finding
	for i := range all {
		if all[i].Severity == Error {
			out = append(out, all[i])
		}
	}
	return out
}
