package command

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The data folder is in a project, and a project can come from an attacker. A repository
// may bring a folder with a CA whose key the attacker has, or with objects of their
// choice (a webhook that is sent every secret), and git overwrites the files that it
// ignores when a later commit has them. File modes and owners prove nothing: they are
// those of the user who cloned it.
//
// So everything that is trusted is below a folder with a random name, which the file
// "owner" tells together with a code that only this user on this machine can make: the
// key of it is in the user's state folder. Planted files have other names and are not
// read; a planted "owner" has a wrong code and is refused.
//
// The alternative, to keep everything in the state folder by the path of the project,
// would leave the data of deleted projects behind and lose that of moved ones.

const (
	ownerName  = "owner"
	dataPrefix = "data-"
	// inPlace is the identifier of a temporary folder, which no repository can bring
	// along: everything is in the folder itself. Its code is for the path of the folder.
	inPlace = "."
	// maxOwner bounds the size of an owner file: an identifier and a code.
	maxOwner = 256
)

// errNotOwned is about a folder that another user or machine made.
var errNotOwned = errors.New("was not made by 'espalier dev' of this user on this machine")

// ownData returns the folder of a data folder in which everything is that is
// trusted, and makes it unless it is there.
func ownData(dir string, trust bool) (string, error) {
	if err := makeDataDir(dir); err != nil {
		return "", err
	}
	key, err := ownerKey()
	if err != nil {
		return "", err
	}
	data, err := findData(dir, key)
	if err == nil {
		return data, nil
	}
	if !errors.Is(err, os.ErrNotExist) && (!trust || !errors.Is(err, errNotOwned)) {
		return "", err
	}
	return claimData(dir, key)
}

// findOwnData returns what ownData has made.
func findOwnData(dir string) (string, error) {
	if _, err := os.Stat(dir); err != nil {
		return "", err
	}
	key, err := ownerKey()
	if err != nil {
		return "", err
	}
	return findData(dir, key)
}

// findData fails with os.ErrNotExist if a folder has no data, and with errNotOwned if
// another user or machine made the data.
func findData(dir string, key []byte) (string, error) {
	text, err := readOwner(filepath.Join(dir, ownerName))
	if errors.Is(err, os.ErrNotExist) {
		foreign, err := foreignData(dir)
		if err == nil && len(foreign) > 0 {
			return "", notOwned(dir)
		}
		return "", errors.Join(err, os.ErrNotExist)
	}
	if err != nil {
		return "", err
	}
	id, code, _ := strings.Cut(strings.TrimSpace(text), " ")
	want, err := ownerCode(dir, id, key)
	if err != nil {
		return "", err
	}
	if !hmac.Equal([]byte(code), []byte(want)) {
		return "", notOwned(dir)
	}
	return dataIn(dir, id), nil
}

func notOwned(dir string) error {
	return fmt.Errorf(`%s %w. If it came with a repository, its author may have its keys: remove it.
If you made it, on another machine, with another home folder or with an earlier version, run 'espalier dev --trust-data-dir' once`, dir, errNotOwned)
}

func dataIn(dir, id string) string {
	if id == inPlace {
		return dir
	}
	return filepath.Join(dir, dataPrefix+id)
}

// claimData gives a folder a new identifier, and what is in it a new name.
func claimData(dir string, key []byte) (string, error) {
	foreign, err := foreignData(dir)
	if err != nil {
		return "", err
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // never fails
	id := hex.EncodeToString(random)
	data := dataIn(dir, id)
	if len(foreign) == 1 && strings.HasPrefix(foreign[0], dataPrefix) {
		err = os.Rename(filepath.Join(dir, foreign[0]), data)
	} else {
		err = gather(dir, foreign, data)
	}
	if err != nil {
		return "", err
	}
	return data, writeOwner(dir, id, key)
}

// gather moves what an earlier version has made into a folder.
func gather(dir string, names []string, data string) error {
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, dataPrefix) {
			return fmt.Errorf("%s has data of more than one control plane (%s): remove what you do not need", dir, strings.Join(names, ", "))
		}
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(data, name)); err != nil {
			return err
		}
	}
	return nil
}

// foreignData names what looks like the data of a control plane in a folder whose
// owner is not known.
func foreignData(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); name == "pki" || name == "etcd" || strings.HasPrefix(name, dataPrefix) {
			names = append(names, name)
		}
	}
	return names, nil
}

// ownTemporary makes a folder known that is removed at the end, for 'dev user'.
func ownTemporary(dir string) error {
	key, err := ownerKey()
	if err != nil {
		return err
	}
	return writeOwner(dir, inPlace, key)
}

func writeOwner(dir, id string, key []byte) error {
	code, err := ownerCode(dir, id, key)
	if err != nil {
		return err
	}
	return writeSecret(filepath.Join(dir, ownerName), []byte(id+" "+code+"\n"))
}

// ownerCode is what only the owner of the key can say about an identifier.
func ownerCode(dir, id string, key []byte) (string, error) {
	mac := hmac.New(sha256.New, key)
	if id == inPlace {
		path, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		id += path
	}
	fmt.Fprintf(mac, "espalier dev %s", id)
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// readOwner reads a small file that is no link.
func readOwner(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxOwner {
		return "", fmt.Errorf("%s is not the file that espalier dev writes: remove the folder that it is in", path)
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// ownerKey reads the key of this user on this machine, and makes it the first time.
func ownerKey() ([]byte, error) {
	state, err := stateDir()
	if err != nil {
		return nil, fmt.Errorf("espalier dev keeps a key in your state folder, to know the data that it made: %w; set HOME or XDG_STATE_HOME, or use --temporary", err)
	}
	path := filepath.Join(state, "dev.key")
	key, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if err := makeOwnerKey(state, path); err != nil {
			return nil, err
		}
		key, err = os.ReadFile(path)
	}
	if err == nil && len(key) != sha256.Size {
		err = fmt.Errorf("%s is not a key of espalier dev: remove it, and run 'espalier dev --trust-data-dir' in your projects", path)
	}
	return key, err
}

// makeOwnerKey writes a key, unless another process does at the same time: the first one
// counts.
func makeOwnerKey(state, path string) error {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(state, ".dev.key-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = io.CopyN(file, rand.Reader, sha256.Size)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// stateDir is the folder of what programs keep for a user.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "espalier"), nil
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "espalier"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "espalier"), err
}
