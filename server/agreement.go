package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/apis/apiserver"
	encryptioncontroller "k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/admission/chain"
	"github.com/espalier-dev/espalier/server/replica/settings"
)

// agreement is what the replicas of a server must agree on: the settings of this
// one, as they are now, and the rules by which others are compared with them.
type agreement struct {
	fixed   settings.Settings // what does not change while the server runs
	keys    func() (signing string, all []string)
	allowed []string // flags that may differ
	// authorization is a digest of what decides, files are those that are read again
	// while the server runs, by flag.
	authorization func() string
	files         map[string]string

	mu         sync.Mutex
	encryption *encryptionFile // nil if nothing is encrypted
}

// ownFlags are those that each replica may have its own value of, and those that name
// files: the contents count. Of every other flag a difference is at least a warning.
var ownFlags = slices.Concat(meaningless, []string{
	"advertise-address", "allow-settings-mismatch", "bind-address", "cert-dir", "external-hostname", "secure-port", "permit-address-sharing", "permit-port-sharing",
	"audit-log-path", "audit-policy-file", "audit-webhook-config-file", "debug-socket-path", "tracing-config-file",
	"etcd-servers", "etcd-prefix", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "encryption-provider-config",
	"tls-cert-file", "tls-private-key-file", "tls-sni-cert-key", "client-ca-file", "requestheader-client-ca-file", "token-auth-file",
	"authentication-config", "authentication-token-webhook-config-file", "authorization-config", "authorization-webhook-config-file", "admission-control-config-file",
	"service-account-signing-key-file", "service-account-key-file", "root-ca-file",
})

// newAgreement reads the settings. It is called before anything is filled in.
func newAgreement(o *Options) *agreement {
	a := &agreement{
		allowed: o.AllowSettingsMismatch,
		fixed: settings.Settings{
			Version: o.Version, Issuers: o.Identity.ServiceAccounts.Issuers, Audiences: o.Identity.Audiences,
			Authorization: o.Authorization.Modes, Admission: chain.Enabled(o.Admission), ProtectInstances: o.ProtectInstances, RequirePlan: o.RequirePlan, Kinds: string(o.Kinds),
			AuthorizationFile: o.Authorization.ConfigFile != "", Audit: "off", Files: map[string]string{}, Flags: changedFlags(o),
		},
		files: map[string]string{"authentication-config": o.Identity.ConfigurationFile, "client-ca-file": o.Identity.ClientCAFile, "root-ca-file": o.RootCAFile},
	}
	if records(o.Audit) {
		a.fixed.Audit = "on"
	}
	addDigest(a.fixed.Files, "audit-policy-file", o.Audit.PolicyFile)
	if len(a.fixed.Audiences) == 0 {
		a.fixed.Audiences = a.fixed.Issuers
	}
	if path := o.Etcd.EncryptionProviderConfigFilepath; path != "" {
		a.encryption = &encryptionFile{path: path, reloaded: o.Etcd.EncryptionProviderConfigAutomaticReload, read: o.parseEncryption}
	}
	return a
}

// changedFlags are the flags that are not at their defaults and that replicas should
// have in common. Flags never hold secrets: they name the files that do.
func changedFlags(o *Options) map[string]string {
	defaults := map[string]string{}
	visitFlags(NewOptions(), func(f *pflag.Flag) { defaults[f.Name] = f.Value.String() })
	changed := map[string]string{}
	visitFlags(o, func(f *pflag.Flag) {
		if value := f.Value.String(); value != defaults[f.Name] {
			changed[f.Name] = value
		}
	})
	return changed
}

func visitFlags(o *Options, visit func(*pflag.Flag)) {
	// The registry of feature gates and versions belongs to the process, and making its
	// flags sets it back: other servers in the process may be reading it.
	own, run := *o, *o.Run
	run.ComponentGlobalsRegistry = compatibility.NewComponentGlobalsRegistry()
	own.Run = &run
	groups := own.Flags()
	for _, name := range groups.Order {
		if name == "logs" || name == "metrics" {
			continue // what a replica tells of itself
		}
		groups.FlagSets[name].VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(ownFlags, f.Name) {
				visit(f)
			}
		})
	}
}

