package espaliertest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/auth/ca"
)

// WebhookInstallOptions say which admission webhooks to install, and where the test
// serves them: what manifests say of services becomes the address of the test.
type WebhookInstallOptions struct {
	// Paths are folders and files with webhook configurations; other objects in them
	// are left out.
	Paths []string
	// MutatingWebhooks are configurations to install, beside those of Paths, which
	// are added to them.
	MutatingWebhooks []*admissionregistration.MutatingWebhookConfiguration
	// ValidatingWebhooks are configurations to install, beside those of Paths, which
	// are added to them.
	ValidatingWebhooks []*admissionregistration.ValidatingWebhookConfiguration
	// IgnoreSchemeConvertible has all CRDs converted by the test's webhook,
	// whatever their types are.
	IgnoreSchemeConvertible bool
	// IgnoreErrorIfPathMissing leaves paths out that do not exist.
	IgnoreErrorIfPathMissing bool
	// LocalServingHost is where the test serves; empty is 127.0.0.1.
	LocalServingHost string
	// LocalServingPort is the port there; zero is a free one.
	LocalServingPort int
	// LocalServingCertDir has the certificate and the key to serve with, tls.crt and
	// tls.key. Empty is a temporary folder.
	LocalServingCertDir string
	// LocalServingCAData is the CA that has signed it.
	LocalServingCAData []byte
	// LocalServingHostExternalName is how the server reaches the test, if it is not
	// by LocalServingHost.
	LocalServingHostExternalName string
	// MaxTime is how long installing may take; zero is a minute.
	MaxTime time.Duration
	// PollInterval is ignored.
	PollInterval time.Duration

	temporary string // folder that Cleanup removes
}

// PrepWithoutInstalling reads the configurations, and fills in where to serve, with
// which certificate.
func (o *WebhookInstallOptions) PrepWithoutInstalling() error {
	if err := o.place(); err != nil {
		return err
	}
	if err := o.certify(); err != nil {
		return err
	}
	if err := o.read(); err != nil {
		return err
	}
	for _, c := range o.MutatingWebhooks {
		for i := range c.Webhooks {
			o.redirect(&c.Webhooks[i].ClientConfig)
		}
	}
	for _, c := range o.ValidatingWebhooks {
		for i := range c.Webhooks {
			o.redirect(&c.Webhooks[i].ClientConfig)
		}
	}
	return nil
}

// Install installs the configurations on any server.
func (o *WebhookInstallOptions) Install(config *rest.Config) error {
	if len(o.LocalServingCAData) == 0 {
		if err := o.PrepWithoutInstalling(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(o.MaxTime, startTime))
	defer cancel()
	return o.install(ctx, config)
}

// Cleanup removes the certificates, unless the folder was given.
func (o *WebhookInstallOptions) Cleanup() error {
	if o.temporary == "" {
		return nil
	}
	dir := o.temporary
	if o.LocalServingCertDir == dir {
		o.LocalServingCertDir = "" // the next Start makes another one
	}
	o.temporary = ""
	return os.RemoveAll(dir)
}

// place fills in an address.
func (o *WebhookInstallOptions) place() error {
	o.LocalServingHost = cmp.Or(o.LocalServingHost, "127.0.0.1")
	if o.LocalServingPort != 0 {
		return nil
	}
	port, err := ports.free(o.LocalServingHost)
	if err != nil {
		return fmt.Errorf("a port of %s: %w", o.LocalServingHost, err)
	}
	o.LocalServingPort = port
	return nil
}

// ports are those that have been given to tests of this process: each is given once,
// though it may be a while until the test listens.
var ports = portList{given: map[int]bool{}}

type portList struct {
	sync.Mutex
	given map[int]bool
}

func (p *portList) free(host string) (int, error) {
	for {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, err
		}
		p.Lock()
		before := p.given[port]
		p.given[port] = true
		p.Unlock()
		if !before {
			return port, nil
		}
	}
}

// validity of certificates: tests are over by then.
const validity = 7 * 24 * time.Hour

