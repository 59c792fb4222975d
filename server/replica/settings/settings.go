package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Settings are what one replica tells others of its settings.
type Settings struct {
	// Replica says which one it is, for error messages.
	Replica string `json:"replica"`
	Version string `json:"version,omitempty"`

	// Issuers are those of service account tokens that are accepted; the first
	// one signs. Audiences are the names of the server in tokens.
	Issuers   []string `json:"issuers"`
	Audiences []string `json:"audiences"`
	// SigningKey and Keys are the identifiers of the keys of tokens: the one that
	// signs and all that verify.
	SigningKey string   `json:"signingKey"`
	Keys       []string `json:"keys"`

	// Authorization are the modes in their order, Admission the enabled plugins.
	Authorization []string `json:"authorization"`
	// AuthorizationDigest is of what decides, from flags or from a file. Versions that
	// do not publish it have the modes compared.
	AuthorizationDigest string   `json:"authorizationDigest,omitempty"`
	AuthorizationFile   bool     `json:"authorizationFile,omitempty"`
	Admission           []string `json:"admission"`
	ProtectInstances    bool     `json:"protectInstances"`
	RequirePlan         bool     `json:"requirePlan,omitempty"`
	// Kinds are the built-in resources that are on. Versions that do not publish it have
	// those of the control plane.
	Kinds string `json:"kinds,omitempty"`
	// Encryption is at rest; resources that are not named are not encrypted.
	Encryption []Encryption `json:"encryption,omitempty"`

	// Audit is on or off, and empty of versions that publish neither it nor Files: by
	// flag, digests of files that should be equal.
	Audit string            `json:"audit,omitempty"`
	Files map[string]string `json:"files,omitempty"`

	// Flags are those of the other flags that are not at their defaults.
	Flags map[string]string `json:"flags,omitempty"`
}

// Parse reads what Bytes has written. Fields of later versions are ignored.
func Parse(data []byte) (*Settings, error) {
	s := &Settings{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("parsing the settings of another replica: %w", err)
	}
	return s, nil
}

// Bytes is what is kept in etcd: some hundred bytes.
func (s *Settings) Bytes() []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err) // texts, lists and maps of texts
	}
	return data
}

// Difference is one between two replicas.
type Difference struct {
	Flag string // without the dashes
	Text string // what is where, what follows, and what to do
}

// Compare returns why a replica with the settings mine must not run beside one
// with the settings theirs, and what else is different.
func Compare(mine, theirs *Settings) (conflicts, differences []Difference) {
	c := &comparison{mine: mine, theirs: theirs}
	c.tokens()
	c.access()
	c.protection()
	c.kinds()
	c.encryption()
	c.records()
	c.files()
	c.flags()
	return c.conflicts, c.differences
}

// comparison collects what is different.
type comparison struct {
	mine, theirs           *Settings
	conflicts, differences []Difference
}

func (c *comparison) refuse(flag, format string, args ...any) {
	c.conflicts = append(c.conflicts, Difference{flag, c.text(flag, format, args...)})
}

func (c *comparison) warn(flag, format string, args ...any) {
	c.differences = append(c.differences, Difference{flag, c.text(flag, format, args...)})
}

func (c *comparison) text(flag, format string, args ...any) string {
	return fmt.Sprintf("--%s differs from replica %s: %s", flag, c.theirs.Replica, fmt.Sprintf(format, args...))
}

// tokens compares the keys of tokens: every replica must accept the tokens of all others.
func (c *comparison) tokens() {
	const issuer, audiences, signing, keys = "service-account-issuer", "api-audiences", "service-account-signing-key-file", "service-account-key-file"
	mine, theirs := c.mine, c.theirs
	switch {
	case !signerAccepted(theirs.Issuers, mine.Issuers), !signerAccepted(mine.Issuers, theirs.Issuers):
		c.refuse(issuer, "it is %s here and %s there, so that each refuses tokens of the other; give all replicas the same issuers; to change the issuer, first add the new one behind the old one on all replicas",
			list(mine.Issuers), list(theirs.Issuers))
	case !slices.Equal(mine.Issuers, theirs.Issuers):
		c.warn(issuer, "it is %s here and %s there", list(mine.Issuers), list(theirs.Issuers))
	}
	switch {
	case slices.Equal(mine.Audiences, mine.Issuers) && slices.Equal(theirs.Audiences, theirs.Issuers):
		// The default, which is said above.
	case !slices.ContainsFunc(mine.Audiences, func(a string) bool { return slices.Contains(theirs.Audiences, a) }):
		c.refuse(audiences, "it is %s here and %s there, so that each refuses tokens of the other; give all replicas an audience in common", list(mine.Audiences), list(theirs.Audiences))
	case !slices.Equal(mine.Audiences, theirs.Audiences):
		c.warn(audiences, "it is %s here and %s there", list(mine.Audiences), list(theirs.Audiences))
	}
	if !slices.Contains(theirs.Keys, mine.SigningKey) {
		c.refuse(signing, "this replica signs service account tokens with the key %s, which the other one does not accept; give all replicas the same key, or first add the new key to --%s on all replicas", mine.SigningKey, keys)
	}
	if !slices.Contains(mine.Keys, theirs.SigningKey) {
		c.refuse(keys, "the other one signs service account tokens with the key %s, which this replica does not accept; give all replicas the same key, or add that key to --%s", theirs.SigningKey, keys)
	}
}

