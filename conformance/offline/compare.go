package offline

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
)

// Findings are what `espalier validate` reports about an object.
type Findings struct {
	Errors   []string
	Fields   []string // unknown and duplicate ones
	Warnings []string
}

// The checks whose findings are more than errors.
const (
	fieldUnknown   = "field-unknown"
	fieldDuplicate = "field-duplicate"
)

// storageError is what storage says about a new object. A request with dryRun does not come that far.
const storageError = "resourceVersion should not be set on objects to be created"

const strictPrefix = "strict decoding error: "

// Add adds a diagnostic.
func (f *Findings) Add(check, severity, message string) {
	switch {
	case check == fieldUnknown || check == fieldDuplicate:
		f.Fields = append(f.Fields, strings.TrimPrefix(message, strictPrefix))
	case check == "namespace-ignored": // the server says nothing
	case severity == "error":
		f.Errors = append(f.Errors, message)
	case severity == "warning":
		f.Warnings = append(f.Warnings, message)
	}
}

// Outcome is the result of a comparison.
type Outcome int

// The outcomes.
const (
	Same    Outcome = iota
	Cluster         // the server knows something of a cluster that decides
	Differs
)

// cluster are errors that depend on the settings or on other objects of a cluster.
var cluster = regexp.MustCompile(`failed to allocate|not configured on this cluster|not configured for dual-stack|not in the valid range|provided (IP|port|range)|is already allocated|` +
	`the namespace of the provided object does not match`)

// Compare compares findings with the answers to requests with strict fields, and with fields ignored. It returns the difference.
func Compare(f *Findings, strict, ignore *answer.Answer) (Outcome, string) {
	if want := strictErrors(strict); !equal(f.Fields, want) && !(len(want) == 0 && strict.Code != http.StatusCreated && ignore.Code == http.StatusBadRequest) {
		return Differs, fmt.Sprintf("fields: %q, the server %q", f.Fields, want)
	}
	reason, message, causes := ignore.Status()
	var want []string
	switch {
	case ignore.Accepted():
	case ignore.Code == http.StatusUnprocessableEntity:
		for _, c := range causes {
			want = append(want, c.Field+": "+uid.ReplaceAllString(c.Message, "")) // only a server gives a new object a UID
		}
	case ignore.Code == http.StatusBadRequest:
		if strings.HasPrefix(message, "the object provided is unrecognized") {
			message, _, _ = strings.Cut(message, " ({") // the beginning of the object
		}
		want = []string{message}
	default:
		return Cluster, fmt.Sprintf("the server: %d %s", ignore.Code, reason)
	}
	var errs []string
	for _, e := range f.Errors {
		if e != storageError {
			errs = append(errs, uid.ReplaceAllString(e, ""))
		}
	}
	if !equal(errs, want) {
		switch {
		case cluster.MatchString(message):
			return Cluster, "the server: " + cluster.FindString(message)
		default:
			return Differs, fmt.Sprintf("errors: %q, the server %d %q", errs, ignore.Code, want)
		}
	}
	var warnings []string
	for _, w := range ignore.Warnings {
		if strings.Contains(w, "this server does not route requests to Services") {
			continue // others do
		}
		warnings = append(warnings, strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(w)) // as headers quote them
	}
	if ignore.Accepted() && !equal(f.Warnings, warnings) {
		return Differs, fmt.Sprintf("warnings: %q, the server %q", f.Warnings, warnings)
	}
	return Same, ""
}

var uid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)

var nextStrict = regexp.MustCompile(`, (unknown|duplicate) field "`)

// strictErrors returns the fields that strict decoding refuses.
func strictErrors(a *answer.Answer) []string {
	_, message, _ := a.Status()
	_, list, ok := strings.Cut(message, strictPrefix)
	if !ok {
		return nil
	}
	return strings.Split(nextStrict.ReplaceAllString(list, "\n$1 field \""), "\n")
}

// equal compares sets of texts.
func equal(a, b []string) bool { return slices.Equal(set(a), set(b)) }

func set(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
