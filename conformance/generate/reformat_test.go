package generate

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestReformatSaysTheSame(t *testing.T) {
	object := []byte(`{"a":{"b":[1,2.5,"x",null,true,{"c":-3}]},"d":"é\n","e":[],"f":{}}`)
	var want any
	if err := json.Unmarshal(object, &want); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for seed := range uint64(500) {
		out := Reformat(object, seed)
		if !bytes.Equal(out, Reformat(object, seed)) {
			t.Fatalf("seed %d gives two texts", seed)
		}
		var got any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s says %v", out, got)
		}
		all.Write(out)
	}
	for _, form := range []string{`1.0`, `"\u0061"`, `"\u0078"`, `{"other":[1.50]}`, "\t", `2.5`} {
		if !strings.Contains(all.String(), form) {
			t.Errorf("%s never appears", form)
		}
	}
	if got := Reformat([]byte("{"), 1); string(got) != "{" {
		t.Errorf("what is no JSON became %s", got)
	}
}
