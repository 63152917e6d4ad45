package testredis

import "context"

// Launch lets tests see the error of a start that fails.
func Launch(ctx context.Context, directive, value string) (addr string, err error) {
	p, err := launch(ctx, map[string]string{directive: value})
	if err != nil {
		return "", err
	}
	defer p.close()
	return p.addr(), nil
}

// Binary finds the server as a test would.
func Binary() (string, error) { return binary() }

// Dir returns the directory of the first process.
func (r *Redis) Dir() string { return r.nodes[0].dir }
