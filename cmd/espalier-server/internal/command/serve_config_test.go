package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/espalier-dev/espalier/server"
)

// serveFlags are all flags of a server, fresh.
func serveFlags(tb testing.TB) *pflag.FlagSet {
	tb.Helper()
	all := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	all.SetOutput(discard{}) // what pflag says about deprecated flags
	for _, set := range server.NewOptions().Flags().FlagSets {
		all.AddFlagSet(set)
	}
	// The gates belong to the process: what a former test has set is still there.
	clear(*all.Lookup("feature-gates").Value.(*cliflag.ColonSeparatedMultimapStringString).Multimap)
	return all
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func configured(tb testing.TB, flags *pflag.FlagSet, text string) error {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "serve.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	err := readConfigFile(path, flags)
	if err != nil {
		return errors.New(strings.ReplaceAll(err.Error(), path, "F"))
	}
	return nil
}

func TestConfigFileSetsFlags(t *testing.T) {
	for _, test := range []struct{ line, flag, want string }{
		{"client-ca-file: ca.crt", "client-ca-file", "ca.crt"},
		{"etcd-prefix: 10", "etcd-prefix", "10"},
		{"show-hidden-metrics-for-version: 1.30", "show-hidden-metrics-for-version", "1.30"},
		{"secure-port: 7443", "secure-port", "7443"},
		{"bind-address: 127.0.0.1", "bind-address", "127.0.0.1"},
		{"profiling: true", "profiling", "true"},
		{"goaway-chance: 0.001", "goaway-chance", "0.001"},
		{"shutdown-delay-duration: 10s", "shutdown-delay-duration", "10s"},
		{"v: 4", "v", "4"},
		{"etcd-servers: [https://a:1, https://b:1]", "etcd-servers", "[https://a:1,https://b:1]"},
		{"etcd-servers: https://a:1,https://b:1", "etcd-servers", "[https://a:1,https://b:1]"},
		{"etcd-servers: []", "etcd-servers", "[]"},
		{"service-account-issuer:\n- a,b\n- c", "service-account-issuer", `["a,b",c]`},
		{"tls-curve-preferences: [29, 23]", "tls-curve-preferences", "[29,23]"},
		{"tls-sni-cert-key: ['a.crt,a.key:*.a.com', 'b.crt,b.key']", "tls-sni-cert-key", "[a.crt,a.key:*.a.com;b.crt,b.key]"},
		{"feature-gates: {WatchList: false, 'kube:OpenAPIEnums': true}", "feature-gates", ":WatchList=false,kube:OpenAPIEnums=true"},
		{"feature-gates: WatchList=false", "feature-gates", ":WatchList=false"},
		{"allow-metric-labels: {'m,l': 'a,b=c', n: d}", "allow-metric-labels", ""},
		{"vmodule: {store: 3}", "vmodule", "store=3"},
		{"# nothing", "etcd-prefix", "/registry"},
		{"", "etcd-prefix", "/registry"},
	} {
		flags := serveFlags(t)
		if err := configured(t, flags, test.line); err != nil {
			t.Errorf("%s: %v", test.line, err)
		}
		if got := flags.Lookup(test.flag).Value.String(); got != test.want && test.want != "" {
			t.Errorf("%s: %s", test.line, got)
		}
	}
	flags := serveFlags(t)
	if err := configured(t, flags, "allow-metric-labels: {'m,l': 'a,b=c', n: d}"); err != nil {
		t.Fatal(err)
	}
	if got, _ := flags.GetStringToString("allow-metric-labels"); fmt.Sprint(got) != "map[m,l:a,b=c n:d]" {
		t.Errorf("got %v", got)
	}
}

func TestCommandLineWins(t *testing.T) {
	flags := serveFlags(t)
	if err := flags.Parse([]string{"--secure-port=1", "--etcd-servers=https://c:1", "--feature-gates=WatchList=true"}); err != nil {
		t.Fatal(err)
	}
	if err := configured(t, flags, "secure-port: 2\netcd-servers: [https://a:1]\nfeature-gates: {WatchList: false, OpenAPIEnums: true}\netcd-prefix: /x\n"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"secure-port": "1", "etcd-servers": "[https://c:1]", "feature-gates": ":WatchList=true", "etcd-prefix": "/x"} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	if err := configured(t, flags, "secure-port: many"); err == nil {
		t.Error("what is wrong is not said, because the command line wins")
	}
}

func TestConfigFileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"etcd-server: x":                       `F:1:1: there is no setting "etcd-server"; did you mean etcd-servers?`,
		"\n  --etcd-servers: x":                `F:2:3: there is no setting "--etcd-servers"; did you mean etcd-servers?`,
		"etcd_servers: x":                      `F:1:1: there is no setting "etcd_servers"; did you mean etcd-servers?`,
		"weather: fine":                        "F:1:1: there is no setting \"weather\"; `serve --help` lists the flags, whose names the settings have",
		"config: other.yaml":                   "there is no setting \"config\"",
		"v: 1\nv: 2":                           "F:2:1: v is set in line 1 already; leave one of them out",
		"profiling: yes":                       `F:1:12: profiling is true or false; here is the text "yes"`,
		"profiling: \"true\"":                  `F:1:12: profiling is true or false; here is the text "true"`,
		"secure-port: many":                    `F:1:14: secure-port is a whole number; here is the text "many"`,
		"secure-port: 1.5":                     "F:1:14: secure-port is a whole number; here is 1.5",
		"secure-port: [1]":                     "F:1:14: secure-port is a whole number; here is a list",
		"goaway-chance: x":                     `F:1:16: goaway-chance is a number; here is the text "x"`,
		"idle-timeout: 5":                      "F:1:15: idle-timeout is a time such as 30s or 1h; here is 5",
		"idle-timeout: {a: b}":                 "F:1:15: idle-timeout is a time such as 30s or 1h; here is a map",
		"client-ca-file: true":                 "F:1:17: client-ca-file is a text; here is true",
		"client-ca-file:":                      `F:1:16: client-ca-file is a text; here is nothing (write "" for an empty text)`,
		"bind-address: x":                      "F:1:15: bind-address: failed to parse IP",
		"etcd-servers: {a: b}":                 "F:1:15: etcd-servers is a list of single values; here is a map",
		"etcd-servers: [a, [b]]":               "F:1:19: etcd-servers is a list of single values; here is a list",
		"etcd-servers: [a, ~]":                 "F:1:19: etcd-servers is a list of single values; here is nothing",
		"tls-curve-preferences: [a]":           `F:1:25: tls-curve-preferences is a list of single values; here is the text "a"`,
		"feature-gates: [a]":                   "F:1:16: feature-gates is a map of names to single values; here is a list",
		"feature-gates: {a: [b]}":              "F:1:20: feature-gates is a map of names to single values; here is a list",
		"feature-gates: {a: true, a: false}":   "F:1:26: feature-gates: a is there in line 1 already",
		"feature-gates: {'a,b': true}":         "F:1:17: feature-gates: a name or a value has a comma",
		"a: &x b\nclient-ca-file: *x":          "F:2:17: client-ca-file is a text; here is an alias (*x), which settings have no use for",
		"etcd-servers: [&x a, *x]":             "F:1:22: etcd-servers is a list of single values; here is an alias",
		"<<: {v: 1}":                           "F:1:1: here is <<, which settings have no use for",
		"[a]: b":                               "F:1:1: here is a list; a setting begins with the name of a flag",
		"- a":                                  "F:1:1: here is a list; write settings as lines of `name: value`",
		"hello":                                "F:1:1: here is the text \"hello\"; write settings as lines",
		"v: 1\n---\nv: 2":                      "F:2:1: a second document begins here",
		"v: 1\nw: [":                           "F:2:1: this is not YAML: ",
		"v: 1\n---\nw: [":                      "this is not YAML: ",
		"\x00":                                 "F:1:1: this is not YAML: ",
		"v: *missing":                          "this is not YAML: unknown anchor",
		strings.Repeat("a", 60) + "b: 1":       "F:1:1: there is no setting",
		strings.Repeat("#", maxServeConfig+1):  "F:1:1: the file has more than 262144 bytes",
		strings.Repeat("[", maxServeConfig-10): "this is not YAML: ",
	} {
		err := configured(t, serveFlags(t), text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q:\n%v\nnot\n%s", text, err, want)
		}
	}
}

