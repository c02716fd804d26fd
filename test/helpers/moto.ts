import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { findUnusedPort } from './unused-port.ts'

/** Version that the tests were written with. */
export const motoPackage = 'moto[s3,server]==5.2.5'

const python = process.env['OTPD_TEST_PYTHON']
const installed = python === undefined ? null : join(dirname(python), 'moto_server')

export const hasMoto = installed !== null && existsSync(installed)

/**
 * Starts moto, an S3 server in Python that keeps its objects in memory, with an empty bucket `backups`.
 *
 * @param program path of `moto_server`
 */
export async function startMoto(program = installed ?? 'moto_server') {
  const port = await findUnusedPort()
  // A real service is another machine, so this one must not take time from the server.
  const child = Bun.spawn(['nice', '-n', '10', program, '-H', '127.0.0.1', '-p', String(port)], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const url = `http://127.0.0.1:${port}`
  for (let tries = 0; ; tries++) {
    const made = await fetch(`${url}/backups`, { method: 'PUT' }).catch(() => null)
    if (made?.ok) break
    if (tries === 300 || child.exitCode !== null) throw new Error('moto did not start')
    await Bun.sleep(200)
  }
  return {
    url,
    port,
    pid: child.pid,
    async stop() {
      child.kill()
      await child.exited
    },
  }
}
