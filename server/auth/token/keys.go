package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	jose "gopkg.in/go-jose/go-jose.v2"
	"k8s.io/client-go/util/keyutil"
)

const (
	// keyFile is the name of a key that is made because none is given.
	keyFile = "sa.key"
	// minRSABits is the least that is safe, and that RS256 asks for.
	minRSABits = 2048
	// maxKeyFile bounds what is read of a file. A key is a few kilobytes.
	maxKeyFile = 1 << 20
)

// Keys are the key that signs and the keys that verify, as files have them.
type Keys struct {
	signing   string
	verifying []string
	current   atomic.Pointer[keySet]
}

// keySet is what the files said at one time.
type keySet struct {
	source [sha256.Size]byte // of what was read
	signer jose.Signer
	all    []key
	byID   map[string]key

	algorithms []string // sorted
	document   []byte   // the public keys, as JSON
}

// key verifies signatures of one algorithm.
type key struct {
	id        string
	algorithm jose.SignatureAlgorithm
	public    crypto.PublicKey
}

// LoadKeys reads the key that signs, if a file for it is named, and those that verify
// beside it. The files are PEM. Files of verification keys may have several keys each;
// of a private key, only the public half is used.
func LoadKeys(signing string, verifying ...string) (*Keys, error) {
	k := &Keys{signing: signing, verifying: slices.Clone(verifying)}
	if _, err := k.Reload(); err != nil {
		return nil, err
	}
	return k, nil
}

// Reload reads the files again, and reports whether they have changed. If one of them is
// invalid, the former keys stay.
func (k *Keys) Reload() (changed bool, err error) {
	var contents [][]byte
	var errs []error
	for _, path := range k.paths() {
		data, err := read(path)
		errs = append(errs, err)
		contents = append(contents, data)
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	source := digest(contents)
	if old := k.current.Load(); old != nil && old.source == source {
		return false, nil
	}
	set, err := k.parse(contents)
	if err != nil {
		return false, err
	}
	set.source = source
	k.current.Store(set)
	return true, nil
}

// paths are all files, the one that signs first.
func (k *Keys) paths() []string {
	if k.signing == "" {
		return k.verifying
	}
	return append([]string{k.signing}, k.verifying...)
}

// parse makes a set of the contents of all files.
func (k *Keys) parse(contents [][]byte) (*keySet, error) {
	set := &keySet{byID: map[string]key{}}
	var errs []error
	for i, path := range k.paths() {
		add := set.verify
		if i == 0 && k.signing != "" {
			add = set.sign
		}
		if err := add(contents[i]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return set, set.publish()
}

// sign makes the signer, and has its public half verify.
func (s *keySet) sign(data []byte) error {
	parsed, err := keyutil.ParsePrivateKeyPEM(data)
	if err != nil {
		return fmt.Errorf("%w; give a private key as PEM, such as `openssl ecparam -genkey -name prime256v1 -noout` writes", err)
	}
	private, ok := parsed.(crypto.Signer)
	if !ok {
		return fmt.Errorf("a key of type %T cannot sign; give one for RSA or ECDSA", parsed)
	}
	public, err := s.add(private.Public())
	if err != nil {
		return err
	}
	s.signer, err = jose.NewSigner(jose.SigningKey{
		Algorithm: public.algorithm,
		Key:       &jose.JSONWebKey{Algorithm: string(public.algorithm), Key: parsed, KeyID: public.id, Use: "sig"},
	}, nil)
	return err
}

// verify adds all keys of a file.
func (s *keySet) verify(data []byte) error {
	keys, err := keyutil.ParsePublicKeysPEM(data)
	if err != nil {
		return fmt.Errorf("%w; give public keys as PEM, such as `openssl pkey -pubout` writes", err)
	}
	for _, public := range keys {
		if _, err := s.add(public); err != nil {
			return err
		}
	}
	return nil
}

// add adds a public key that verifies. The same key may come from several files.
func (s *keySet) add(public crypto.PublicKey) (key, error) {
	algorithm, err := algorithmOf(public)
	if err != nil {
		return key{}, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return key{}, err
	}
	sum := sha256.Sum256(der)
	added := key{id: base64.RawURLEncoding.EncodeToString(sum[:]), algorithm: algorithm, public: public}
	if _, ok := s.byID[added.id]; !ok {
		s.byID[added.id] = added
		s.all = append(s.all, added)
	}
	return added, nil
}

// publish writes the document that others verify tokens with.
func (s *keySet) publish() error {
	var set jose.JSONWebKeySet
	for _, k := range s.all {
		set.Keys = append(set.Keys, jose.JSONWebKey{Algorithm: string(k.algorithm), Key: k.public, KeyID: k.id, Use: "sig"})
		s.algorithms = append(s.algorithms, string(k.algorithm))
	}
	slices.Sort(s.algorithms)
	s.algorithms = slices.Compact(s.algorithms)
	var err error
	s.document, err = json.Marshal(set)
	return err
}

// candidates are the keys that may have signed a token that names a key. One that
// names none may be of any.
func (s *keySet) candidates(id string) []key {
	if id == "" {
		return s.all
	}
	if k, ok := s.byID[id]; ok {
		return []key{k}
	}
	return nil
}

// algorithmOf is the one algorithm that a key is for.
func algorithmOf(public crypto.PublicKey) (jose.SignatureAlgorithm, error) {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSABits {
			return "", fmt.Errorf("an RSA key of %d bits can be broken; give one of %d or more", bits, minRSABits)
		}
		return jose.RS256, nil
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
		return "", fmt.Errorf("the curve %s has no algorithm in JSON Web Tokens; give a key of P-256, P-384 or P-521", k.Params().Name)
	}
	return "", fmt.Errorf("a key of type %T cannot verify; give one for RSA or ECDSA", public)
}

// LoadOrCreateKey returns the path of the key that is kept in a directory. It makes
// one, for ECDSA and readable by its owner alone, if there is none.
func LoadOrCreateKey(dir string) (path string, err error) {
	path = filepath.Join(dir, keyFile)
	if _, err = os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return path, create(path, data)
}

// create writes a file atomically. If two processes do so, the first one wins, and both
// use its file.
func create(path string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(path), "."+keyFile+"-*") // for the owner alone
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(data)
	if err = errors.Join(err, temporary.Sync(), temporary.Close()); err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// read returns a file's content, unless it is too much for keys.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fmt.Errorf("%s is not a file of keys: it is a %v of %d bytes", path, info.Mode().Type(), info.Size())
	}
	return os.ReadFile(path)
}

// digest is a hash of the contents, to compare them without keeping them.
func digest(contents [][]byte) [sha256.Size]byte {
	h := sha256.New()
	for _, data := range contents {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
		h.Write(data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}
