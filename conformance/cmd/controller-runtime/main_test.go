package main

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/specs"
)

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		servers, tenant string
		want            []string
	}{
		{"espaliertest,kube-apiserver", "", []string{kubernetes, imported}},
		{"espalier", "suite", []string{envtest, envtest + inside}},
		{"espaliertest,espalier,kube-apiserver", "suite", []string{kubernetes, envtest, imported, envtest + inside, imported + inside}},
		{"kube-apiserver", "suite", nil},
		{"etcd", "", nil},
	} {
		got, err := choose(test.servers, test.tenant)
		if !slices.Equal(got, test.want) || (err == nil) != (test.want != nil) {
			t.Errorf("-only %s -tenant %q: %q %v", test.servers, test.tenant, got, err)
		}
		for i, name := range got {
			if at := slices.Index(got, (&side{name: name}).reference()); at > i {
				t.Errorf("-only %s -tenant %q: %s comes before the side that it is compared with", test.servers, test.tenant, name)
			}
		}
	}
}

// TestConclude fails if too few specs pass with a side.
func TestConclude(t *testing.T) {
	defer func(one, other, third int) { *least, *leastImport, *leastTenant = one, other, third }(*least, *leastImport, *leastTenant)
	*least, *leastImport, *leastTenant = 3, 2, 1
	for name, bound := range map[string]int{envtest: 3, imported: 2, envtest + inside: 1, imported + inside: 1} {
		for here := bound - 1; here <= bound; here++ {
			err := conclude([]*side{{name: name, score: specs.Score{Total: 3, Here: here}}})
			if (err != nil) != (here < bound) {
				t.Errorf("%s passes %d: %v", name, here, err)
			}
		}
	}
}

// TestPatchesFit patches the sources that -tenant patches.
func TestPatchesFit(t *testing.T) {
	root, err := launch.Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	for file, patches := range map[string][]patch{
		filepath.Join(strings.TrimSpace(string(out)), "pkg/internal/testing/controlplane/plane.go"): envtestPatches,
		filepath.Join(root, "server/espaliertest/environment.go"):                                   importPatches,
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		patched, err := apply(file, string(source), patches)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := format.Source([]byte(patched)); err != nil {
			t.Errorf("%s: %v\n%s", file, err, patched)
		}
		if _, err := apply(file, patched, []patch{{"what no source has", ""}}); err == nil {
			t.Errorf("%s: a patch that does not fit is no error", file)
		}
	}
}
