package markdown

import "testing"

func TestCode(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "`a`", "a\n  b": "`a b`", "`": "`` ` ``", "a``b`": "``` a``b` ```",
	} {
		if got := Code(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	for text, want := range map[string]string{"": "```", "a`": "```", "```": "````"} {
		if got := Fence(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}
