/**
 * Imported before anything else by the binary. Libraries read these while they load (Elysia reads `NODE_ENV`
 * at run time, where the build's own `define` does not reach), so it has to happen in a module of its own.
 */
Bun.env.NODE_ENV = 'production'

// `fetch` obeys HTTP_PROXY. A server on this machine is never asked through one: it could not be reached there,
// and the credentials of the call would pass through in clear.
const loopback = ['localhost', '127.0.0.1', '::1', '[::1]']
for (const name of ['NO_PROXY', 'no_proxy']) {
  const existing = Bun.env[name] ?? ''
  Bun.env[name] = [...existing.split(',').filter(Boolean), ...loopback].join(',')
}
