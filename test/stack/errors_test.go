package stack

import "errors"

// errFirst is how first attempts fail.
var errFirst = errors.New("the first attempt fails")
