package bug

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

func newBuilder(t *testing.T) *Builder {
	t.Helper()
	b, err := NewBuilder(t.Context(), "../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every bug can be made of today's sources, and what it makes is Go. That it compiles,
// and is found, `robustness -bug NAME` and `planted -bug NAME` show.
func TestEveryBugCanBeMade(t *testing.T) {
	builder := newBuilder(t)
	for name, list := range map[string][]Bug{"Server": Server, "Engine": Engine} {
		var names []string
		for i := range list {
			b := &list[i]
			if b.Name == "" || b.What == "" || len(b.Edits) == 0 || slices.Contains(names, b.Name) {
				t.Errorf("bug %q of %s has no text, no edit, or a name that another has", b.Name, name)
			}
			if name == "Engine" && b.Example == "" {
				t.Errorf("bug %q has no example", b.Name)
			}
			names = append(names, b.Name)
			files, err := builder.apply(b)
			if err != nil {
				t.Errorf("%s: %v", b.Name, err)
				continue
			}
			for path, content := range files {
				if _, err := parser.ParseFile(token.NewFileSet(), path, content, parser.SkipObjectResolution); err != nil {
					t.Errorf("%s: %v", b.Name, err)
				}
			}
		}
	}
	if len(Server) < 24 || len(Engine) < 60 {
		t.Errorf("only %d bugs of the server and %d of the engine", len(Server), len(Engine))
	}
}

func TestEditsThatDoNotFit(t *testing.T) {
	builder := newBuilder(t)
	for _, test := range []struct {
		name string
		edit Edit
	}{
		{"no such text", Edit{storePackage, "fence.go", "there is no such text", ""}},
		{"twice", Edit{storePackage, "fence.go", "return", ""}},
		{"no such file", Edit{storePackage, "nothing.go", "a", "b"}},
		{"no such package", Edit{storePackage + "/nothing", "fence.go", "a", "b"}},
		{"no module of ours", Edit{"example.com/nothing", "fence.go", "a", "b"}},
	} {
		if _, err := builder.apply(&Bug{Edits: []Edit{test.edit}}); err == nil {
			t.Errorf("%s: no error", test.name)
		}
	}
}
