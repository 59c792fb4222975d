package kinds

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/costtest"
)

// Quantities with large exponents are refused in the time that it takes to read them,
// however they are written. Other texts that look like them are not.
func TestLargeExponents(t *testing.T) {
	const far = `99999999`
	for text, refused := range map[string]bool{
		`{"spec":{"overhead":{"cpu":"9e` + far + `"}}}`:                                                               true,
		`{"spec":{"overhead":{"cpu":9e` + far + `}}}`:                                                                 true,
		`{"spec":{"overhead":{"cpu":-9.5E-` + far + `}}}`:                                                             true,
		`{"spec":{"overhead":{"cpu":" 9e+000` + far + ` "}}}`:                                                         true,
		`{"spec":{"overhead":{"cpu":"\u0039e` + far + `"}}}`:                                                          true,
		`{"spec":{"overhead":{"cpu":"9\u0065` + far + `"}}}`:                                                          true,
		`{"metadata":{"annotations":{"a":" 9e` + far + ` \" x"}},"spec":{"overhead":{"cpu":"9e` + far + `"}}}`:        true,
		"spec: {overhead: {cpu: 9e" + far + "}}":                                                                      true,
		"spec: {overhead: {cpu: \"\\x39e" + far + "\"}}":                                                              true,
		`{"metadata":{"annotations":{"a":"9e` + far + `","9e` + far + `":"x"},"uid":"8bd3e12345"}}`:                   false,
		`{"spec":{"overhead":{"cpu":"1.2345678901234567890123e999"}}}`:                                                true,
		`{"spec":{"overhead":{"cpu":"` + strings.Repeat("1", 400_000) + `"}}}`:                                        true,
		`{"spec":{"overhead":{"cpu":` + strings.Repeat("1", 400_000) + `}}}`:                                          true,
		`{"metadata":{"creationTimestamp":"bad"},"spec":{"overhead":{"cpu":"` + strings.Repeat("1", 400_000) + `"}}}`: true,
		`{"metadata":{"annotations":{"a":"` + strings.Repeat("1", 400_000) + `"}}}`:                                   false,
		"spec: {overhead: {cpu: \"9e\\\n " + far + "\"}}":                                                             true,
		"{spec: {overhead: {cpu: \"9e\\\n " + far + "\"}}}":                                                           true,
		"{spec: {overhead: {cpu: '9e" + far + "'}}}":                                                                  true,
		"{spec: {overhead: {cpu: !!binary OWU5OTk5OTk5OQ==}}}":                                                        true,
		"spec: {overhead: {cpu: !!binary OWU5OTk5OTk5OQ==}}":                                                          true,
		`{metadata: {name: '"'}, spec: {overhead: {cpu: 9e` + far + `, b: '"'}}}`:                                     true,
		`{metadata: {name: a"}, spec: {overhead: {cpu: 9e` + far + `, b: c"}}}`:                                       true,
		`{"metadata": {"name": "a"}, # "
		"spec": {"overhead": {"cpu": 9e` + far + `, "b": "1"}}} # "`: true,
		wide("\ufeffspec: {overhead: {cpu: 9e" + far + "}}"): true,
		`{"spec":{"overhead":{"cpu":"1e99"}}}`:               false,
		`{"spec":{"overhead":{"cpu":"1e-0000000009"}}}`:      false,
	} {
		var err error
		costtest.Within(t, time.Second, func() {
			err = LongQuantity([]byte(text), func(short []byte) error { return yaml.Unmarshal(short, &corev1.Pod{}) })
		})
		if (err != nil) != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// wide is a text in UTF-16, which parsers of YAML read.
func wide(text string) string {
	var data []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		data = binary.LittleEndian.AppendUint16(data, unit)
	}
	return string(data)
}

// A value of base64 can look like a number, and what takes its place is base64, too.
func TestExponentsInBase64(t *testing.T) {
	for _, text := range []string{`{"data":{"a":"9e123456"}}`, `{"data":{"a":"\u0039e123456"}}`, `{"data":{"a":"9e123456\n"}}`, "data: {a: 9e123456}", "data:\n  a: |\n    9e123456\n"} {
		read := 0
		err := LongQuantity([]byte(text), func(short []byte) error {
			read++
			return yaml.Unmarshal(short, &corev1.Secret{})
		})
		if err != nil || read != 1 {
			t.Errorf("%s: %v, read %d times", text, err, read)
		}
	}
}

// UIDs are no numbers, whatever they begin with: objects that have them are read once.
func TestUIDIsNoExponent(t *testing.T) {
	for _, uid := range []string{"e22147b6-038f-4f96-a0f5-1579956521aa", "9e22147b-038f-4f96-a0f5-157995652100"} {
		err := LongQuantity([]byte(`{"metadata":{"uid":"`+uid+`"}}`), func([]byte) error { return errors.New("read twice") })
		if err != nil {
			t.Errorf("%s: %v", uid, err)
		}
	}
}

func TestLargeExponentsInProtobuf(t *testing.T) {
	cpu := func(text string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Overhead: corev1.ResourceList{"cpu": resource.MustParse(text)}}}
	}
	long := strings.Repeat("1", 'e') // its length is written as e
	for name, pod := range map[string]*corev1.Pod{
		"exponent":                 cpu("9e99"),
		"integer":                  cpu("1"),
		"length":                   {ObjectMeta: metav1.ObjectMeta{Name: long, Annotations: map[string]string{long: long}}},
		"integer and field number": {Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{RestartCount: 'e', Image: "123456789012.dkr.ecr.eu-west-1.amazonaws.com/app:v1"}}}},
		"text":                     {ObjectMeta: metav1.ObjectMeta{UID: "e22147b6-038f-4f96-a0f5-1579956521aa", Annotations: map[string]string{"a": "9e99999999"}}},
	} {
		data, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		err = LongQuantity(append([]byte("k8s\x00"), data...), func(short []byte) error { return (&corev1.Pod{}).Unmarshal(short[4:]) })
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	digits := strings.Repeat("1", '7'-len("e999"))
	for _, quantity := range []string{
		"\n\n9e99999999", // field 1, 10 bytes
		"\n\x8a\x80\x009e99999999", "\n\x039e9\n\x059e999", "\n\x059e99908",
		"\n7" + digits + "e999", "\n7-" + digits[1:] + "e999", "\n\x81\x02" + strings.Repeat("1", 253) + "e999",
	} {
		err := LongQuantity(append([]byte("k8s\x00"), quantity...), func(short []byte) error { return (&resource.Quantity{}).Unmarshal(short[4:]) })
		if !errors.Is(err, resource.ErrFormatWrong) && !errors.Is(err, resource.ErrSuffix) {
			t.Errorf("%q: %v", quantity, err)
		}
	}
	if compareQuantities("9e99999999", "1") != 1 {
		t.Error("a quantity that cannot be read is compared as text")
	}
}
