package authentication

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
	"k8s.io/klog/v2"
)

const (
	// providerTTL is how long the verification of a token is cached, as in
	// kube-apiserver.
	providerTTL = 10 * time.Second
	// readyTimeout is how long the providers of a new configuration may take to
	// answer, before the former one is kept; retryPeriod, when it is tried again.
	readyTimeout = time.Minute
	retryPeriod  = time.Minute
	// grace is how long a former configuration goes on for requests that have begun.
	grace = time.Minute
	// maxConfiguration bounds the file.
	maxConfiguration = 4 << 20
)

// configurations reads AuthenticationConfigurations, strictly.
var configurations = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(apiserver.SchemeGroupVersion)
}()

// compiler is for the expressions of all configurations: making one takes longer
// than using it.
var compiler = sync.OnceValue(authenticationcel.NewDefaultCompiler)

// providers authenticate by an AuthenticationConfiguration.
type providers struct {
	path      string
	issuers   []string                // of service accounts: no provider may have their names
	audiences authenticator.Audiences // of this server
	serverID  string
	lifetime  context.Context // of what is started

	current atomic.Pointer[generation]
	// Of the last attempt that failed; only reload looks at them.
	failed  [sha256.Size]byte
	retryAt time.Time
}

// generation is one content of the file.
type generation struct {
	source    [sha256.Size]byte
	tokens    authenticator.Token
	anonymous authenticator.Request // nil if anonymous requests are off
	checks    []func() error        // whether the providers have answered
	stop      context.CancelFunc
}

// newProviders reads the file and starts to fetch the keys of the providers. It does not
// wait for them: until they have answered, their tokens are rejected.
func newProviders(ctx context.Context, path string, issuers []string, audiences authenticator.Audiences, serverID string) (*providers, error) {
	p := &providers{path: path, issuers: issuers, audiences: audiences, serverID: serverID, lifetime: ctx}
	config, source, err := loadConfiguration(path, issuers)
	if err != nil {
		return nil, err
	}
	g, err := p.start(config, source)
	if err != nil {
		return nil, fmt.Errorf("--authentication-config %s: %w", path, err)
	}
	p.current.Store(g)
	return p, nil
}

// AuthenticateToken implements authenticator.Token.
func (p *providers) AuthenticateToken(ctx context.Context, data string) (*authenticator.Response, bool, error) {
	return p.current.Load().tokens.AuthenticateToken(ctx, data)
}

// AuthenticateRequest implements authenticator.Request, for the anonymous.
func (p *providers) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	if g := p.current.Load(); g.anonymous != nil {
		return g.anonymous.AuthenticateRequest(req)
	}
	return nil, false, nil
}

// start makes authenticators of a configuration.
func (p *providers) start(config *apiserver.AuthenticationConfiguration, source [sha256.Size]byte) (*generation, error) {
	ctx, stop := context.WithCancel(p.lifetime)
	g := &generation{source: source, stop: stop, anonymous: anonymousOf(config.Anonymous)}
	var tokens []authenticator.Token
	var errs []error
	for i, jwt := range config.JWT {
		options := oidc.Options{
			JWTAuthenticator: jwt, Compiler: compiler(), SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
			DisallowedIssuers: p.issuers, APIServerID: p.serverID,
		}
		if bundle := jwt.Issuer.CertificateAuthority; bundle != "" {
			content, err := dynamiccertificates.NewStaticCAContent("oidc-authenticator", []byte(bundle))
			if err != nil {
				errs = append(errs, fmt.Errorf("jwt[%d].issuer.certificateAuthority: %w", i, err))
				continue
			}
			options.CAContentProvider = content
		}
		provider, err := oidc.New(ctx, options)
		if err != nil {
			errs = append(errs, fmt.Errorf("jwt[%d]: %w", i, err))
			continue
		}
		g.checks = append(g.checks, provider.HealthCheck)
		tokens = append(tokens, authenticator.WrapAudienceAgnosticToken(p.audiences, provider))
	}
	if err := errors.Join(errs...); err != nil {
		stop()
		return nil, err
	}
	g.tokens = unexpired{cache.New(tokenunion.New(tokens...), true, providerTTL, 0)}
	return g, nil
}

