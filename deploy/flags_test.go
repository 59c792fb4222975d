package deploy

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// flagLine is a flag in the help of a command.
var flagLine = regexp.MustCompile(`(?m)^\s+(?:-\w, )?--([a-z0-9-]+)`)

// knownFlags returns those that `espalier serve --help` lists.
func knownFlags(t *testing.T) map[string]bool {
	t.Helper()
	out, err := exec.Command(program(t), "serve", "--help").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range flagLine.FindAllStringSubmatch(string(out), -1) {
		known[m[1]] = true
	}
	if len(known) < 50 || !known["etcd-servers"] || known["no-such-flag"] {
		t.Fatalf("%d flags found in the help: it is not understood", len(known))
	}
	return known
}

// flagName finds the name in an argument.
func flagName(arg string) (string, bool) {
	name, ok := strings.CutPrefix(arg, "--")
	name, _, _ = strings.Cut(name, "=")
	return name, ok
}

// mentioned finds flags in prose: those of kube-apiserver begin with two dashes and a letter.
var mentioned = regexp.MustCompile(`(?:^|[\s(=,"'` + "`" + `])--([a-z][a-z0-9-]+)`)

// Whatever is handed to the server, or said about it, is a flag that it has.
func TestFlagsExist(t *testing.T) {
	known := knownFlags(t)
	check := func(where string, args []string) {
		n := 0
		for _, arg := range args {
			if name, ok := flagName(arg); ok {
				n++
				if !known[name] {
					t.Errorf("%s: `espalier serve` has no --%s", where, name)
				}
			}
		}
		if n == 0 {
			t.Errorf("%s: no flags in %q", where, args)
		}
	}
	check(manifestFile, deployment(t, nil).Spec.Template.Spec.Containers[0].Args)
	check("the chart with everything", deployment(t, everything).Spec.Template.Spec.Containers[0].Args)
	check(unitFile, command(t, nil))

	// Names of flags that the schema keeps to itself.
	for _, name := range ownFlags(t) {
		if !known[name] {
			t.Errorf("values.schema.json: `espalier serve` has no --%s", name)
		}
	}
	// What comments and annotations advise. Programs other than ours are named with their flags too.
	others := map[string]bool{
		"quota-backend-bytes": true, // etcd
		"previous":            true, // kubectl logs
		"raw":                 true, // kubectl get
		"unit":                true, // journalctl
	}
	for _, file := range []string{rulesFile, chartDir + "/values.yaml", unitFile, "systemd/espalier.env"} {
		for _, m := range mentioned.FindAllStringSubmatch(string(read(t, file)), -1) {
			if !known[m[1]] && !others[m[1]] {
				t.Errorf("%s advises --%s, which `espalier serve` does not have", file, m[1])
			}
		}
	}
}

// quoted finds flags in tables of README.md; in its commands there are those of other programs.
var quoted = regexp.MustCompile("`--([a-z][a-z0-9-]+)`")

func TestReadmeFlagsExist(t *testing.T) {
	known, found := knownFlags(t), quoted.FindAllStringSubmatch(string(read(t, "README.md")), -1)
	if len(found) < 5 {
		t.Fatalf("%d flags in README.md: it is not understood", len(found))
	}
	for _, m := range found {
		if !known[m[1]] {
			t.Errorf("README.md names --%s, which `espalier serve` does not have", m[1])
		}
	}
}

// What the chart sets by itself is refused in its map of flags, so that no flag is given twice.
func TestFlagsOfTheChartAreItsOwn(t *testing.T) {
	own := map[string]bool{}
	for _, name := range ownFlags(t) {
		own[name] = true
	}
	fromMap := map[string]bool{}
	for name := range everything["flags"].(values) {
		fromMap[name] = true
	}
	for _, name := range []string{"logging-format", "goaway-chance"} { // in values.yaml
		fromMap[name] = true
	}
	for _, arg := range deployment(t, everything).Spec.Template.Spec.Containers[0].Args {
		if name, ok := flagName(arg); ok && !own[name] && !fromMap[name] {
			t.Errorf("the chart sets --%s and the schema allows it to be set once more", name)
		}
	}
}

// ownFlags are those that the schema forbids in the map of flags.
func ownFlags(t *testing.T) []string {
	t.Helper()
	var schema struct {
		Properties struct {
			Flags struct {
				PropertyNames struct {
					Not struct{ Enum []string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(read(t, chartDir+"/values.schema.json"), &schema); err != nil {
		t.Fatal(err)
	}
	names := schema.Properties.Flags.PropertyNames.Not.Enum
	if len(names) == 0 {
		t.Fatal("the schema keeps no flags to itself")
	}
	return names
}