// certify makes a CA, and a certificate for the address.
func (o *WebhookInstallOptions) certify() (err error) {
	if o.LocalServingCertDir == "" {
		if o.temporary, err = os.MkdirTemp("", "espalier-webhooks-"); err != nil {
			return err
		}
		o.LocalServingCertDir = o.temporary
	}
	if err := os.MkdirAll(o.LocalServingCertDir, 0o700); err != nil {
		return err
	}
	a, err := ca.New("espaliertest", validity)
	if err != nil {
		return err
	}
	hosts := []string{"localhost", "127.0.0.1", "::1", o.LocalServingHost}
	if o.LocalServingHostExternalName != "" {
		hosts = append(hosts, o.LocalServingHostExternalName)
	}
	pair, err := a.Server(hosts...)
	if err != nil {
		return err
	}
	o.LocalServingCAData = a.CA
	return pair.Save(o.LocalServingCertDir, "tls")
}

// url is where the test serves a path.
func (o *WebhookInstallOptions) url(path string) string {
	host := cmp.Or(o.LocalServingHostExternalName, o.LocalServingHost)
	return "https://" + net.JoinHostPort(host, strconv.Itoa(o.LocalServingPort)) + "/" + strings.TrimLeft(path, "/")
}

// redirect has a webhook that is behind a service asked at the test's address.
func (o *WebhookInstallOptions) redirect(c *admissionregistration.WebhookClientConfig) {
	c.CABundle = o.LocalServingCAData
	if c.Service == nil {
		return
	}
	url := o.url(ptr.Deref(c.Service.Path, ""))
	c.URL, c.Service = &url, nil
}

// read adds the configurations of files.
func (o *WebhookInstallOptions) read() error {
	files, err := filesOf(o.Paths, o.IgnoreErrorIfPathMissing)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := o.readFile(file); err != nil {
			return err
		}
	}
	return nil
}

func (o *WebhookInstallOptions) readFile(path string) error {
	objects, err := objectsOf(path)
	if err != nil {
		return err
	}
	for _, object := range objects {
		switch object.Kind {
		case "MutatingWebhookConfiguration":
			o.MutatingWebhooks, err = decoded(o.MutatingWebhooks, object.APIVersion, object.JSON)
		case "ValidatingWebhookConfiguration":
			o.ValidatingWebhooks, err = decoded(o.ValidatingWebhooks, object.APIVersion, object.JSON)
		}
		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", path, object.Kind, object.Name, err)
		}
	}
	return nil
}

// decoded adds a configuration to others. One of the same name, which an earlier
// Start has read, is replaced.
func decoded[T any, P interface {
	*T
	metav1.Object
}](to []*T, version string, object []byte) ([]*T, error) {
	if version != admissionregistration.SchemeGroupVersion.String() {
		return to, fmt.Errorf("its apiVersion is %s, not %s", version, admissionregistration.SchemeGroupVersion)
	}
	one := new(T)
	if err := json.Unmarshal(object, one); err != nil {
		return to, err
	}
	for i := range to {
		if P(to[i]).GetName() == P(one).GetName() {
			to[i] = one
			return to, nil
		}
	}
	return append(to, one), nil
}

func (o *WebhookInstallOptions) install(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	mutating := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	for _, c := range o.MutatingWebhooks {
		if err := apply(ctx, mutating, c); err != nil {
			return err
		}
	}
	validating := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	for _, c := range o.ValidatingWebhooks {
		if err := apply(ctx, validating, c); err != nil {
			return err
		}
	}
	return nil
}

// configurations is what client-go offers for webhook configurations of either kind.
type configurations[P metav1.Object] interface {
	Create(context.Context, P, metav1.CreateOptions) (P, error)
	Get(context.Context, string, metav1.GetOptions) (P, error)
	Update(context.Context, P, metav1.UpdateOptions) (P, error)
}

// apply creates a configuration, or replaces the one that is there.
func apply[P metav1.Object](ctx context.Context, client configurations[P], object P) error {
	object.SetResourceVersion("")
	_, err := client.Create(ctx, object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	now, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.SetResourceVersion(now.GetResourceVersion())
	_, err = client.Update(ctx, object, metav1.UpdateOptions{})
	return err
}
