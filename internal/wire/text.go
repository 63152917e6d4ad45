package wire

import (
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/umbelhq/umbel"
)

// fieldNames are the names of message fields that people know by another one.
var fieldNames = map[protoreflect.Name]string{
	"workflow_id": "workflow ID", "run_id": "run ID", "staging_id": "staging ID", "task_queue": "task queue",
	"type": "activity type", "types": "activity type", "tokens": "token", "content_type": "content type",
	"non_retryable": "retry non-retryable type",
}

// InvalidText names the first text of a message that is no valid UTF-8, which no message can hold; nil if there is
// none.
func InvalidText(m proto.Message) *umbel.Error {
	if m == nil {
		return nil
	}
	return invalidText(m.ProtoReflect(), "")
}

func invalidText(m protoreflect.Message, prefix string) (bad *umbel.Error) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList():
			list := v.List()
			for i := range list.Len() {
				if f.Name() == "rows" {
					prefix = ofRowInCall(i)
				}
				if bad = invalidValue(f, list.Get(i), prefix); bad != nil {
					return false
				}
			}
		case !f.IsMap():
			bad = invalidValue(f, v, prefix)
		}
		return bad == nil
	})
	return bad
}

// ofRowInCall begins the name of a field of a row, as a server says it.
func ofRowInCall(i int) string { return "row " + strconv.Itoa(i) + " of the call: " }

func invalidValue(f protoreflect.FieldDescriptor, v protoreflect.Value, prefix string) *umbel.Error {
	name := fieldNames[f.Name()]
	if name == "" {
		name = string(f.Name())
	}
	switch f.Kind() { //nolint:exhaustive // only texts, and what may hold some
	case protoreflect.StringKind:
		if !utf8.ValidString(v.String()) {
			return umbel.Invalid(prefix+name, v.String(), "must be valid UTF-8")
		}
	case protoreflect.MessageKind:
		if f.Name() == "input" || f.Name() == "result" {
			prefix += string(f.Name()) + " "
		}
		return invalidText(v.Message(), prefix)
	}
	return nil
}