func TestConfigFileTellsEverythingTogether(t *testing.T) {
	err := configured(t, serveFlags(t), "etcd-server: x\nsecure-port: x\nprofiling: no\n")
	if err == nil || strings.Count(err.Error(), "F:") != 3 {
		t.Errorf("got %v", err)
	}
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "no-%d: x\n", i)
	}
	if err := configured(t, serveFlags(t), many.String()); err == nil || strings.Count(err.Error(), "F:") != maxConfigErrors {
		t.Errorf("got %.300v", err)
	}
	if err := readConfigFile(filepath.Join(t.TempDir(), "missing"), serveFlags(t)); err == nil || !strings.HasPrefix(err.Error(), "--config: open ") {
		t.Errorf("got %v", err)
	}
	if err := readConfigFile(t.TempDir(), serveFlags(t)); err == nil || !strings.HasPrefix(err.Error(), "--config: read ") {
		t.Errorf("got %v", err)
	}
}

// samples are values by types, as on a command line.
var samples = map[string][]string{
	"bool": {"true"}, "int": {"7"}, "int64": {"7"}, "float32": {"0.5"}, "float64": {"0.005"}, "duration": {"1h2m0s"}, "string": {"a: b #", "yes", "1.30"}, "ip": {"::1"},
	"stringSlice": {"a,b", "null"}, "stringArray": {"a,b", "c"}, "int32Slice": {"29,23"}, "stringToString": {"a=b,c", "d=e"}, "Level": {"3"}, "pattern=N,...": {"a=1,b/*=2"},
	"colonSeparatedMultimapStringString": {"A=true,kube:B=false", "A=false"}, "namedCertKey": {"a.crt,a.key", "b.crt,b.key:*.b,c"}, "quantity": {"64Ki"},
	"bytes": {"64Mi"},
}

