package espaliertest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGuideShowsTheExample: what the guide to faults shows of Go is in the files of
// the example, word for word.
func TestGuideShowsTheExample(t *testing.T) {
	source := ""
	for _, file := range []string{"example_controller_test.go", "example_explore_test.go"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source += "\n" + string(data)
	}
	guide, err := os.ReadFile("../../docs/guides/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```\n").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) < 5 {
		t.Errorf("the guide has only %d pieces of code", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(source, "\n"+block[1]) {
			t.Errorf("the example has no\n%s", block[1])
		}
	}
}
