package kinds

import (
	"slices"
	"testing"
)

func TestDescribe(t *testing.T) {
	f := Describe("core/v1.PodSpec", "restartPolicy")
	if f == nil || !slices.Equal(f.Enum, []string{"Always", "OnFailure", "Never"}) || f.Default != "Always" || f.Required {
		t.Errorf("restartPolicy is %+v", f)
	}
	if f := Describe("core/v1.PodSpec", "containers"); f == nil || !f.Required {
		t.Errorf("containers is %+v", f)
	}
	if f := Describe("core/v1.ServiceSpec", "internalTrafficPolicy"); f == nil || f.Default != nil {
		t.Errorf("internalTrafficPolicy, whose default depends on the type, is %+v", f)
	}
	if Describe("core/v1.Container", "nothing") != nil || Describe("nothing", "name") != nil {
		t.Error("something is known about nothing")
	}
}
