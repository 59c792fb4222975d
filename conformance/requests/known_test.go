package requests_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// known are the causes of differences. Each takes out of a difference what it explains, and reports whether that was
// something. A server answers in phases, and what it refuses in one hides the next; the command line says all at once.
// Most causes are of that kind.
var known = []struct {
	cause    string
	explains func(*difference) bool
}{
	// The server warns of finalizers only if it accepts the object. The command line reports everything at once.
	{"finalizer warnings of what is refused", func(d *difference) bool {
		return d.request.server.refused && take(&d.cliWarnings, ofRule("finalizer-unqualified"))
	}},
	// Storage refuses a new object with a resourceVersion. The command line says so beside what is refused before.
	{"resourceVersion of what is refused", func(d *difference) bool {
		return d.verb == create && d.request.server.code != 500 && d.request.server.refused && take(&d.cli, ofRule("resource-version-set"))
	}},
	// A uid is a precondition. The server's error also has the key of the object in etcd.
	{"uid of another object", func(d *difference) bool {
		return d.request.server.code == 409 && pair(&d.server, &d.cli, func(server, cli said) bool {
			return strings.HasPrefix(cli.text, "Precondition failed: UID in precondition: ") && strings.HasSuffix(server.text, ": "+cli.text)
		})
	}},
	// Rules of the whole object compare all of its metadata. Only the server knows which managedFields a change has.
	{"managedFields in rules of the whole object", func(d *difference) bool {
		return d.verb == update && d.def.Kind == "Frozen" && len(d.cli) == 0 && take(&d.server, exactly("<nil>: Invalid value: it is frozen"))
	}},
	// Strict decoding ends the request. The command line goes on: what it says besides is what it says when it is not
	// strict, which is compared by itself.
	{"after strict decoding", func(d *difference) bool {
		if d.mode != "Strict" || d.request.server.code != 400 || !strings.Contains(d.request.server.raw, "strict decoding error: ") {
			return false
		}
		lax := d.siblings["Ignore"].cli
		errors := take(&d.cli, func(s said) bool { return !strings.HasPrefix(s.text, strict) && slices.Contains(lax.errors, s) })
		return take(&d.cliWarnings, func(s said) bool { return slices.Contains(lax.warnings, s) }) || errors
	}},
	// What has no kind, or no apiVersion, cannot be sent anywhere. Servers say so in several ways, mostly with the object,
	// and the command line always in the same.
	{"objects without a type", func(d *difference) bool {
		switch d.request.server.code {
		case 400, 404, 405:
			if d.version.Deprecated {
				d.serverWarnings = nil // a request to a deprecated version gets a warning
			}
			return take(&d.cli, func(s said) bool {
				return s.text == "Object 'Kind' is missing" || s.text == "Object 'apiVersion' is missing"
			}) &&
				take(&d.server, func(said) bool { return true })
		}
		return false
	}},
	// An error about the object as a whole shows it, with what the server has filled in: creationTimestamp, generation,
	// uid, managedFields. The command line cannot know all of that, and has what the client has sent in place of it.
	{"metadata of objects in errors", func(d *difference) bool {
		return pair(&d.server, &d.cli, func(server, cli said) bool { return withoutMetadata(server.text) == withoutMetadata(cli.text) })
	}},
	// The server refuses values of the wrong type before it looks at metadata (mismatch-first of DIVERGENCES.md).
	// Upstream says both at once, as the command line does.
	{"metadata beside values of the wrong type", func(d *difference) bool {
		return d.request.server.code == 422 && strings.Contains(d.request.server.raw, `"reason":"FieldValueTypeInvalid"`) && take(&d.cli, func(s said) bool {
			return strings.HasPrefix(s.text, "metadata.") || strings.HasPrefix(s.text, `<nil>: Invalid value: "": "metadata.`)
		})
	}},
	// The server stores CRDs in canonical form, and then an enum that lists {"a":1.0} lists {"a":1}. For upstream, and for
	// the command line, a number within such a value is what is written (number-form of DIVERGENCES.md).
	{"numbers within the values of enums", func(d *difference) bool {
		return take(&d.cli, func(s said) bool {
			_, rest, ok := strings.Cut(s.text, ": Unsupported value: ")
			bad, supported, _ := strings.Cut(rest, ": supported values: ")
			return ok && s.rule == "value-enum" && strings.ContainsAny(bad[:1], "{[") && strings.Contains(unsigned(supported), strconv.Quote(bad))
		}) || pair(&d.server, &d.cli, func(server, cli said) bool {
			return cli.rule == "value-enum" && server.text == unsigned(cli.text)
		})
	}},
}

// withoutMetadata is an error about a whole object without the object's metadata.
func withoutMetadata(text string) string {
	before, rest, ok := strings.Cut(text, ": {")
	if !ok || !strings.HasPrefix(text, "<nil>: ") {
		return text
	}
	decoder := json.NewDecoder(strings.NewReader("{" + rest))
	var object map[string]any
	if decoder.Decode(&object) != nil {
		return text
	}
	after := ("{" + rest)[decoder.InputOffset():]
	delete(object, "metadata")
	value, err := json.Marshal(object)
	if err != nil {
		return text
	}
	return before + string(value) + after
}

// take removes what matches from a list and reports whether there was something.
func take(list *[]said, matches func(said) bool) bool {
	n := len(*list)
	*list = slices.DeleteFunc(slices.Clone(*list), matches)
	return len(*list) < n
}

func exactly(text string) func(said) bool { return func(s said) bool { return s.text == text } }

func ofRule(rule string) func(said) bool { return func(s said) bool { return s.rule == rule } }

// pair removes from two lists what corresponds to each other, and reports whether there was something.
func pair(server, cli *[]said, same func(server, cli said) bool) bool {
	var matched []said
	some := take(server, func(s said) bool {
		i := slices.IndexFunc(*cli, func(c said) bool { return same(s, c) })
		if i >= 0 {
			matched = append(matched, (*cli)[i])
		}
		return i >= 0
	})
	take(cli, func(c said) bool { return slices.Contains(matched, c) })
	return some
}

// unsigned is a text in which no zero is negative.
func unsigned(text string) string { return negativeZero.ReplaceAllString(text, "${1}0$2") }

var negativeZero = regexp.MustCompile(`([\[:", ])-0([\]}", ])`)
