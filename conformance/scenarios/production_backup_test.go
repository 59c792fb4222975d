package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// bump is by how much revisions jump when a backup is restored: more than were written since it was made.
const bump = 1_000_000_000

// A backup is made under load; then etcd is lost, and made anew from the backup. All that was acknowledged before the backup is there, and
// nothing of what came after it. Servers and informers that went on all the time see just that.
func TestProductionBackup(t *testing.T) {
	t.Parallel()
	s := newEstate(t, 1, drain...)
	s.staff(2, binaries[launch.Espalier])
	s.installBoats()
	l := newLoad(s)
	l.proceeds(200)
	b := s.backUp()
	s.Logf("the backup took %v", b.took.Round(time.Millisecond))
	l.proceeds(200)
	s.defines("after")
	l.settle() // etcd has exactly what was acknowledged
	want := inEtcd(s, b.revision)
	if now := l.living(); maps.Equal(want, now) || len(want) == 0 {
		t.Fatalf("nothing was written after the backup of %d objects", len(want))
	}

	began := time.Now()
	s.lose()
	s.restore(b, "--bump-revision", fmt.Sprint(bump), "--mark-compacted")
	// One server goes on, the other is started again.
	s.end(s.replicas[1].program)
	s.open(s.replicas[1], binaries[launch.Espalier])
	for _, r := range s.replicas {
		s.ready(r)
	}
	s.Logf("etcd was restored and both servers were ready within %v", time.Since(began).Round(time.Millisecond))
	if got := inEtcd(s, 0); !maps.Equal(want, got) {
		t.Errorf("etcd has not what was there when the backup was made: %s", differ(want, got))
	}
	l.sees(want)
	s.Logf("informers knew after %v", time.Since(began).Round(time.Millisecond))
	for _, r := range s.replicas {
		s.usable(r, l.token, want)
	}
	s.collects("restored")
}

// Clients that have seen later revisions do not see a backup that is restored with the revisions it had: a list of a server that went
// on shows deleted objects, and informers keep them. --bump-revision prevents this.
func TestProductionBackupWithoutBump(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about etcd more than about the server: left to the long form")
	}
	t.Parallel()
	s := newEstate(t, 1, drain...)
	s.staff(1, binaries[launch.Espalier])
	s.installBoats()
	l := newLoad(s)
	l.proceeds(50)
	b := s.backUp()
	l.proceeds(200)
	l.settle()
	want, ghosts := inEtcd(s, b.revision), l.living()
	maps.DeleteFunc(ghosts, func(key string, _ int64) bool { _, ok := want[key]; return ok })
	if len(ghosts) == 0 {
		t.Fatal("nothing was made after the backup")
	}
	s.lose()
	s.restore(b)
	s.ready(s.replicas[0])
	// Writes that every client should see.
	for i := range 20 {
		created := must[*corev1.ConfigMap](t)(s.admin().CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("load-restored-%d", i)}}, metav1.CreateOptions{}))
		if versionOf(created) > slices.Max(slices.Collect(maps.Values(ghosts))) {
			t.Fatal("the revisions have caught up: this shows nothing")
		}
	}
	l.haunted(ghosts)
}

// haunted demands that informers and the lists of the server still have deleted objects, and that informers lack existing ones.
func (l *load) haunted(ghosts map[string]int64) {
	l.Helper()
	held := map[string]bool{}
	for _, f := range l.watchers {
		for key := range f.holds() {
			if _, ghost := ghosts[key]; ghost {
				held[key] = true
			}
			if strings.Contains(key, "load-restored-") {
				l.Errorf("an informer has seen %s, of a lower revision than those it knew: the guide says that it does not", key)
			}
		}
	}
	if len(held) != len(ghosts) {
		l.Errorf("informers hold %d of %d objects that are gone", len(held), len(ghosts))
	}
	boats, listed := boatsOf(l.T, l.direct(l.replicas[0])), 0
	for _, boat := range must[*unstructured.UnstructuredList](l.T)(boats.List(l.Context(), metav1.ListOptions{})).Items {
		if _, ghost := ghosts[loadKeys["boats"]+boat.GetName()]; !ghost {
			continue
		}
		listed++
		if _, err := boats.Get(l.Context(), boat.GetName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			l.Errorf("%s, which is gone: %v", boat.GetName(), err)
		}
	}
	if listed == 0 {
		l.Error("a list of the server has nothing that is gone: the guide says that it has")
	}
	l.Logf("informers hold %d deleted objects, lists have %d deleted boats, and informers have seen none of 20 new objects", len(held), listed)
}

// A backup is a snapshot of etcd.
type backup struct {
	file     string
	revision int64 // of the last write in it
	took     time.Duration
}

