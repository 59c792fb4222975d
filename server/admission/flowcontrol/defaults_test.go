package flowcontrol

import (
	"reflect"
	"sync"
	"testing"

	flowcontrol "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestDefaults(t *testing.T) {
	client, ctx := restmappingtest.Start(t, restmappingtest.Options{}).Client, t.Context()
	var replicas sync.WaitGroup
	for range 3 {
		replicas.Go(func() {
			if err := EnsureDefaults(ctx, client); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	levels, schemas := client.FlowcontrolV1().PriorityLevelConfigurations(), client.FlowcontrolV1().FlowSchemas()
	before, err := levels.List(ctx, metav1.ListOptions{})
	must(t, err)
	all, err := schemas.List(ctx, metav1.ListOptions{})
	must(t, err)
	if len(before.Items) != 8 || len(all.Items) != 11 {
		t.Fatalf("there are %d levels and %d schemas", len(before.Items), len(all.Items))
	}
	must(t, EnsureDefaults(ctx, client))
	levelsAfter, err := levels.List(ctx, metav1.ListOptions{})
	must(t, err)
	schemasAfter, err := schemas.List(ctx, metav1.ListOptions{})
	must(t, err)
	// The lists themselves have the revision of all of etcd, where others write, too.
	if !reflect.DeepEqual(levelsAfter.Items, before.Items) || !reflect.DeepEqual(schemasAfter.Items, all.Items) {
		t.Error("something was written although nothing differs")
	}

	ours, err := schemas.Get(ctx, "global-default", metav1.GetOptions{})
	must(t, err)
	ours.Spec.MatchingPrecedence = 9000
	_, err = schemas.Update(ctx, ours, metav1.UpdateOptions{})
	must(t, err)
	theirs, err := levels.Get(ctx, "workload-low", metav1.GetOptions{})
	must(t, err)
	theirs.Annotations[flowcontrol.AutoUpdateAnnotationKey] = "false"
	theirs.Spec.Limited.NominalConcurrencyShares = new(int32(7))
	_, err = levels.Update(ctx, theirs, metav1.UpdateOptions{})
	must(t, err)
	must(t, schemas.Delete(ctx, "probes", metav1.DeleteOptions{}))
	must(t, EnsureDefaults(ctx, client))

	if ours, err = schemas.Get(ctx, "global-default", metav1.GetOptions{}); err != nil || ours.Spec.MatchingPrecedence != 9900 {
		t.Errorf("what wants to be kept up to date has precedence %d: %v", ours.Spec.MatchingPrecedence, err)
	}
	if theirs, err = levels.Get(ctx, "workload-low", metav1.GetOptions{}); err != nil || *theirs.Spec.Limited.NominalConcurrencyShares != 7 {
		t.Errorf("what belongs to its owner has %d shares: %v", *theirs.Spec.Limited.NominalConcurrencyShares, err)
	}
	_, err = schemas.Get(ctx, "probes", metav1.GetOptions{})
	must(t, err)
}
