package settings

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
)

// Encryption is how some resources are encrypted at rest.
type Encryption struct {
	Resources []string `json:"resources"`
	// Keys are what can decrypt; the first one encrypts.
	Keys []string `json:"keys"`
}

// plain is the key of objects that are not encrypted.
const plain = "identity"

// EncryptionOf describes a configuration without its secrets.
func EncryptionOf(config *apiserver.EncryptionConfiguration) []Encryption {
	var all []Encryption
	for _, resource := range config.Resources {
		e := Encryption{Resources: resource.Resources}
		for _, provider := range resource.Providers {
			e.Keys = append(e.Keys, providerKeys(&provider)...)
		}
		all = append(all, e)
	}
	return all
}

// providerKeys are the keys of a provider. Stored objects name the provider and the
// key that they are encrypted with: both are part of it.
func providerKeys(p *apiserver.ProviderConfiguration) []string {
	switch {
	case p.AESGCM != nil:
		return fingerprints("aesgcm", p.AESGCM.Keys)
	case p.AESCBC != nil:
		return fingerprints("aescbc", p.AESCBC.Keys)
	case p.Secretbox != nil:
		return fingerprints("secretbox", p.Secretbox.Keys)
	case p.KMS != nil:
		return []string{"kms/" + p.KMS.APIVersion + "/" + p.KMS.Name} // its key is elsewhere
	}
	return []string{plain}
}

// fingerprints tell keys apart. An HMAC under the key gives away nothing of it that a
// stored object, which lies beside it, does not.
func fingerprints(provider string, keys []apiserver.Key) (all []string) {
	for _, key := range keys {
		secret, err := base64.StdEncoding.DecodeString(key.Secret)
		if err != nil {
			secret = []byte(key.Secret) // refused elsewhere
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte("espalier.dev/settings/" + provider + "/" + key.Name))
		all = append(all, provider+"/"+key.Name+"/"+base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:12]))
	}
	return all
}

// encryption: each must be able to decrypt what the other writes.
func (c *comparison) encryption() {
	const flag = "encryption-provider-config"
	var names []string
	for _, e := range append(slices.Clone(c.mine.Encryption), c.theirs.Encryption...) {
		names = append(names, e.Resources...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		mine, theirs := keysOf(c.mine.Encryption, name), keysOf(c.theirs.Encryption, name)
		switch {
		case !slices.Contains(theirs, mine[0]):
			c.refuse(flag, "this replica encrypts %s with %s, which the other one cannot decrypt; first add this key on all replicas behind the key that they encrypt with, then move it to the front", name, keyName(mine[0]))
		case !slices.Contains(mine, theirs[0]):
			c.refuse(flag, "the other one encrypts %s with %s, which this replica cannot decrypt; add that key here, with the same name and secret", name, keyName(theirs[0]))
		case !slices.Equal(mine, theirs):
			c.warn(flag, "%s can be decrypted with %s here and with %s there", name, keyNames(mine), keyNames(theirs))
		}
	}
}

// keysOf are the keys of a resource: the most exact name counts, and of several
// equal ones the first.
func keysOf(all []Encryption, resource string) []string {
	group := "*."
	if _, after, ok := strings.Cut(resource, "."); ok {
		group += after
	}
	for _, name := range []string{resource, group, "*.*"} {
		for _, e := range all {
			if slices.Contains(e.Resources, name) && len(e.Keys) > 0 {
				return e.Keys
			}
		}
	}
	return []string{plain}
}

// keyName is a key without its fingerprint.
func keyName(key string) string {
	provider, name, ok := strings.Cut(key, "/")
	if !ok {
		return "nothing (" + plain + ")"
	}
	if i := strings.LastIndexByte(name, '/'); i >= 0 && provider != "kms" {
		name = name[:i]
	}
	return "the " + provider + " key " + name
}

func keyNames(keys []string) string {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = keyName(key)
	}
	return strings.Join(names, ", ")
}