// tool runs a program of etcd's and returns what it prints.
func (s *estate) tool(name string, args ...string) []byte {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, must[string](s.T)(launch.Tool(name)), args...)
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr = s.dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &stderr)
	}
	return out
}

// backUp makes a backup.
func (s *estate) backUp() backup {
	s.Helper()
	b := backup{file: s.file("backup.db")}
	began := time.Now()
	s.tool("etcdctl", "--endpoints", s.endpoints()[0], "--cacert", s.file("etcd-ca.crt"), "--cert", s.file("etcd-client.crt"), "--key", s.file("etcd-client.key"),
		"snapshot", "save", b.file)
	b.took = time.Since(began)
	var status struct{ Revision int64 }
	if err := json.Unmarshal(s.tool("etcdutl", "snapshot", "status", b.file, "-w", "json"), &status); err != nil || status.Revision == 0 {
		s.Fatalf("the backup: %v, %+v", err, status)
	}
	b.revision = status.Revision
	return b
}

// lose kills etcd and takes its data away.
func (s *estate) lose() {
	s.Helper()
	for _, m := range s.members {
		m.kill()
		if err := os.RemoveAll(s.file(m.name)); err != nil {
			s.Fatal(err)
		}
	}
}

// restore makes the data of the only member from a backup, and starts it.
func (s *estate) restore(b backup, flags ...string) {
	s.Helper()
	m := s.members[0]
	s.tool("etcdutl", append([]string{"snapshot", "restore", b.file, "--data-dir", s.file(m.name), "--name", m.name,
		"--initial-cluster", m.name + "=" + m.peer, "--initial-advertise-peer-urls", m.peer}, flags...)...)
	s.start(m.program)
	s.await("etcd answers", func(ctx context.Context) error {
		_, err := s.client.Get(ctx, "there")
		return err
	})
}

// sees waits until all informers hold what is wanted.
func (l *load) sees(want map[string]int64) {
	l.Helper()
	for _, f := range l.watchers {
		mine := maps.Clone(want)
		maps.DeleteFunc(mine, func(key string, _ int64) bool { return !strings.HasPrefix(key, loadKeys[f.resource]) })
		f.comesToHold(l, mine)
	}
}

// usable demands that a replica serves what was restored: CRDs, encrypted secrets, tokens, and new writes with higher revisions.
func (s *estate) usable(r *replicaOf, token string, want map[string]int64) {
	s.Helper()
	c := newCaller(s.T, s.direct(r))
	c.call("GET", strings.Replace(boatsPath, "harbour.example.com", "after.example.com", 1), jsonType, "").is(404)
	c.call("GET", crdsPath+"/boats.after.example.com", jsonType, "").is(404)
	config := s.direct(r)
	config.CertData, config.KeyData, config.BearerToken = nil, nil, token
	bearer := typedClient(s.T, config)
	secrets := must[*corev1.SecretList](s.T)(bearer.CoreV1().Secrets("default").List(s.Context(), metav1.ListOptions{}))
	boats := must[*unstructured.UnstructuredList](s.T)(boatsOf(s.T, s.direct(r)).List(s.Context(), metav1.ListOptions{}))
	got := map[string]int64{}
	for _, secret := range secrets.Items {
		if !strings.HasPrefix(secret.Name, "load-") {
			continue
		}
		if string(secret.Data["word"]) != "sesame" {
			s.Errorf("%s has %q", secret.Name, secret.Data)
		}
		got[loadKeys["secrets"]+secret.Name] = versionOf(&secret)
	}
	for _, boat := range boats.Items {
		got[loadKeys["boats"]+boat.GetName()] = versionOf(&boat)
	}
	mine := maps.Clone(want)
	maps.DeleteFunc(mine, func(key string, _ int64) bool { return strings.HasPrefix(key, loadKeys["configmaps"]) })
	if !maps.Equal(mine, got) {
		s.Errorf("%s serves not what was restored: %s", r.program.name, differ(mine, got))
	}
	s.overwrites(bearer, r.program.name)
}

// overwrites demands that writes go on where no revision has been before.
func (s *estate) overwrites(c *kubernetes.Clientset, name string) {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "new-of-" + name}}
	created := must[*corev1.Secret](s.T)(c.CoreV1().Secrets("default").Create(s.Context(), secret, metav1.CreateOptions{}))
	if versionOf(created) < bump {
		s.Errorf("the resource version of what was written after the restore is %s", created.ResourceVersion)
	}
	if err := c.CoreV1().Secrets("default").Delete(s.Context(), "load-never", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		s.Errorf("deleting an object that does not exist: %v", err)
	}
}
