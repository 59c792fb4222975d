package series_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"

	"github.com/espalier-dev/espalier/server/storage/series"
)

// The metrics of webhooks do not grow with the names that were used.
func TestBound(t *testing.T) {
	a := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{Resource: "things"}, "", admission.Create, nil, false, nil)
	call := func(n int) {
		for i := range n {
			admissionmetrics.Metrics.ObserveWebhook(context.Background(), fmt.Sprintf("bound%d.example.com", i), time.Second, false, a, string(admissionregistration.Fail), 200)
		}
	}
	call(5)
	if n, err := series.Bound(10); err != nil || n != 0 {
		t.Errorf("%d series of few were dropped, %v", n, err)
	}
	call(20)
	if n, err := series.Bound(10); err != nil || n < 20 {
		t.Errorf("%d series of many were dropped, %v", n, err)
	}
	if n, err := series.Bound(0); err != nil || n != 0 {
		t.Errorf("%d series were left, %v", n, err)
	}
	call(1) // names that are used again count anew
	if n, err := series.Bound(0); err != nil || n == 0 {
		t.Errorf("%d series of a name that is used again, %v", n, err)
	}
}
