package bug

const (
	execPackage = "github.com/espalier-dev/espalier/internal/exec"
)

// Engine are bugs of the engine: wrong answers about schemas, rules and objects.
var Engine = []Bug{
	{
		Name: "bound-2-63", What: "a bound of 2^63 is taken for one that an int64 holds",
		Edits: []Edit{{execPackage, "number.go", "if bound >= 1<<63 || bound < -1<<63 ||", "if bound > 1<<63 || bound < -1<<63 ||"}},
	},
}
