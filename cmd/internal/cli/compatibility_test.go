package cli

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCompatibilityCommands: COMPATIBILITY.md says of each command whether it is kept, and of no other.
func TestCompatibilityCommands(t *testing.T) {
	var out, errs bytes.Buffer
	if code := Main(t.Context(), "espalier", []string{"--help"}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	_, list, _ := strings.Cut(out.String(), "\nAvailable Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var commands []string
	for _, m := range regexp.MustCompile(`(?m)^  (\S+) `).FindAllStringSubmatch(list, -1) {
		if m[1] != "help" && m[1] != "completion" {
			commands = append(commands, m[1])
		}
	}
	if len(commands) < 15 {
		t.Fatalf("there are only the commands %v", commands)
	}
	page, err := os.ReadFile("../../../COMPATIBILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range regexp.MustCompile("`espalier ([a-z]+)`").FindAllStringSubmatch(string(page), -1) {
		said = append(said, m[1])
	}
	slices.Sort(commands)
	slices.Sort(said)
	if !slices.Equal(commands, said) {
		t.Errorf("COMPATIBILITY.md has the commands\n%v\nthe program has\n%v", said, commands)
	}
}
