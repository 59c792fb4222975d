package main

import (
	"crypto/tls"
	"flag"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	v1 "github.com/espalier-dev/espalier/controllers/sample/v1"
	"github.com/espalier-dev/espalier/controllers/sample/v1alpha1"
)

type settings struct {
	metrics, health, certs string
	port                   int
}

func main() {
	var s settings
	flag.StringVar(&s.metrics, "metrics-bind-address", ":8443", "where metrics are served")
	flag.StringVar(&s.health, "health-probe-bind-address", ":8081", "where /healthz and /readyz are served")
	flag.StringVar(&s.certs, "webhook-cert-dir", "certs", "folder with tls.crt and tls.key")
	flag.IntVar(&s.port, "webhook-port", 9443, "where webhooks are served")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := run(s); err != nil {
		ctrl.Log.Error(err, "the manager has ended")
		os.Exit(1)
	}
}

func run(s settings) error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Metrics: metricsserver.Options{
			BindAddress: s.metrics, SecureServing: true, CertDir: s.certs,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress: s.health,
		WebhookServer: webhook.NewServer(webhook.Options{
			Port: s.port, CertDir: s.certs,
			TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 }},
		}),
		LeaderElection:                true,
		LeaderElectionID:              "trellis.garden.example.com",
		LeaderElectionNamespace:       "garden-system",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	if err := (&reconciler{Client: mgr.GetClient(), events: mgr.GetEventRecorder("trellis")}).setup(mgr); err != nil {
		return err
	}
	if err := setupWebhooks(mgr); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("webhooks", mgr.GetWebhookServer().StartedChecker()); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}
