package manifest

import (
	"slices"
	"testing"
)

// TestChunksAreParsedLikeTheWhole parses the chunks of a text, each on its own, and the text.
func TestChunksAreParsedLikeTheWhole(t *testing.T) {
	for _, text := range []string{
		"a: 1\n", "a: 1\n---\nb: 2\n---\nc: 3", "---\n---\na: |\n  x\n  ---\n--- # c\nb: 2\n", "a: 1\r\n---\r\nb: 2\r\n", "", "---", "--- {a: 1}\n---x\n",
	} {
		ends, ok := Chunks([]byte(text))
		if !ok {
			t.Fatalf("%q is read as one", text)
		}
		var got, want []string
		begin := 0
		for _, end := range ends {
			docs, err := Parse(&File{Text: []byte(text[begin:end])})
			for _, d := range docs {
				got = append(got, string(d.JSON))
			}
			if err != nil {
				break
			}
			begin = end
		}
		docs, _ := Parse(&File{Text: []byte(text)})
		for _, d := range docs {
			want = append(want, string(d.JSON))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the chunks of %q are %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"{\"a\": 1}\n{\"b\": 2}\n", "%YAML 1.1\n---\na: 1\n", "a: 1\n...\nb: 2\n"} {
		if _, ok := Chunks([]byte(text)); ok {
			t.Errorf("%q is read in parts", text)
		}
	}
}