// reload replaces the current configuration by that of the file, once the providers
// have answered.
func (p *providers) reload(ctx context.Context) {
	config, source, err := loadConfiguration(p.path, p.issuers)
	if source == p.current.Load().source || source == p.failed && time.Now().Before(p.retryAt) {
		return
	}
	if err == nil {
		err = p.replace(ctx, config, source)
	}
	if err != nil {
		p.failed, p.retryAt = source, time.Now().Add(retryPeriod)
		klog.ErrorS(err, "Failed to reload the authentication configuration, keeping the former one", "file", p.path)
		return
	}
	klog.InfoS("Reloaded the authentication configuration", "file", p.path, "providers", len(config.JWT))
}

func (p *providers) replace(ctx context.Context, config *apiserver.AuthenticationConfiguration, source [sha256.Size]byte) error {
	next, err := p.start(config, source)
	if err != nil {
		return err
	}
	if err := next.await(ctx); err != nil {
		next.stop()
		return err
	}
	former := p.current.Swap(next)
	time.AfterFunc(grace, former.stop)
	return nil
}

// await waits until all providers have answered.
func (g *generation) await(ctx context.Context) error {
	var missing error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(context.Context) (bool, error) {
		missing = nil
		for _, check := range g.checks {
			missing = errors.Join(missing, check())
		}
		return missing == nil, nil
	})
	return errors.Join(err, missing)
}

// loadConfiguration reads and checks a file. The sum is of its content, and says
// something even if there is an error.
func loadConfiguration(path string, issuers []string) (*apiserver.AuthenticationConfiguration, [sha256.Size]byte, error) {
	data, err := os.ReadFile(path)
	if err == nil && len(data) > maxConfiguration {
		err = fmt.Errorf("it has %d bytes, more than the %d that are read", len(data), maxConfiguration)
	}
	source := sha256.Sum256(data)
	var config *apiserver.AuthenticationConfiguration
	if err == nil {
		config, err = parseConfiguration(data, issuers)
	}
	if err != nil {
		return nil, source, fmt.Errorf("--authentication-config %s: %w", path, err)
	}
	return config, source, nil
}

func parseConfiguration(data []byte, issuers []string) (*apiserver.AuthenticationConfiguration, error) {
	obj, gvk, err := configurations.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%w; give an AuthenticationConfiguration of apiserver.config.k8s.io/v1", err)
	}
	config, ok := obj.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("it holds a %s; give an AuthenticationConfiguration of apiserver.config.k8s.io/v1", gvk.Kind)
	}
	if gvk.Version != "v1" && gvk.Version != "v1beta1" {
		return nil, fmt.Errorf("apiVersion %s is not supported; write apiserver.config.k8s.io/v1", gvk.GroupVersion())
	}
	errs := validation.ValidateAuthenticationConfiguration(compiler(), config, issuers)
	return config, append(errs, checkAnonymous(config.Anonymous)...).ToAggregate()
}

// checkAnonymous rejects anonymous authentication for other paths than the health
// paths.
func checkAnonymous(config *apiserver.AnonymousAuthConfig) (errs field.ErrorList) {
	if config == nil || !config.Enabled {
		return nil
	}
	path := field.NewPath("anonymous", "conditions")
	reason := "anonymous clients can use the health paths only: " + strings.Join(open, ", ")
	if len(config.Conditions) == 0 {
		return field.ErrorList{field.Required(path, reason+"; without conditions, all paths would be")}
	}
	for i, condition := range config.Conditions {
		if !slices.Contains(open, condition.Path) {
			errs = append(errs, field.Invalid(path.Index(i).Child("path"), condition.Path, reason))
		}
	}
	return errs
}

// anonymousOf returns the authenticator of anonymous requests. By default it accepts
// only the health paths.
func anonymousOf(config *apiserver.AnonymousAuthConfig) authenticator.Request {
	if config == nil {
		return anonymousForHealth()
	}
	if !config.Enabled {
		return nil
	}
	paths := make([]string, len(config.Conditions))
	for i, condition := range config.Conditions {
		paths[i] = condition.Path
	}
	return anonymousFor(paths...)
}
