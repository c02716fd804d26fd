import { usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'

/** The server that a command talks to, and who said so. */
export type ServerChoice = {
  /** Without a slash at the end; a path in front of `/v1` is kept. */
  url: string
  /** What credentials belong to. */
  origin: string
  source: string
}

export const defaultServer = 'http://127.0.0.1:8080'

/** A server and the name that its user gave it. */
export type NamedServer = { name: string; url: string }

/**
 * Flag, then `OTPD_SERVER`, then a context that is named, then a file (an --env-file, or what was chosen last), then the
 * default.
 */
export function chooseServer(
  io: Io,
  candidates: {
    flag?: string
    context?: NamedServer
    envFile?: string
    current?: { url: string; name?: string } | null
  },
): ServerChoice {
  if (candidates.flag) return parseServer(candidates.flag, '--server')
  if (io.env.OTPD_SERVER) return parseServer(io.env.OTPD_SERVER, 'OTPD_SERVER')
  if (candidates.context) return parseServer(candidates.context.url, contextSource(candidates.context.name))
  if (candidates.envFile) return parseServer(candidates.envFile, 'the --env-file')
  if (candidates.current) {
    const { url, name } = candidates.current
    return parseServer(url, name === undefined ? 'the last login' : contextSource(name))
  }
  return parseServer(defaultServer, 'the default')
}

const contextSource = (name: string) => `the context ${name}`

/** @throws usage error; it names `from`, where the address came from */
export function parseServer(text: string, source: string): ServerChoice {
  const scheme = isLoopback(text.replace(/[:/].*$/, '')) ? 'http' : 'https'
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `${scheme}://${text}`)
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.username ||
    url.password ||
    url.search ||
    url.hash
  )
    throw usageError(
      `The server address from ${source} is not one.`,
      `Give it like this: --server ${defaultServer}`,
    )
  return { url: url.origin + url.pathname.replace(/\/+$/, ''), origin: url.origin, source }
}

export const isLoopback = (host: string) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(host)

/** Where the address came from, as a sentence of an error message. */
export const sourceSentence = ({ source }: ServerChoice) =>
  source === 'the default' ? 'That address is the default.' : `That address is from ${source}.`
