package customresource

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/object"
)

// An object that does not convert to one version must not be changed so that it does not convert to another one either.
func TestUnconvertibleObjectsGetNoWorse(t *testing.T) {
	t.Parallel()
	c := &convertible{stored: "v1", others: []string{"v2", "v3"}, convert: func(_ context.Context, objs []*object.Object, version string) ([]*object.Object, error) {
		if strings.Contains(objs[0].GetName(), version) {
			return nil, fmt.Errorf("no %s", version)
		}
		return objs, nil
	}}
	one := func(name string) *object.Object {
		o, err := object.FromJSON([]byte(`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"` + name + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, x := range []struct{ old, now, want string }{
		{"fine", "fine", ""},
		{"", "not-v3", "version v3 "},
		{"fine", "not-v2", "version v2 "},
		{"not-v2", "not-v2", ""},
		{"not-v2", "not-v2-v3", "version v3 "},
		{"not-v3", "not-v2-v3", "version v2 "},
		{"not-v2-v3", "not-v2-v3", ""},
		{"not-v2-v3", "fine", ""},
		{"not-v1", "not-v1", ""},
		{"fine", "not-v1", "version v1 "},
	} {
		var old *object.Object
		if x.old != "" {
			old = one(x.old)
		}
		err := c.check(t.Context(), one(x.now), old)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s after %s: %v, want %q", x.now, x.old, err, x.want)
		}
	}
}
