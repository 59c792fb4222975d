package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// entering is the source that makes a tenant and sends clients to it, without the name of its package.
//
//go:embed tenant.go.txt
var entering string

// A patch sends clients to the tenant. What is replaced must occur once: another release may have changed it.
type patch struct{ old, new string }

// envtestPatches are for pkg/internal/testing/controlplane/plane.go of controller-runtime.
var envtestPatches = []patch{
	{
		"	if err := f.APIServer.Start(); err != nil {\n",
		"	if tenant != \"\" {\n\t\tf.APIServer.Configure().Set(\"tenants\", \"true\")\n\t}\n" +
			"	if err := f.APIServer.Start(); err != nil {\n",
	},
	{
		"	f.defaultUserCfg = user.Config()\n",
		"	f.defaultUserCfg = user.Config()\n" +
			"	server := rest.CopyConfig(f.defaultUserCfg)\n\tserver.Host = f.APIServer.SecureServing.URL(\"https\", \"/\").String()\n" +
			"	if err := enter(server); err != nil {\n\t\treturn err\n\t}\n",
	},
	{`SecureServing.URL("https", "/").String()
	u.cfgIsComplete`, `SecureServing.URL("https", "/"+base()).String()
	u.cfgIsComplete`},
}

// importPatches are for server/espaliertest/environment.go of this repository.
var importPatches = []patch{
	{"start(ctx, controllers, Configure(flags), loud)", `start(ctx, controllers, Configure(flags), Configure(func(o *server.Options) { o.Tenants = tenant != "" }), loud)`},
	{
		"	e.Config = e.server.Config()\n",
		"	if err := enter(e.server.Config()); err != nil {\n\t\treturn err\n\t}\n	e.Config, _ = inTenant(e.server.Config(), nil)\n",
	},
	{"e.server.User(user.Name, user.Groups...)", "inTenant(e.server.User(user.Name, user.Groups...))"},
}

// apply replaces parts of a source.
func apply(name, source string, patches []patch) (string, error) {
	for _, p := range patches {
		if n := strings.Count(source, p.old); n != 1 {
			return "", fmt.Errorf("%s: %d places for the patch of -tenant, not one: adapt cmd/controller-runtime/tenant.go to %q", name, n, p.old)
		}
		source = strings.Replace(source, p.old, p.new, 1)
	}
	return source, nil
}

// admit has the suites send their clients to the tenant that the variable SUITE_TENANT names. Without the variable the same binary runs with
// the server itself. Only what the compiler reads is replaced, not the files.
func (s *side) admit() error {
	folder, file, patches := filepath.Join(s.source, "pkg/internal/testing/controlplane"), "plane.go", envtestPatches
	if s.server() == imported {
		root, err := launch.Root()
		if err != nil {
			return err
		}
		folder, file, patches = filepath.Join(root, "server/espaliertest"), "environment.go", importPatches
	}
	source, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		return err
	}
	patched, err := apply(file, string(source), patches)
	if err != nil {
		return err
	}
	overlay := map[string]string{}
	for name, text := range map[string]string{file: patched, "tenant.go": strings.Replace(entering, "PACKAGE", filepath.Base(folder), 1)} {
		overlay[filepath.Join(folder, name)] = filepath.Join(s.suites, name)
		if err := os.WriteFile(filepath.Join(s.suites, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	path := filepath.Join(s.suites, "overlay.json")
	s.flags = append(s.flags, "-overlay="+path)
	return os.WriteFile(path, data, 0o644)
}