// signerAccepted reports whether the first of signing is among the accepted.
func signerAccepted(signing, accepted []string) bool {
	return len(signing) == 0 || slices.Contains(accepted, signing[0])
}

// access must be decided alike.
func (c *comparison) access() {
	const mode, file, hook = "authorization-mode", "authorization-config", "authorization-webhook-config-file"
	mine, theirs := c.mine, c.theirs
	if mine.AuthorizationDigest != "" && theirs.AuthorizationDigest != "" {
		switch {
		case mine.AuthorizationDigest == theirs.AuthorizationDigest:
			return
		case mine.AuthorizationFile || theirs.AuthorizationFile:
			c.refuse(file, "other authorizers decide here than there, so that it depends on the replica what a user may do; give all replicas the same file, and webhooks at the same addresses")
			return
		case slices.Equal(mine.Authorization, theirs.Authorization):
			c.refuse(hook, "the webhook is at another address here than there, so that it depends on the replica what a user may do; give all replicas the same one")
			return
		}
	}
	if !slices.Equal(c.mine.Authorization, c.theirs.Authorization) {
		c.refuse(mode, "it is %s here and %s there, so that it depends on the replica what a user may do; give all replicas the same modes", list(c.mine.Authorization), list(c.theirs.Authorization))
	}
}

// records of what was done must not have gaps, which depend on the replica that a user
// chooses.
func (c *comparison) records() {
	const log = "audit-log-path"
	switch {
	case c.theirs.Audit == "on" && c.mine.Audit == "off":
		c.refuse(log, "nothing is recorded here and there is an audit log there: who uses this replica would leave no trace; turn the audit log on")
	case c.mine.Audit == "on" && c.theirs.Audit == "off":
		c.warn(log, "there is an audit log here and nothing is recorded there: who uses the other one leaves no trace, until it is restarted with an audit log")
	}
}

// files should have the same contents.
func (c *comparison) files() {
	if c.mine.Audit == "" || c.theirs.Audit == "" {
		return
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(c.mine.Files)), maps.Keys(c.theirs.Files))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if mine, theirs := c.mine.Files[name], c.theirs.Files[name]; mine != theirs {
			c.warn(name, "the content has the digest %s here and %s there", cmp.Or(mine, "of no file"), cmp.Or(theirs, "of no file"))
		}
	}
}

// protection must not become less.
func (c *comparison) protection() {
	const protect, plan, enable, disable = "protect-instances", "require-plan", "enable-admission-plugins", "disable-admission-plugins"
	mine, theirs := c.mine, c.theirs
	switch {
	case theirs.ProtectInstances && !mine.ProtectInstances:
		c.refuse(protect, "it is false here and true there: this replica would delete a CRD together with its objects, which the other one refuses; set it to true")
	case mine.ProtectInstances && !theirs.ProtectInstances:
		c.warn(protect, "it is true here and false there: the other one deletes a CRD together with its objects, until it is restarted with true")
	}
	switch {
	case theirs.RequirePlan && !mine.RequirePlan:
		c.refuse(plan, "it is false here and true there: this replica would accept a change of a CRD that loses data, which the other one refuses; set it to true")
	case mine.RequirePlan && !theirs.RequirePlan:
		c.warn(plan, "it is true here and false there: the other one accepts changes of CRDs that lose data, until it is restarted with true")
	}
	flag := func(name string) string {
		for _, s := range []*Settings{mine, theirs} {
			if slices.Contains(strings.Split(strings.Trim(s.Flags[disable], "[]"), ","), name) {
				return disable
			}
		}
		return enable
	}
	for _, name := range without(theirs.Admission, mine.Admission) {
		c.refuse(flag(name), "the admission plugin %s is off here and on there: this replica would accept requests that the other one refuses or changes; turn it on", name)
	}
	for _, name := range without(mine.Admission, theirs.Admission) {
		c.warn(flag(name), "the admission plugin %s is on here and off there: the other one does not ask it, until it is restarted with the plugin", name)
	}
}

// kinds must be the same: a controller that does not know a kind leaves its objects
// behind when it empties a namespace, and another replica may run the controllers.
func (c *comparison) kinds() {
	const flag, former = "kinds", "control-plane"
	if mine, theirs := cmp.Or(c.mine.Kinds, former), cmp.Or(c.theirs.Kinds, former); mine != theirs {
		c.refuse(flag, "it is %s here and %s there, so that it depends on the replica which resources exist, and which of them are deleted with their namespace; give all replicas the same kinds", mine, theirs)
	}
}

// flags that are not compared above.
func (c *comparison) flags() {
	names := slices.AppendSeq(slices.Collect(maps.Keys(c.mine.Flags)), maps.Keys(c.theirs.Flags))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if compared[name] {
			continue
		}
		if mine, theirs := c.mine.Flags[name], c.theirs.Flags[name]; mine != theirs {
			c.warn(name, "it is %s here and %s there", cmp.Or(mine, "the default"), cmp.Or(theirs, "the default"))
		}
	}
}

// compared are flags that have a rule of their own.
var compared = map[string]bool{
	"service-account-issuer": true, "api-audiences": true, "authorization-mode": true, "protect-instances": true, "require-plan": true, "kinds": true,
	"enable-admission-plugins": true, "disable-admission-plugins": true,
}

func list(items []string) string {
	if len(items) == 0 {
		return "empty"
	}
	return strings.Join(items, ",")
}

// without returns what of a is not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(item string) bool { return slices.Contains(b, item) })
}
