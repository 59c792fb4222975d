package kinds

import (
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The first and the last second that text can have.
var (
	firstTime = time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
)

// boundTimes replaces the times of a tree that cannot be read: those before the year 0 and
// after the year 9999. Protobuf has them, and the last day of 9999 west of Greenwich is
// one. It returns the value to use instead of the given one.
func boundTimes(t reflect.Type, value any) any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[metav1.Time]():
		return boundTime(value, time.RFC3339)
	case reflect.TypeFor[metav1.MicroTime]():
		return boundTime(value, metav1.RFC3339Micro)
	}
	switch v := value.(type) {
	case []any:
		if t.Kind() == reflect.Slice {
			for i := range v {
				v[i] = boundTimes(t.Elem(), v[i])
			}
		}
	case map[string]any:
		boundMembers(t, v)
	}
	return value
}

// boundMembers is boundTimes for the members of a map or of a struct.
func boundMembers(t reflect.Type, tree map[string]any) {
	switch t.Kind() {
	case reflect.Map:
		for key := range tree {
			tree[key] = boundTimes(t.Elem(), tree[key])
		}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" {
				boundTimes(f.Type, tree)
			} else if member, ok := tree[name]; ok {
				tree[name] = boundTimes(f.Type, member)
			}
		}
	}
}

func boundTime(value any, layout string) any {
	text, ok := value.(string)
	if !ok {
		return value
	}
	if _, err := time.Parse(layout, text); err == nil {
		return value
	}
	if strings.HasPrefix(text, "-") {
		return firstTime.Format(layout)
	}
	return lastTime.Format(layout)
}