// TestPrintedConfigIsRead sets every flag, prints it, and reads it again.
func TestPrintedConfigIsRead(t *testing.T) {
	serveFlags(t).VisitAll(func(f *pflag.Flag) {
		values, ok := samples[f.Value.Type()]
		if !ok {
			t.Fatalf("--%s has the type %s, of which there is no sample: can it be in a file?", f.Name, f.Value.Type())
		}
		given := serveFlags(t)
		switch f.Name { // those that have few values
		case "logging-format":
			values = []string{"json"}
		case "audit-log-mode", "audit-webhook-mode":
			values = []string{"batch"}
		}
		for _, value := range values {
			if err := given.Set(f.Name, value); err != nil {
				t.Errorf("--%s %s: %v", f.Name, value, err)
			}
		}
		before := given.Lookup(f.Name).Value.String()
		if f.Name == "feature-gates" {
			before = ":A=false,kube:B=false" // of a name that is there twice, the last one counts
		}
		var out bytes.Buffer
		if err := printConfig(&out, given); err != nil {
			t.Fatal(err)
		}
		read := serveFlags(t)
		if err := configured(t, read, out.String()); err != nil {
			t.Errorf("%s\n%v", &out, err)
		}
		if after := read.Lookup(f.Name).Value.String(); before != after || !read.Lookup(f.Name).Changed {
			t.Errorf("--%s was %s and became %s by\n%s", f.Name, before, after, &out)
		}
	})
}

// FuzzConfigFile: whatever is in a file, all complaints have a place, and what is
// accepted can be printed and read again.
func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{"etcd-servers: [a, b]\nv: 3", "feature-gates: {A: true}", "allow-metric-labels: {'a,b': 'c=d\"'}", "a: &x [*x]", "tls-sni-cert-key: [a]", "<<: *a", "v: !!int '3'", "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		flags := serveFlags(t)
		c := &configFile{name: "F", flags: flags, lines: map[string]int{}}
		c.read(text)
		for _, err := range c.errs {
			var line, column int
			if n, _ := fmt.Sscanf(err.Error(), "F:%d:%d: ", &line, &column); n != 2 || line < 1 || column < 1 {
				t.Fatalf("no place: %v", err)
			}
		}
		if len(c.errs) > 0 {
			return
		}
		var out bytes.Buffer
		if err := printConfig(&out, flags); err != nil {
			t.Fatal(err)
		}
		again := &configFile{name: "F", flags: serveFlags(t), lines: map[string]int{}}
		again.read(out.Bytes())
		if len(again.errs) > 0 {
			t.Fatalf("%s\n%v", &out, again.errs)
		}
	})
}
