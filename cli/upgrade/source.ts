import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { explainCode } from '../../src/shared/error-cause.ts'
import { isSafeUrl } from '../../src/shared/safe-url.ts'
import { CliError, exitCodes, usageError } from '../terminal/errors.ts'

/** A folder of releases, as `npm run release` lays it out: on a web server, or on this machine. */
export type ReleaseSource = {
  /** Address or path, for messages. */
  place: string
  /**
   * Reads a file.
   *
   * @param onBytes called as a download goes on, with the bytes that are there and, if it is known, their total
   * @returns null if there is none @throws CliError it cannot be read
   */
  read(name: string, onBytes?: OnBytes): Promise<Uint8Array | null>
}

type OnBytes = (done: number, total: number | undefined) => void

const redirectsMax = 5

/**
 * Opens a folder of releases.
 *
 * @param place URL, or path of a folder
 * @param stalledMs a download may take as long as it needs, but not stand still for this long
 * @throws usage error for an http URL: a program is not downloaded over plain http, but from this machine
 */
export function openReleaseSource(place: string, cwd: string, stalledMs = 60_000): ReleaseSource {
  if (!/^https?:/i.test(place)) return openFolder(resolve(cwd, place))
  const base = place.replace(/\/+$/, '')
  requireSafe(base)
  return {
    place: base,
    async read(name, onBytes) {
      const url = `${base}/${name}`
      const stall = watchForStall(stalledMs)
      try {
        const response = await download(url, stall.signal)
        if (response.status === 404) return null
        if (!response.ok) throw unavailable(url, `it answered ${response.status}`)
        const total = Number(response.headers.get('content-length')) || undefined
        return await readBody(response, (done) => {
          stall.restart()
          onBytes?.(done, total)
        })
      } catch (error) {
        throw error instanceof CliError ? error : unavailable(url, error)
      } finally {
        stall.end()
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

/** Aborts its signal once it has not been restarted for that long. */
function watchForStall(stalledMs: number) {
  const controller = new AbortController()
  const start = () =>
    setTimeout(() => controller.abort(new Error(`nothing came for ${stalledMs / 1000} seconds`)), stalledMs)
  let timer = start()
  return {
    signal: controller.signal,
    restart() {
      clearTimeout(timer)
      timer = start()
    },
    end: () => clearTimeout(timer),
  }
}

async function readBody(response: Response, onBytes: (done: number) => void): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let done = 0
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk)
    onBytes((done += chunk.byteLength))
  }
  return Buffer.concat(chunks)
}

/** Downloads a file; follows redirects, but none to plain http. */
async function download(url: string, signal: AbortSignal): Promise<Response> {
  let location = url
  for (let redirects = 0; redirects <= redirectsMax; redirects++) {
    requireSafe(location)
    const response = await fetch(location, { redirect: 'manual', signal }).catch((error: unknown) => {
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
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  // The message of a system's error is for developers of the engine.
  const reason =
    typeof code === 'string' ? explainCode(code) : cause instanceof Error ? cause.message : String(cause)
  return new CliError(exitCodes.unreachable, 'RELEASE_UNAVAILABLE', `${what} could not be read: ${reason}`, {
    hints: ['Nothing was changed. Try again, or name another folder of releases with --from.'],
  })
}
