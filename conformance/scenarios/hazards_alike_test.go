package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// odd is a body whose meaning servers disagree about. %s stands for the object's name.
type odd struct{ name, contentType, body string }

// pot is an odd object with a spec.
func pot(name, spec string) odd {
	return odd{name, jsonType, `{"apiVersion":"hazards.example.com/v1","kind":"Pot","metadata":{"name":"%s"},"spec":` + spec + `}`}
}

// potYAML is the same as YAML.
func potYAML(name, spec string) odd {
	return odd{name, yamlType, "apiVersion: hazards.example.com/v1\nkind: Pot\nmetadata: {name: \"%s\"}\nspec: " + spec + "\n"}
}

func oddKeys() []odd {
	const head = `{"apiVersion":"hazards.example.com/v1","kind":"Pot",`
	return []odd{
		pot("twice in a map", `{"any":{"a":1,"a":2}}`),
		pot("twice specified", `{"text":"a","text":"b"}`),
		pot("twice, the second null", `{"text":"a","text":null}`),
		pot("twice with an escape", `{"text":"a","t\u0065xt":"b"}`),
		pot("twice, objects", `{"any":{"a":{"b":1},"a":{"c":2}}}`),
		pot("another case", `{"Text":"a","TEXT":"b","text":"c"}`),
		pot("another case alone", `{"Replicas":5}`),
		{"spec twice", jsonType, head + `"metadata":{"name":"%s"},"spec":{"text":"a"},"spec":{"integer":1}}`},
		{"spec in another case", jsonType, head + `"metadata":{"name":"%s"},"Spec":{"text":"a"},"spec":{"integer":1}}`},
		{"metadata twice", jsonType, head + `"metadata":{"name":"other"},"metadata":{"name":"%s"}}`},
		{"metadata in another case", jsonType, head + `"Metadata":{"name":"other"},"metadata":{"name":"%s"}}`},
		{"only Metadata", jsonType, head + `"Metadata":{"name":"%s"}}`},
		{"name twice", jsonType, head + `"metadata":{"name":"other","name":"%s"}}`},
		{"Name", jsonType, head + `"metadata":{"Name":"other","name":"%s"}}`},
		{"Labels", jsonType, head + `"metadata":{"name":"%s","Labels":{"a":"b"},"labels":{"c":"d"}}}`},
		{"a label twice", jsonType, head + `"metadata":{"name":"%s","labels":{"c":"d","c":"e"}}}`},
		{"kind twice", jsonType, `{"apiVersion":"hazards.example.com/v1","kind":"Kiln","kind":"Pot","metadata":{"name":"%s"}}`},
		{"Kind", jsonType, `{"apiVersion":"hazards.example.com/v1","Kind":"Kiln","kind":"Pot","metadata":{"name":"%s"}}`},
		{"ApiVersion", jsonType, `{"ApiVersion":"x/v1","apiVersion":"hazards.example.com/v1","kind":"Pot","metadata":{"name":"%s"}}`},
		potYAML("twice in YAML", "{text: a, text: b}"),
		potYAML("twice in a map in YAML", "{any: {a: 1, a: 2}}"),
		potYAML("another case in YAML", "{Text: a, text: b}"),
		potYAML("keys that are no strings", "{any: {1: a, true: b, 1.5: c, ~: d}}"),
	}
}

func oddNumbers() []odd {
	var all []odd
	for _, n := range []string{"9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775806", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e400", "-1e400", "1e-400", "1e308", "5e-324", "-0", "-0.0", "0.0", "0e0", "1.0", "1.5", "1e0", "1e2", "1E+2",
		"100e-2", "1e18", "1e19", "1.0e18", "0.1", "0.30000000000000004", "123456789012345678901234567890", "1.7976931348623157e308", "1.0000000000000001", "1e21", "123456789e-9", "1e-7",
		"01", "+1", ".5", "5.", "0x10", "NaN", "Infinity", "1_000", "--1", "1e", strings.Repeat("9", 400), "0." + strings.Repeat("1", 400)} {
		for _, field := range []string{"any", "number", "integer"} {
			if field == "integer" && (n == "1e18" || n == "1.0e18") {
				continue // number-form in DIVERGENCES.md: what is stored is an integer
			}
			all = append(all, pot(fmt.Sprintf("%s: %.40s", field, n), fmt.Sprintf(`{"%s":%s}`, field, n)))
		}
		all = append(all, potYAML(fmt.Sprintf("YAML: %.40s", n), fmt.Sprintf(`{any: %s}`, n)))
	}
	for _, n := range []string{".inf", "-.inf", ".nan", "0o17", "0b11", "1e3", "1:30", "0777", "2026-01-02", "yes", "~", "!!float 1", "!!int 1", "!!str 1", "!!binary aGk="} {
		all = append(all, potYAML("YAML: "+n, fmt.Sprintf(`{any: %s}`, n)))
	}
	return all
}

