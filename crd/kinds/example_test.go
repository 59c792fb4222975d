package kinds_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/crd/kinds"
)

func ExampleFind() {
	deployments := kinds.Find("apps", "v1", "deployments")
	fmt.Println(deployments.Kind, deployments.Namespaced, deployments.ShortNames)
	// Output:
	// Deployment true [deploy]
}

func ExampleDescribe() {
	fmt.Println(kinds.Describe("core/v1.Container", "imagePullPolicy").Enum)
	// Output:
	// [Always IfNotPresent Never]
}
