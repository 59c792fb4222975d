package cel

import (
	"regexp"
	"slices"
	"testing"
)

func TestFunctionsAreThoseOfTheEnvironment(t *testing.T) {
	all, err := Functions("")
	if err != nil {
		t.Fatal(err)
	}
	find := func(name, receiver string) *Function {
		i := slices.IndexFunc(all, func(f Function) bool {
			return f.Name == name && (receiver == "" && len(f.Receivers) == 0 || slices.Contains(f.Receivers, receiver))
		})
		if i < 0 {
			return nil
		}
		return &all[i]
	}
	for _, want := range [][2]string{{"startsWith", "string"}, {"all", "list"}, {"size", ""}, {"has", ""}, {"isSorted", "list"}, {"quantity", ""}, {"optional.of", ""}, {"getHost", "kubernetes.URL"}} {
		if find(want[0], want[1]) == nil {
			t.Errorf("%s of %q is missing", want[0], want[1])
		}
	}
	if f := find("startsWith", "string"); f != nil && !slices.Contains(f.Signatures, "string.startsWith(string) -> bool") {
		t.Errorf("the signatures of startsWith are %q", f.Signatures)
	}
	name := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*$`)
	for _, f := range all {
		if !name.MatchString(f.Name) || f.Name == "in" {
			t.Errorf("%s is listed, which no rule can call", f.Name)
		}
	}
	if _, err := Functions("one"); err == nil {
		t.Error("a version that is none is accepted")
	}
}
