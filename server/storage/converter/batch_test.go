package converter

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/object"
)

// A review has as many of the objects as one call may have, and at least one.
func TestBatches(t *testing.T) {
	objects := func(n, size int) (list []*object.Object) {
		o, err := object.FromJSON(fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"},"text":"%s"}`, strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			list = append(list, o)
		}
		return list
	}
	for _, test := range []struct {
		name    string
		objects []*object.Object
		want    int
	}{
		{"few", objects(3, 1), 3},
		{"as many as a call may have", objects(callObjects, 1), callObjects},
		{"more", objects(callObjects+1, 1), callObjects},
		{"large", objects(3, callBytes), 1},
		{"half as large", objects(5, callBytes/2), 2},
	} {
		data, sent := appendReview(nil, "v1beta1", "the-uid", "example.com/v2", test.objects)
		var review struct {
			Kind, APIVersion string
			Request          struct {
				UID, DesiredAPIVersion string
				Objects                []json.RawMessage
			}
		}
		if err := json.Unmarshal(data, &review); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if len(sent) != test.want || len(review.Request.Objects) != test.want {
			t.Errorf("%s: %d objects are sent and %d written, want %d", test.name, len(sent), len(review.Request.Objects), test.want)
		}
		if review.Kind != "ConversionReview" || review.APIVersion != "apiextensions.k8s.io/v1beta1" || review.Request.UID != "the-uid" || review.Request.DesiredAPIVersion != "example.com/v2" {
			t.Errorf("%s: %s %s %s %s", test.name, review.Kind, review.APIVersion, review.Request.UID, review.Request.DesiredAPIVersion)
		}
	}
}

// The first version of reviews that both sides know is used.
func TestReviewVersions(t *testing.T) {
	for list, want := range map[string]string{"v1": "v1", "v1beta1": "v1beta1", "v2,v1beta1,v1": "v1beta1", "v1,v1beta1": "v1", "v2": "", "": ""} {
		got, err := reviewVersion(strings.Split(list, ","))
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", list, got, err)
		}
	}
}

// Errors of clients have the words of client-go, those of servers only their answer.
func TestClientText(t *testing.T) {
	if got := clientText(404); got != "the server could not find the requested resource: " {
		t.Errorf("%q", got)
	}
	for _, code := range []int{500, 503} {
		if got := clientText(code); got != "" {
			t.Errorf("%d: %q", code, got)
		}
	}
	if clientText(499) == "" {
		t.Error("the last error of clients has no words")
	}
}
