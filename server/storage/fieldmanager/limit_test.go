package fieldmanager

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// wide has a member with n items.
func wide(n int) string { return `{"a":[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]}` }

// tall has n members, each in the one before.
func tall(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

// Objects with more fields, or deeper ones, than structured-merge-diff can take are too
// large. The fields of managers do not count.
func TestSizes(t *testing.T) {
	managed := func(fields string) string { return `{"metadata":{"name":"x","managedFields":[` + fields + `]}}` }
	const fields = "server-side apply is limited to 20000 fields per object, this one has %d: use update, or a JSON or merge patch"
	const depths = "server-side apply is limited to 500000 for the sum of the depths of all fields of an object, this one has %d: use update, or a JSON or merge patch"
	for _, test := range []struct{ name, data, want string }{
		{"small", `{"a":1}`, ""},
		{"as many fields as are allowed", wide(MaxFields - 1), ""},
		{"one more", wide(MaxFields), fmt.Sprintf(fields, MaxFields+1)},
		{"members", `{` + strings.TrimSuffix(strings.Repeat(`"a":{"b":1},`, MaxFields/2+1), ",") + `}`, ""}, // one name
		{"as deep as is allowed", tall(999), ""},
		{"one deeper", tall(1000), fmt.Sprintf(depths, 1000*1001/2)},
		{"lists in lists", strings.Repeat("[", 1001) + strings.Repeat("]", 1001), fmt.Sprintf(depths, 1000*1001/2)},
		{"wide fields of managers", managed(wide(MaxFields)), ""},
		{"deep fields of managers", managed(tall(1000)), ""},
		{"fields of managers and others", `{"metadata":{"managedFields":[` + tall(1000) + `]},"spec":` + tall(1000) + `}`, fmt.Sprintf(depths, 1+2+1+1000*1003/2)},
		{"no JSON", wide(MaxFields) + "]", ""},
	} {
		err := CheckJSON([]byte(test.data))
		if test.want == "" && err != nil || test.want != "" && (!apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", test.name, err)
		}
		// What is decoded counts alike, but has no fields of managers.
		var object map[string]any
		if strings.Contains(test.name, "managers") || json.Unmarshal([]byte(test.data), &object) != nil {
			continue
		}
		err = checkFields(&unstructured.Unstructured{Object: object})
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s, decoded: %v", test.name, err)
		}
	}
}

func configMap(n int) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}, Data: map[string]string{}}
	for i := range n {
		c.Data[fmt.Sprintf("key-%d", i)] = "x"
	}
	return c
}

// An update after which an object is too large, or was, leaves no managed fields.
func TestLargeObjectsAreNotManaged(t *testing.T) {
	for _, test := range []struct {
		name     string
		now, old int
		managed  bool
	}{
		{"small", 10, 10, true},
		{"large, but not too large", MaxFields - 100, 10, true},
		{"too large now", MaxFields, 10, false},
		{"too large before", 10, MaxFields, false},
	} {
		now, old := configMap(test.now), configMap(test.old)
		obj, err := unmanaged(t.Context(), now, old)
		if err != nil || obj != runtime.Object(now) || (len(now.ManagedFields) > 0) != test.managed || len(old.ManagedFields) == 0 {
			t.Errorf("%s: %d managers, %v", test.name, len(now.ManagedFields), err)
		}
	}
}

// Requests with more fields of managers than can be decoded in time are refused, or lose
// them.
func TestManagedFieldsAreLimited(t *testing.T) {
	of := func(sizes ...int) (list []string) {
		for _, n := range sizes {
			list = append(list, `{"f:a":[`+strings.TrimSuffix(strings.Repeat("10000,", n-1), ",")+`]}`)
		}
		return list
	}
	for _, test := range []struct {
		name  string
		sizes []int
		want  string
	}{
		{"few", []int{10, 10}, ""},
		{"as many as one may have", []int{MaxFields}, ""},
		{"more than one may have", []int{10_000, MaxFields + 1}, "metadata.managedFields has too many fields, 30001 up to its item 1: at most 20000 of one manager and 80000 of all are accepted; leave managedFields out of the request"},
		{"as many as all may have", []int{MaxFields, MaxFields, MaxFields, MaxFields}, ""},
		{"more than all may have", []int{MaxFields, MaxFields, MaxFields, MaxFields, 5000}, "metadata.managedFields has too many fields, 85000 up to its item 4"},
	} {
		list := of(test.sizes...)
		patch := `{"metadata":{"managedFields":[` + strings.Join(list, ",") + `]}}`
		if err := CheckManaged([]byte(patch)); test.want == "" && err != nil || test.want != "" && (!apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", test.name, err)
		}
		c := &corev1.ConfigMap{}
		for _, fields := range list {
			f := &metav1.FieldsV1{}
			f.SetRawBytes([]byte(fields))
			c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{FieldsV1: f})
		}
		if err := checkManaged(c); test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s, decoded: %v", test.name, err)
		}
	}
	// Of a typed object, what is too short to have many fields is not counted.
	for bytes, want := range map[int]bool{MaxFields - 1: false, MaxFields: true} {
		c, f := &corev1.ConfigMap{}, &metav1.FieldsV1{}
		f.SetRawBytes(fmt.Appendf(nil, "%-*s", bytes, "["+strings.Repeat("1,", 9900)+"1]"))
		for range 9 {
			c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{FieldsV1: f})
		}
		if err := checkManaged(c); (err != nil) != want {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
	long := strings.Repeat(" ", 4*MaxFields)
	for _, patch := range []string{"{" + long, "{}" + long, `{"metadata":{}}` + long, `{"metadata":{"managedFields":null}}` + long} {
		if err := CheckManaged([]byte(patch)); err != nil {
			t.Errorf("%.40s: %v", patch, err)
		}
	}
	if err := checkManaged(&metav1.Status{}); err != nil {
		t.Error(err)
	}
}

// A manager is named by the request, or by the program in the user agent.
func TestManagerNames(t *testing.T) {
	for _, test := range []struct{ option, agent, want string }{
		{"me", "kubectl/v1", "me"},
		{"", "kubectl/v1.2 (linux)", "kubectl"},
		{"", "no slash", "no slash"},
		{"", "a\x00b\n/c", "ab"},
		{"", strings.Repeat("x", 200), strings.Repeat("x", 128)},
		{"", strings.Repeat("x", 127) + "é", strings.Repeat("x", 127)},
		{"", strings.Repeat("x", 126) + "éa", strings.Repeat("x", 126) + "é"},
		{"", "", ""},
	} {
		if got := managerName(test.option, test.agent); got != test.want {
			t.Errorf("%q, %q: %q", test.option, test.agent, got)
		}
	}
}