// addDigest adds that of a file, if there is one.
func addDigest(digests map[string]string, flag, path string) {
	if path == "" {
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		klog.ErrorS(err, "Failed to read a file, not comparing it with other replicas", "flag", flag)
		return
	}
	digests[flag] = digest(content)
}

// digest is a fingerprint of what holds no secret.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// current are the settings as they are now. It is called every 2.5 s, and reads two small
// files.
func (a *agreement) current() *settings.Settings {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.fixed
	now.SigningKey, now.Keys = a.keys()
	now.AuthorizationDigest = a.authorization()
	now.Files = maps.Clone(now.Files)
	for flag, path := range a.files {
		addDigest(now.Files, flag, path)
	}
	if a.encryption != nil {
		now.Encryption = a.encryption.current()
	}
	return &now
}

// bytes is what others are told.
func (a *agreement) bytes() []byte { return a.current().Bytes() }

// conflict says why this replica must not run beside another one.
func (a *agreement) conflict(other []byte) error {
	theirs, err := settings.Parse(other)
	if err != nil {
		klog.ErrorS(err, "Failed to compare the settings of another replica") // of a later version, perhaps
		return nil
	}
	conflicts, _ := settings.Compare(a.current(), theirs)
	var errs []error
	for _, c := range conflicts {
		if !slices.Contains(a.allowed, c.Flag) {
			errs = append(errs, fmt.Errorf("%s. To run both for a while, during a rolling restart, start this replica with --allow-settings-mismatch=%s", c.Text, c.Flag))
		}
	}
	return errors.Join(errs...)
}

// warn logs what is different on the replicas that run, once for each flag and value.
func (a *agreement) warn(others [][]byte) {
	said := map[string]bool{}
	for _, other := range others {
		theirs, err := settings.Parse(other)
		if err != nil {
			continue
		}
		conflicts, differences := settings.Compare(a.current(), theirs)
		for _, d := range append(conflicts, differences...) {
			if key := strings.Replace(d.Text, theirs.Replica, "", 1); !said[key] {
				said[key] = true
				klog.Warning("Setting ", d.Text)
			}
		}
	}
}

// validateMismatch refuses names of flags that do not exist.
func (o *Options) validateMismatch() []error {
	if len(o.AllowSettingsMismatch) == 0 {
		return nil
	}
	known := map[string]bool{"authorization-config": true, "authorization-webhook-config-file": true, "audit-log-path": true,
		"encryption-provider-config": true, "service-account-signing-key-file": true, "service-account-key-file": true}
	visitFlags(o, func(f *pflag.Flag) { known[f.Name] = true })
	var errs []error
	for _, name := range o.AllowSettingsMismatch {
		if !known[name] {
			errs = append(errs, fmt.Errorf("--allow-settings-mismatch has %q, which is not a flag that replicas compare; write the name without dashes, as the error of the replica says it", name))
		}
	}
	return errs
}

// encryptionFile is an EncryptionConfiguration without its secrets, as it is in force.
type encryptionFile struct {
	path     string
	reloaded bool // while the server runs
	read     func(path string) (*apiserver.EncryptionConfiguration, error)

	inForce []settings.Encryption
	stamp   time.Time // of the file that is in force
	changed time.Time // when another file was seen
	next    time.Time // its stamp
}

// current returns what is in force. The library reads a changed file once a minute: so
// long the former content counts.
func (f *encryptionFile) current() []settings.Encryption {
	if f.inForce != nil && !f.reloaded {
		return f.inForce
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return f.inForce
	}
	stamp := info.ModTime()
	switch {
	case f.inForce != nil && stamp.Equal(f.stamp):
		return f.inForce
	case f.inForce != nil && !stamp.Equal(f.next):
		f.changed, f.next = time.Now(), stamp
		return f.inForce
	case f.inForce != nil && time.Since(f.changed) < encryptioncontroller.EncryptionConfigFileChangePollDuration*5/4:
		return f.inForce
	}
	f.stamp = stamp
	if config, err := f.read(f.path); err == nil {
		f.inForce = settings.EncryptionOf(config)
	}
	return f.inForce
}
