package main

import (
	"log"
	"log/slog"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.Default().Handler()))
	mgr, err := newManager(ctrl.GetConfigOrDie(), func(c client.Client) reconcile.Reconciler { return &Reconciler{c} })
	if err != nil {
		log.Fatal(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}

// newManager returns a manager with a reconciler of Backups.
func newManager(c *rest.Config, create func(client.Client) reconcile.Reconciler) (ctrl.Manager, error) {
	unchecked := true // tests run several controllers of the same name in a process
	mgr, err := ctrl.NewManager(c, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: &unchecked},
	})
	if err != nil {
		return nil, err
	}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(newBackup()).Owns(&batchv1.Job{}).Complete(create(mgr.GetClient()))
}
