package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// The replicas are upgraded from the previous commit to this one, one after the other and under load, taken back, and upgraded again. In
// between servers of both serve the same objects and CRDs, and hand the lease of the controllers to each other.
//
// ESPALIER_PREVIOUS names a binary to upgrade from, such as that of a release. Without it, the one of the previous commit is built, which
// takes longer than continuous integration has: with -short there has to be one.
func TestProductionUpgrade(t *testing.T) {
	previous := os.Getenv("ESPALIER_PREVIOUS")
	if previous == "" {
		if testing.Short() {
			t.Skip("building the server of the previous commit takes minutes: give its binary as ESPALIER_PREVIOUS, or leave out -short")
		}
		previous = buildPrevious(t)
	}
	t.Parallel()
	s := newEstate(t, 1, drain...)
	s.staff(3, previous)
	s.installBoats()
	l := newLoad(s)
	l.proceeds(100)
	for i, binary := range pick([]string{binaries[launch.Espalier], previous, binaries[launch.Espalier]}, []string{binaries[launch.Espalier]}) {
		for j, r := range s.replicas {
			s.restart(l, r, binary)
			if j == 0 { // one is new, and two are old
				s.defines(fmt.Sprintf("round-%d", i))
				s.collects(fmt.Sprintf("round-%d", i))
			}
		}
	}
	l.settle()
	s.collects("end")
}

// buildPrevious builds the server of the commit before this one.
func buildPrevious(t *testing.T) string {
	t.Helper()
	root, dir := must[string](t)(launch.Root()), t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "--verify", "--quiet", "HEAD~1^{commit}").CombinedOutput(); err != nil {
		t.Fatalf("there is no commit before this one to upgrade from (a shallow clone?): fetch more of the history, or name a binary in ESPALIER_PREVIOUS: %v\n%s", err, out)
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	binary := filepath.Join(dir, "previous")
	cmd := exec.CommandContext(ctx, "bash", "-c", `set -eu -o pipefail; mkdir tree; git -C "$ROOT" archive HEAD~1 | tar -x -C tree; cd tree; go build -o "$BINARY" "$(ls -d ./cmd/espalier-server 2> /dev/null || echo ./cmd/espalier)"`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=", "ROOT="+root, "BINARY="+binary)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the previous commit: %v\n%s", err, out)
	}
	t.Logf("the previous commit was built within %v", time.Since(began).Round(time.Second))
	return binary
}

// defines makes a CRD through one replica, and objects of it at once through all of them.
func (s *estate) defines(name string) {
	s.Helper()
	group := name + ".example.com"
	path := strings.Replace(boatsPath, "harbour.example.com", group, 1)
	var callers []*caller
	for _, r := range s.replicas {
		callers = append(callers, newCaller(s.T, s.direct(r)))
	}
	callers[0].call(http.MethodPost, crdsPath, jsonType, strings.ReplaceAll(boatsCRD(s.T), "harbour.example.com", group)).is(http.StatusCreated)
	eventually(s.T, soon, group+" is established", func() bool {
		return strings.Contains(callers[0].call(http.MethodGet, crdsPath+"/boats."+group, jsonType, "").body, `"status":"True","type":"Established"`)
	})
	for i, c := range callers {
		c.call(http.MethodPost, path, jsonType, fmt.Sprintf(`{"apiVersion":%q,"kind":"Boat","metadata":{"name":"first-%d"},"spec":{"owner":"ada"}}`, group+"/v1", i)).is(http.StatusCreated)
	}
	for _, c := range callers {
		for i := range callers {
			c.call(http.MethodGet, fmt.Sprintf("%s/first-%d", path, i), jsonType, "").is(http.StatusOK)
		}
	}
}
