package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/config"
	"sigs.k8s.io/yaml"
)

// block returns the block of README.md that is marked sh and has a text in it.
func block(t *testing.T, has string) string {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)\n```sh\n(.*?)\n```\n").FindAllStringSubmatch(string(read(t, "README.md")), -1) {
		if strings.Contains(m[1], has) {
			return m[1]
		}
	}
	t.Fatalf("README.md has no commands with %q", has)
	return ""
}

// example returns the block of README.md that shows a file.
func example(t *testing.T, name string) []byte {
	t.Helper()
	m := regexp.MustCompile("(?s)\n```yaml title=" + regexp.QuoteMeta(name) + "\n(.*?\n)```\n").FindSubmatch(read(t, "README.md"))
	if m == nil {
		t.Fatalf("README.md does not show %s", name)
	}
	return m[1]
}

// The values that README.md shows are values that the chart takes.
func TestReadmeValues(t *testing.T) {
	var given values
	if err := yaml.UnmarshalStrict(example(t, "mine.yaml"), &given); err != nil {
		t.Fatal(err)
	}
	args := deployment(t, given).Spec.Template.Spec.Containers[0].Args
	if got := argument(t, args, "max-requests-inflight"); got != "800" {
		t.Errorf("the flag of the map is %s", got)
	}
	if got := argument(t, args, "goaway-chance"); got != "0.001" {
		t.Errorf("the flags of values.yaml are gone with those of the map: %q", args)
	}
}

// Prometheus takes the configuration that README.md shows.
func TestReadmeScrape(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yaml"), example(t, "prometheus.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.LoadFile(filepath.Join(dir, "prometheus.yaml"), false, promslog.NewNopLogger())
	if err != nil {
		t.Fatal(err)
	}
	if scrapes, err := loaded.GetScrapeConfigs(); err != nil || len(scrapes) != 1 || scrapes[0].JobName != "espalier" {
		t.Errorf("the rules look for the job espalier: %v, %v", scrapes, err)
	}
}
