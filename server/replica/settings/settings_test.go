package settings

import (
	"slices"
	"testing"
)

// A wildcard stands for resources that have no entry of their own.
func TestKeysOf(t *testing.T) {
	all := []Encryption{
		{Resources: []string{"secrets"}, Keys: []string{"a"}},
		{Resources: []string{"*.example.com"}, Keys: []string{"b"}},
		{Resources: []string{"*.*", "secrets"}, Keys: []string{"c"}},
	}
	for resource, want := range map[string]string{"secrets": "a", "webs.example.com": "b", "*.example.com": "b", "webs.example.org": "c", "configmaps": "c", "*.": "c"} {
		if got := keysOf(all, resource); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v, want %s", resource, got, want)
		}
	}
	if got := keysOf(all[:1], "configmaps"); !slices.Equal(got, []string{plain}) {
		t.Errorf("configmaps: %v", got)
	}
}

// Settings of another version have other fields, and are still compared.
func TestOtherVersion(t *testing.T) {
	theirs, err := Parse([]byte(`{"replica":"b","issuers":["i"],"audiences":["i"],"signingKey":"k","keys":["k"],"later":{"x":1},"flags":{"new-flag":"1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	mine := &Settings{Replica: "a", Issuers: []string{"i"}, Audiences: []string{"i"}, SigningKey: "k", Keys: []string{"k"}}
	conflicts, differences := Compare(mine, theirs)
	if len(conflicts) != 0 {
		t.Errorf("conflicts: %v", conflicts)
	}
	if len(differences) != 1 || differences[0].Flag != "new-flag" {
		t.Errorf("differences: %v", differences)
	}
}
