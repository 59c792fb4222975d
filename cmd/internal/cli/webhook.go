package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/webhook"
	"github.com/espalier-dev/espalier/crd"
)

type webhookOptions struct {
	crds     []string
	cert     string
	key      string
	bind     string
	port     int
	shutdown time.Duration
}

func newWebhook(a *App) *cobra.Command {
	var o webhookOptions
	cmd := &cobra.Command{
		Use:   "webhook --crd FILE|DIR... --tls-cert-file FILE --tls-private-key-file FILE",
		Short: "Serve a conversion webhook that converts by the rules in CRDs",
		Long: `Webhook serves a conversion webhook for API servers of Kubernetes. It converts objects
by the rules in the annotation conversion.espalier.dev/rules of CRDs, as an Espalier
server does without a webhook. In the CRD, set the strategy Webhook with
conversionReviewVersions: [v1], and the service or URL where this program listens.

It answers POST requests to / and /convert. /healthz and /readyz need no client
certificate. It reads the certificate again when the files change. On SIGTERM,
/readyz fails at once, and requests are served for the time of --shutdown-delay.
To change the rules, start it again with the new CRDs.`,
		Example: a.Example(`
  # Serve the rules of all CRDs of a folder
  %[1]s webhook --crd config/crd --tls-cert-file tls.crt --tls-private-key-file tls.key --port 9443`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serveWebhook(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.crds, "crd", nil, "file, folder or pattern with CRDs; those without rules are left out")
	flags.StringVar(&o.cert, "tls-cert-file", "", "certificate of the server, in PEM, with those of its issuers")
	flags.StringVar(&o.key, "tls-private-key-file", "", "private key of the certificate, in PEM")
	flags.StringVar(&o.bind, "bind-address", "", "address to listen on; all if it is empty")
	flags.IntVar(&o.port, "port", 9443, "port to listen on; 0 for any free port")
	flags.DurationVar(&o.shutdown, "shutdown-delay", 5*time.Second, "how long to serve requests after SIGTERM")
	fileFlags(cmd, "crd", "tls-cert-file", "tls-private-key-file")
	return cmd
}

// ruleConverter converts objects of one CRD for the webhook.
type ruleConverter struct{ *converter }

// Convert implements webhook.Converter.
func (c ruleConverter) Convert(object []byte, version string) ([]byte, error) {
	return c.plan.Convert(nil, object, version)
}

func (a *App) serveWebhook(ctx context.Context, o webhookOptions) error {
	if o.cert == "" || o.key == "" {
		return errors.New("API servers call webhooks by TLS only: give --tls-cert-file and --tls-private-key-file")
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	all, err := a.resources(ctx, o.crds, nil, s)
	if err != nil {
		return err
	}
	kinds, err := all.ruled()
	if err != nil {
		return err
	}
	if len(kinds) == 0 {
		return fmt.Errorf("no CRD has conversion rules: write them into the annotation conversion.espalier.dev/rules; '%s convert --infer' proposes some", a.Name)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewTextHandler(a.Err, nil))
	options := webhook.Options{Address: net.JoinHostPort(o.bind, strconv.Itoa(o.port)), CertFile: o.cert, KeyFile: o.key, Log: logger, Delay: o.shutdown}
	return webhook.Serve(ctx, webhook.NewHandler(kinds, logger), options, func(at net.Addr) {
		logger.Info("Serving", "address", at.String(), "kinds", len(kinds))
	})
}

// ruled returns converters of the CRDs with rules. All rules must be right: a webhook that converts some kinds only is
// noticed too late.
func (all resources) ruled() (map[webhook.Kind]webhook.Converter, error) {
	kinds := map[webhook.Kind]webhook.Converter{}
	var wrong error
	for key, r := range all {
		if !hasRules(r.crd) {
			continue
		}
		c := newConverter(r)
		if c.err != nil {
			text := fmt.Sprintf("%s: %v", r.document.File.Name, c.err)
			var fault *rulesError
			if errors.As(c.err, &fault) && len(fault.notes) > 0 {
				text += ": " + fault.notes[0].Message
			}
			wrong = errors.Join(wrong, errors.New(text))
			continue
		}
		kinds[webhook.Kind{Group: key.group, Kind: key.kind}] = ruleConverter{c}
	}
	return kinds, wrong
}

func hasRules(d *crd.CRD) bool {
	_, ok := d.Annotations[annotationRules]
	return ok
}
