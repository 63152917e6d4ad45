package wire

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "github.com/umbelhq/umbel/api/gen/umbel/v1"
)

// Calls returns the paths of all calls that there are: "/umbel.v1.WorkflowService/Commit" and the others.
func Calls() []string {
	var paths []string
	for _, file := range []protoreflect.FileDescriptor{v1.File_umbel_v1_workflow_proto, v1.File_umbel_v1_worker_proto} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				paths = append(paths, "/"+string(service.FullName())+"/"+string(service.Methods().Get(j).Name()))
			}
		}
	}
	return paths
}
