package rules

import "testing"

// TestImmutableData: what is empty and was left out is a change of binaryData and of the
// data of Secrets, but not of the data of ConfigMaps. So answers kube-apiserver v1.37.1.
func TestImmutableData(t *testing.T) {
	for _, test := range []struct {
		r           *Rules
		object, old string
		wrong       []string
	}{
		{&ConfigMap, "data: {}", "", nil},
		{&ConfigMap, "", "data: {}", nil},
		{&ConfigMap, "data: {a: b}", "", []string{"data: Forbidden: " + immutableText}},
		{&ConfigMap, "binaryData: {}", "", []string{"binaryData: Forbidden: " + immutableText}},
		{&Secret, "data: {}", "", []string{"data: Forbidden: " + immutableText}},
		{&Secret, "data: {a: Yg==}", "data: {a: Yg==}", nil},
	} {
		const immutable = "metadata: {name: x}\nimmutable: true\n"
		t.Run(test.r.Kind+" "+test.object, func(t *testing.T) {
			complain(t, test.r.Validate(read(t, test.r, immutable+test.object), read(t, test.r, immutable+test.old)), test.wrong...)
		})
	}
}
