import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isSafeUrl } from '../../src/shared/safe-url.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'

/** A folder of releases, as `npm run release` lays it out: on a web server, or on this machine. */
export type ReleaseSource = {
  /** Address or path, for messages. */
  place: string
  /** Reads a file. @returns null if there is none @throws CliError it cannot be read */
  read(name: string): Promise<Uint8Array | null>
}

const timeoutMs = 10 * 60_000
const redirectsMax = 5

/**
 * Opens a folder of releases.
 *
 * @param place URL, or path of a folder
 * @throws usage error for an http URL: a program is not downloaded over plain http, but from this machine
 */
export function openReleaseSource(place: string, cwd: string): ReleaseSource {
  if (!/^https?:/i.test(place)) return openFolder(resolve(cwd, place))
  const base = place.replace(/\/+$/, '')
  requireSafe(base)
  return {
    place: base,
    async read(name) {
      const response = await download(`${base}/${name}`)
      if (response.status === 404) return null
      if (!response.ok) throw unavailable(`${base}/${name}`, `it answered ${response.status}`)
      try {
        return new Uint8Array(await response.arrayBuffer())
      } catch (error) {
        throw unavailable(`${base}/${name}`, error)
      }
    },
  }
}

const openFolder = (folder: string): ReleaseSource => ({
  place: folder,
  async read(name) {
    try {
      return await readFile(join(folder, name))
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (code === 'ENOENT' || code === 'ENOTDIR') return null
      throw unavailable(join(folder, name), error)
    }
  },
})

/** Downloads a file; follows redirects, but none to plain http. */
async function download(url: string): Promise<Response> {
  let location = url
  for (let redirects = 0; redirects <= redirectsMax; redirects++) {
    requireSafe(location)
    const init = { redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) } as const
    const response = await fetch(location, init).catch((error: unknown) => {
      throw unavailable(location, error)
    })
    const next = response.headers.get('location')
    if (response.status < 300 || response.status > 399 || next === null) return response
    location = new URL(next, location).href
  }
  throw unavailable(url, 'too many redirects')
}

function requireSafe(url: string) {
  if (isSafeUrl(url)) return
  throw usageError('Releases are downloaded over https only.', `The address is ${url}`)
}

function unavailable(what: string, cause: unknown) {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return new CliError(exitCodes.unreachable, 'RELEASE_UNAVAILABLE', `${what} could not be read: ${reason}`, {
    hints: ['Nothing was changed. Try again, or name another folder of releases with --from.'],
  })
}
