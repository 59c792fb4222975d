package kinds

import (
	"testing"

	"github.com/google/cel-go/common/types"
)

func TestIndexes(t *testing.T) {
	for _, c := range []struct {
		s, want string
		count   int64
	}{
		{"", "", 0},
		{"0-4", "", 5},
		{"1,3-4", "", 3},
		{"01", "", 1},
		{"x", `cannot convert string to integer for index: "x"`, 0},
		{"0,1-2-3", `the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by '-'`, 1},
		{"-1", `cannot convert string to integer for index: ""`, 0},
		{"1,", `cannot convert string to integer for index: ""`, 1},
		{"5", `too large index: "5"`, 1},
		{"99999999999", `too large index: "99999999999"`, 1},
		{"3,1", "non-increasing order, previous: 3, current: 1", 1},
		{"1-1", "non-increasing order, previous: 1, current: 1", 1},
		{"1-2-3", `the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by '-'`, 0},
	} {
		got := ""
		if _, err := parseIndexes(c.s, 5); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.s, got, c.want)
		}
		if n := countIndexes(types.String(c.s)); n != types.Int(c.count) {
			t.Errorf("%q: %v indexes, want %d", c.s, n, c.count)
		}
	}
	for _, c := range []struct {
		a, b string
		want int64
	}{{"0-1", "1", 1}, {"0,2,4", "1,3", -1}, {"0,5-9", "7-8", 7}, {"", "1", -1}} {
		if got := sharedIndex(types.String(c.a), types.String(c.b)); got != types.Int(c.want) {
			t.Errorf("%q and %q share %v, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestAmount(t *testing.T) {
	for _, c := range []struct {
		value any
		want  int64
		texts int
	}{{int64(3), 3, 0}, {int64(-1), -1, 1}, {"25%", 25, 0}, {"101%", 101, 0}, {"3", 0, 1}, {"", 0, 1}, {"-1%", 0, 1}, {"x", 0, 1}} {
		v := types.DefaultTypeAdapter.NativeToValue(c.value)
		if got := amount(v); got != types.Int(c.want) {
			t.Errorf("%v: %v, want %d", c.value, got, c.want)
		}
		if got := len(plain(checkAmount(v)).([]any)); got != c.texts {
			t.Errorf("%v: %d texts, want %d", c.value, got, c.texts)
		}
	}
}

func TestEqualBut(t *testing.T) {
	loadAll(t)
	pod := readTypes()["core/v1.PodSpec"]
	spec := func(image, cpu, node string) *object {
		return &object{pod, map[string]any{
			"nodeSelector": map[string]any{"node": node},
			"containers":   []any{map[string]any{"image": image, "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}}},
		}}
	}
	but := types.NewStringList(types.DefaultTypeAdapter, []string{"nodeSelector", "containers.resources"})
	if got := equalBut(spec("a", "1", "x"), spec("a", "2", "y"), but); got != types.True {
		t.Errorf("specs that differ in the named fields: %v", got)
	}
	if got := equalBut(spec("a", "1", "x"), spec("b", "1", "x"), but); got != types.False {
		t.Errorf("specs that differ in another field: %v", got)
	}
}