func oddTexts() []odd {
	var all []odd
	for _, s := range []string{`\ud800`, `\udc00`, `\ud800\ud800`, `\udc00\ud800`, `\ud834\udd1e`, `\uD834x`, `\u0000`, `a\u0000b`, `\u2028\u2029`, `\ufeff`, `\ufffe\uffff`, `\u007f\u0080`, `<>&`, `\/`, `\u003c`, `\b\f\n\r\t`,
		"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\xc3", "\xe2\x80\xa8", "é", "𝄞", "\x7f", "\x00", "\x1f", "\t", "\n", `\x`, `\u12`, `\ud83d\u`} {
		all = append(all,
			pot(fmt.Sprintf("value %q", s), `{"text":"`+s+`"}`),
			pot(fmt.Sprintf("key %q", s), `{"any":{"`+s+`":1}}`),
			odd{fmt.Sprintf("annotation %q", s), jsonType, `{"apiVersion":"hazards.example.com/v1","kind":"Pot","metadata":{"name":"%s","annotations":{"a":"` + s + `"}}}`},
			potYAML(fmt.Sprintf("YAML %q", s), `{text: "`+s+`"}`),
		)
	}
	return append(all,
		odd{"a byte order mark", jsonType, "\xef\xbb\xbf" + pot("", `{}`).body},
		odd{"UTF-16", jsonType, "{\x00\"\x00a\x00\"\x00:\x001\x00}\x00"},
		odd{"two values", jsonType, pot("", `{}`).body + "{}"},
		odd{"something after", jsonType, pot("", `{}`).body + "x"},
		odd{"spaces after", jsonType, pot("", `{}`).body + " \n\t"},
		odd{"a NUL after", jsonType, pot("", `{}`).body + "\x00"},
		odd{"null", jsonType, "null"},
		odd{"a string", jsonType, `"x"`},
		odd{"a list", jsonType, "[]"},
		odd{"nothing", jsonType, " "},
		odd{"a comment", jsonType, "/* */" + pot("", `{}`).body},
		odd{"two documents", yamlType, "a: 1\n---\nb: 2\n"},
		odd{"spec is a string", jsonType, pot("", `"x"`).body},
		odd{"spec is null", jsonType, pot("", `null`).body},
		odd{"an unknown content type", "text/plain", pot("", `{}`).body},
	)
}

// An outcome is what a server made of a body.
type outcome struct {
	status   int
	warnings string
	stored   string // annotations, labels and spec as they are in etcd
	message  string
}

// TestOddBodiesAsUpstream sends the same bodies to upstream's server and to ours: the same status, the same bytes in etcd.
func TestOddBodiesAsUpstream(t *testing.T) {
	if against == launch.Upstream {
		t.Skip("it is compared with itself")
	}
	type server struct {
		*attacker
		prefix string
	}
	var servers []server
	for _, kind := range []launch.Kind{launch.Upstream, launch.Espalier} {
		prefix := prefix()
		a := newAttacker(t, alike(t, kind, prefix))
		a.define("pots", "Pot", "Namespaced", "")
		servers = append(servers, server{a, prefix})
	}
	// Upstream serves objects some seconds before it takes them.
	for _, s := range servers {
		eventually(t, 30*time.Second, "pots are made", func() bool {
			status, _, _ := s.send(http.MethodPost, hazardGroup+"/namespaces/default/pots", jsonType, hazard("Pot", "first", `{}`))
			return status == http.StatusCreated
		})
	}
	etcd := etcdClient(t)
	for family, bodies := range map[string][]odd{"keys": oddKeys(), "numbers": oddNumbers(), "texts": oddTexts()} {
		t.Run(family, func(t *testing.T) {
			for i, o := range bodies {
				for _, validation := range []string{"", "Strict", "Ignore"} {
					if validation != "" && family == "numbers" {
						continue // says nothing about values
					}
					name := strings.ToLower(fmt.Sprintf("%s-%d%s", family, i, validation))
					var outcomes []outcome
					for _, s := range servers {
						outcomes = append(outcomes, s.with(t).submit(etcd, s.prefix, o, name, validation))
					}
					want, got := outcomes[0], outcomes[1]
					if want.status != got.status || want.stored != got.stored || want.warnings != got.warnings {
						t.Errorf("%s (%s, fieldValidation %q): upstream\n  %+v\nhere\n  %+v", o.name, o.contentType, validation, want, got)
					} else if want.message != got.message {
						t.Logf("%s (%s, fieldValidation %q): the same outcome in other words: upstream\n  %.300s\nhere\n  %.300s", o.name, o.contentType, validation, want.message, got.message)
					}
				}
			}
		})
	}
}

// submit sends a body and reads what the server stored.
func (a *attacker) submit(etcd *clientv3.Client, prefix string, o odd, name, validation string) outcome {
	a.t.Helper()
	path := hazardGroup + "/namespaces/default/pots"
	if validation != "" {
		path += "?fieldValidation=" + validation
	}
	status, header, answer := a.send(http.MethodPost, path, o.contentType, strings.ReplaceAll(o.body, "%s", name))
	v := outcome{status: status, warnings: strings.Join(slices.Sorted(slices.Values(header.Values("Warning"))), "; ")}
	if status != http.StatusCreated {
		var said struct{ Message string }
		_ = json.Unmarshal([]byte(answer), &said) // what is no Status has no message
		v.message = said.Message
		return v
	}
	resp, err := etcd.Get(a.t.Context(), prefix+"/hazards.example.com/pots/default/"+name)
	if err != nil {
		a.t.Fatal(err)
	}
	if len(resp.Kvs) != 1 {
		v.stored = "nothing"
		return v
	}
	var object struct {
		Metadata struct{ Labels, Annotations json.RawMessage }
		Spec     json.RawMessage
	}
	if err := json.Unmarshal(resp.Kvs[0].Value, &object); err != nil {
		v.stored = fmt.Sprintf("%q", resp.Kvs[0].Value)
		return v
	}
	v.stored = fmt.Sprintf("%q %q %q", object.Metadata.Labels, object.Metadata.Annotations, object.Spec)
	return v
}
