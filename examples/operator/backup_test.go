package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/server/espaliertest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard()) // the naive operator fails a lot
	espaliertest.Main(m)
}

// The operator saves everything once, under each schedule of faults.
func TestBackup(t *testing.T) {
	espaliertest.Explore(t, 20, func(t *testing.T, config *rest.Config) {
		if jobs := jobsOfOneBackup(t, config, func(c client.Client) reconcile.Reconciler { return &Reconciler{c} }); jobs != 1 {
			t.Errorf("one Backup has %d Jobs", jobs)
		}
	}, espaliertest.CRDs("crds"))
}

// naive is an operator as one writes it first. It looks into the status for the Job, and has the server choose a name.
type naive struct{ Reconciler }

func newNaive(c client.Client) reconcile.Reconciler { return &naive{Reconciler{c}} }

func (r *naive) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	backup := newBackup()
	if err := r.Get(ctx, req.NamespacedName, backup); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if jobOf(backup) != "" {
		return ctrl.Result{}, nil
	}
	job := newJob(backup)
	job.GenerateName = backup.GetName() + "-"
	if err := controllerutil.SetControllerReference(backup, job, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Create(ctx, job); err != nil { // the Job may be there all the same
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.note(ctx, backup, job.Name) // if this fails, there will be another Job
}

// On a healthy server the naive operator passes its test,
func TestNaiveOnHealthyServer(t *testing.T) {
	if jobs := jobsOfOneBackup(t, espaliertest.Start(t, espaliertest.CRDs("crds")), newNaive); jobs != 1 {
		t.Errorf("one Backup has %d Jobs", jobs)
	}
}

// and under faults it saves the same volume several times. This test passes if the faults find that; a test of yours
// would call t.Errorf at once, and Explore would print the seed and what was on the wire.
func TestFaultsFindTheBug(t *testing.T) {
	var wrong atomic.Int32
	const schedules = 20
	espaliertest.Explore(t, schedules, func(t *testing.T, config *rest.Config) {
		if jobs := jobsOfOneBackup(t, config, newNaive); jobs > 1 {
			wrong.Add(1)
		}
	}, espaliertest.CRDs("crds"))
	if wrong.Load() == 0 {
		t.Error("no schedule of faults found the bug")
	}
	t.Logf("the naive operator fails under %d of %d schedules", wrong.Load(), schedules)
}

// jobsOfOneBackup runs an operator, creates a Backup and returns the number of Jobs that it gets.
func jobsOfOneBackup(t *testing.T, config *rest.Config, create func(client.Client) reconcile.Reconciler) int {
	t.Helper()
	mgr, err := newManager(config, create)
	if err != nil {
		t.Fatal(err)
	}
	ended := startManager(t, mgr)
	defer ended()

	admin, err := client.New(espaliertest.WithoutFaults(config), client.Options{}) // the test's own requests succeed
	if err != nil {
		t.Fatal(err)
	}
	backup := newBackup()
	backup.SetNamespace("default")
	backup.SetName("photos")
	backup.Object["spec"] = map[string]any{"source": "photos"}
	if err := admin.Create(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	// Under Explore these minutes take no time: the clock is the test's own.
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(backup), backup)
		return jobOf(backup) != "", err
	})
	if err != nil {
		t.Fatalf("the status has no Job: %v", err)
	}
	jobs := &batchv1.JobList{}
	if err := admin.List(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
	return len(jobs.Items)
}

// startManager starts a manager, and returns what stops it.
func startManager(t *testing.T, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
