package vale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	config = "../../.vale.ini"
	styles = "../../.vale/styles/Espalier"
)

// forbidden has sentences for each rule. The rule must find something in each. Spelling reads pages only: comments
// name identifiers.
var forbidden = map[string][]string{
	"Absent": {
		"A file that is not there fails the start.", "Resources that were not there are created.",
		"It leaves alone those that there are not.", "It creates what it is not there to create.",
		"It waits for what must be there.",
	},
	"Actor":        {"Then somebody reads it.", "It is for everybody.", "There is nobody.", "It is open to anybody."},
	"Authority":    {"A certificate of another authority fails.", "It trusts both authorities."},
	"CannotBeTold": {"It cannot be told whether it exists.", "One could not be told from another."},
	"Definition":   {"The definition of Foo changed.", "It reads a definition.", "Definitions are hostile."},
	"Forgive":      {"An update forgives old errors.", "They are forgiven.", "It forgave them."},
	"Inside":       {"It is inside of the object.", "It is outside\nof the object."},
	"Judge":        {"Rules judge objects.", "It is judged.", "Judging takes time.", "A judgement follows."},
	"Junctor":      {"A junctor has branches.", "Below junctors it is ignored."},
	"KeepOut":      {"The policy keeps out users.", "It keeps users out."},
	"LetIn":        {"Others are let in.", "It lets in one group.", "It lets them in."},
	"Mend":         {"You mend the file.", "It is mended.", "Mending it helps."},
	"Names":        {"It vacates the namespace.", "The farewell is sent.", "It is a program in disguise."},
	"OfWhich":      {"It has two parts, of which one is optional."},
	"OughtTo":      {"It ought to run."},
	"Result":       {"The verdict is the same.", "Both rulings differ."},
	"Spelling":     {"The servre is slow.", "Kubernetse has it."},
	"Who": {
		"It is for who needs it.", "It answers to who asks.", "Who has a certificate is known.",
		"It is for those who wait.", "It waits for whoever comes.", "It warns who has none.", "It is the work of somebody, of one who knows.",
	},
	"World": {"A test starts a world.", "Two worlds share etcd."},
}

// clean are sentences that no rule may find anything in.
var clean = []string{
	"kube-apiserver rejects the object. Users who need roles create them.",
	"A CustomResourceDefinition is a custom resource definition, for short: CRD.",
	"The OpenAPI definitions and the schema definitions of a document are published.",
	"The certificate authority (CA) signs it.",
	"KEP-2335 has logical junctors.",
	"The check junctor-read-only is a warning; the row definition-cost is not.",
	"The names `world`, `definition` and `judge` are code; so is pkg/authority and world.go.",
	"An existing error is ratcheted: it does not fail the update.",
	"It is printed inside the output. Recommended amendments follow.",
	"Does it work? Who am I?",
}

func TestRules(t *testing.T) {
	dir := t.TempDir()
	want := map[string]string{} // the rule of each file; "" for none
	write := func(rule, name, sentence string) {
		comment := "// Package x is small.\n//\n// " + strings.ReplaceAll(sentence, "\n", "\n// ") + "\npackage x\n"
		for file, content := range map[string]string{name + ".md": "# Title\n\n" + sentence + "\n", name + ".go": comment} {
			if rule == "Espalier.Spelling" && strings.HasSuffix(file, ".go") {
				continue
			}
			file = filepath.Join(dir, file)
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			want[file] = rule
		}
	}
	for rule, sentences := range forbidden {
		for i, sentence := range sentences {
			write("Espalier."+rule, fmt.Sprintf("%s%d", rule, i), sentence)
		}
	}
	for i, sentence := range clean {
		write("", fmt.Sprintf("clean%d", i), sentence)
	}
	found := lint(t, dir)
	for file, rule := range want {
		switch {
		case rule == "" && len(found[file]) > 0:
			t.Errorf("found %s in %s", found[file], read(t, file))
		case rule != "" && !slices.Contains(found[file], rule):
			t.Errorf("%s found nothing in %s", rule, read(t, file))
		}
	}
}

// A rule without a forbidden sentence is not tested.
func TestRulesAreTested(t *testing.T) {
	files, err := filepath.Glob(styles + "/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no rules:", err)
	}
	for _, file := range files {
		if rule := strings.TrimSuffix(filepath.Base(file), ".yml"); len(forbidden[rule]) == 0 {
			t.Errorf("there is no sentence for %s", rule)
		}
	}
}

// lint runs Vale on a folder and returns the names of the rules that found something, by file.
func lint(t *testing.T, dir string) map[string][]string {
	t.Helper()
	vale := exec.CommandContext(t.Context(), "go", "tool", "vale", "--no-global", "--config", config, "--no-exit", "--output=JSON", dir)
	var stderr bytes.Buffer
	vale.Stderr = &stderr
	out, err := vale.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	var alerts map[string][]struct{ Check string }
	if err := json.Unmarshal(out, &alerts); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := map[string][]string{}
	for file, all := range alerts {
		for _, alert := range all {
			found[file] = append(found[file], alert.Check)
		}
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s:\n%s", filepath.Base(file), content)
}
