package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/internal/archive"
)

// awaitsImport is the annotation of a tenant that the server refuses to serve before it was imported.
const awaitsImport = "espalier.dev/awaits-import"

// archiveCommands are export and import.
func (a *App) archiveCommands(o *tenantOptions) []*cobra.Command {
	export := a.tenantCommand(o, "export NAME --file FILE", "Write everything in a tenant to a file",
		`Export writes all objects of a tenant, as they are at one moment, to a file: as a backup,
or to move the tenant to another server with 'tenant import'.

The file has all secrets of the tenant IN CLEAR TEXT, also if the server encrypts them.
Only you can read it (mode 0600). Keep it as you keep the secrets, and encrypt copies.

The file is compressed with gzip, and has one JSON value in each line:
gunzip < FILE | jq .object. Events are left out, because they expire. Export needs the
verb get on tenants/export of the group espalier.dev.

Exit codes: 0 written, 2 could not run.`, "export shop --file shop.tenant.gz", a.exportTenant)
	load := a.tenantCommand(o, "import NAME --file FILE", "Create a tenant from a file of 'tenant export'",
		`Import creates a tenant, and in it all objects of a file, with their UIDs and everything
else but the resourceVersion. The server encrypts them as it is configured. Objects are
not validated again: import only files that you trust.

Either everything is imported, or the tenant is not served. If an import is stopped, run
it again, or delete the tenant. Tokens of the former tenant are not valid in the new one,
unless both have the same name on servers with the same keys. 'tenant kubeconfig' writes a
kubeconfig for the administrator.

The tenant has the requests, objects and storage of the former one unless flags say
otherwise. Import needs the verb create on tenants and on tenants/import of the group
espalier.dev.

Exit codes: 0 imported, 2 could not run.`, "import shop --file shop.tenant.gz", a.importTenant)
	for _, c := range []*cobra.Command{export, load} {
		c.Flags().StringVarP(&o.file, "file", "f", "", "the file")
		if err := c.MarkFlagRequired("file"); err != nil {
			panic(err) // the flag is there
		}
	}
	load.Flags().IntVar(&o.requests, "requests", 0, "how many requests of the tenant one replica works on at a time (default: as before)")
	load.Flags().IntVar(&o.objects, "objects", 0, "how many objects the tenant may have (default: as before)")
	load.Flags().StringVar(&o.storage, "storage", "", "how many bytes of etcd its objects may take, such as 2Gi (default: as before)")
	load.Flags().StringVar(&o.etcd, "etcd", "", "the etcd that the tenant is in, of 'etcd list', or root (default: the server chooses)")
	return []*cobra.Command{export, load}
}

// archivePath is where the server sends and takes the archive of a tenant.
func archivePath(name, subresource string) string {
	return "/apis/espalier.dev/v1alpha1/tenants/" + name + "/" + subresource
}

// verify reads an archive to its end.
func verify(from io.Reader, c *counter) (*archive.Reader, error) {
	r, err := archive.NewReader(from)
	if err != nil {
		return nil, err
	}
	for {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return nil, err
		}
		c.objects.Add(1)
	}
}

// exportTenant writes the archive of a tenant. A file of this name stays until the new one is whole.
func (a *App) exportTenant(ctx context.Context, name string, o tenantOptions) (err error) {
	to, err := os.CreateTemp(filepath.Dir(o.file), "."+filepath.Base(o.file)+".*") // with mode 0600
	if err != nil {
		return fmt.Errorf("creating the file failed: %w", err)
	}
	defer func() {
		_ = to.Close()           // again, if it is over
		_ = os.Remove(to.Name()) // unless it was renamed
	}()
	c := a.count("exporting the tenant " + name)
	var r *archive.Reader
	err = cluster.Receive(ctx, o.from, archivePath(name, "export"), func(out io.Reader) (err error) {
		r, err = verify(io.TeeReader(out, io.MultiWriter(to, c)), c)
		return err
	})
	c.stop()
	if err != nil {
		return explainTenant("exporting the tenant "+name, err)
	}
	if err := errors.Join(to.Sync(), to.Close()); err != nil {
		return fmt.Errorf("writing the file failed: %w", err)
	}
	if err := os.Rename(to.Name(), o.file); err != nil {
		return fmt.Errorf("writing the file failed: %w", err)
	}
	end := r.End()
	fmt.Fprintf(a.Err, "tenant/%s exported to %s: %s, of %s\n", name, o.file, c, r.Header.Created.Format(time.RFC3339))
	if end.Expiring > 0 {
		fmt.Fprintf(a.Err, "%d events and other objects that expire were left out\n", end.Expiring)
	}
	if end.Unserved > 0 {
		fmt.Fprintf(a.Err, "%d objects were left out because the tenant has no CRD for them: those of deleted CRDs, and of APIs that it shares with other tenants\n", end.Unserved)
	}
	fmt.Fprintf(a.Err, "WARNING: %s has all secrets of the tenant in clear text\n", o.file)
	return nil
}

// importTenant creates a tenant from a file, which is read twice: what is damaged is refused before
// there is a tenant.
func (a *App) importTenant(ctx context.Context, name string, o tenantOptions) error {
	file, err := os.Open(o.file)
	if err != nil {
		return fmt.Errorf("reading the file failed: %w", err)
	}
	defer file.Close()
	c := a.count("checking " + o.file)
	r, err := verify(io.TeeReader(file, c), c)
	c.stop()
	if err != nil {
		return fmt.Errorf("reading %s failed: %w", o.file, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading %s failed: %w", o.file, err)
	}
	if err := a.createAwaiting(ctx, name, o, r.Header.Spec); err != nil {
		return err
	}
	sent := a.count("importing the tenant " + name)
	_, err = cluster.Send(ctx, o.from, archivePath(name, "import"), io.TeeReader(file, sent))
	sent.stop()
	if err != nil {
		return explainTenant("importing the tenant "+name, err)
	}
	fmt.Fprintf(a.Err, "tenant/%s imported from %s: %s\n", name, o.file, c)
	return nil
}

// createAwaiting creates a tenant that is not served before it was imported. It leaves a tenant of
// this name as it is: the server refuses an import into one that has data.
func (a *App) createAwaiting(ctx context.Context, name string, o tenantOptions, before json.RawMessage) error {
	var former struct {
		Requests int             `json:"requests"`
		Objects  int             `json:"objects"`
		Storage  json.RawMessage `json:"storage"` // a text or a number
	}
	if err := json.Unmarshal(before, &former); err != nil && len(before) > 0 {
		return fmt.Errorf("reading %s failed: its first line has no valid spec of a tenant: %w", o.file, err)
	}
	if o.requests == 0 {
		o.requests = former.Requests
	}
	if o.objects == 0 {
		o.objects = former.Objects
	}
	if o.storage == "" {
		o.storage = strings.Trim(string(former.Storage), `"`)
	}
	text, err := tenantObject(name, o, map[string]string{awaitsImport: "true"})
	if err != nil {
		return err
	}
	_, err = cluster.Run(ctx, o.from, text, "create", "-f", "-")
	switch {
	case err != nil && strings.Contains(err.Error(), "AlreadyExists"):
		fmt.Fprintf(a.Err, "tenant/%s exists: its settings stay as they are\n", name)
	case err != nil:
		return explainTenant("creating the tenant "+name, err)
	default:
		fmt.Fprintf(a.Err, "tenant/%s created\n", name)
	}
	return nil
}
