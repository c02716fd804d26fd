import { isLoopbackAddress } from '../../src/shared/loopback.ts'
import { usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'

/** The server that a command talks to, and which setting chose it. */
export type ServerChoice = {
  /** Without a trailing slash; a path prefix before `/v1` is kept. */
  url: string
  /** Origin that stored credentials belong to. */
  origin: string
  source: string
}

export const defaultServer = 'http://127.0.0.1:8080'

/** A server with the name that the user gave it. */
export type NamedServer = { name: string; url: string }

/**
 * Chooses the server: --server, then --context, then `OTPD_SERVER`, then `OTPD_CONTEXT`, then the --env-file, then the last
 * login or context, then a server that runs on this machine, then the default.
 *
 * @param candidates.context named by the flag, or by the variable where there is no `OTPD_SERVER`
 */
export function chooseServer(
  io: Io,
  candidates: {
    flag?: string | undefined
    context?: NamedServer
    envFile?: string | undefined
    current?: { url: string; name?: string } | null
    local?: string | undefined
  },
): ServerChoice {
  if (candidates.flag) return parseServer(candidates.flag, '--server')
  if (candidates.context) return parseServer(candidates.context.url, contextSource(candidates.context.name))
  if (io.env.OTPD_SERVER) return parseServer(io.env.OTPD_SERVER, 'OTPD_SERVER')
  if (candidates.envFile) return parseServer(candidates.envFile, 'the --env-file')
  if (candidates.current) {
    const { url, name } = candidates.current
    return parseServer(url, name === undefined ? 'the last login' : contextSource(name))
  }
  if (candidates.local) return parseServer(candidates.local, 'the server on this machine')
  return parseServer(defaultServer, 'the default')
}

const contextSource = (name: string) => `the context ${name}`

/**
 * Parses a server address. Without a scheme it is https, or http on a loopback address.
 *
 * @throws usage error naming `source` when the address is not valid
 */
export function parseServer(text: string, source: string): ServerChoice {
  const scheme = isLoopbackAddress(text) ? 'http' : 'https'
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `${scheme}://${text}`)
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.username ||
    url.password ||
    url.search ||
    url.hash ||
    url.port === '0' ||
    !isHostAsWritten(url.hostname, text)
  )
    throw usageError(
      `The server address from ${source} is not valid.`,
      `Use an address like: ${source === 'the command line' ? '' : '--server '}${defaultServer}`,
    )
  return { url: url.origin + url.pathname.replace(/\/+$/, ''), origin: url.origin, source }
}

/**
 * Tells whether a host is the one that a person meant. The URL parser takes nearly any text for a name, reads a number
 * as an address (`8080` is 0.0.31.144), and finds a host in a path or behind a mistyped scheme (`/x`, `http:/x`).
 */
export function isHostAsWritten(host: string, text: string): boolean {
  if (/^(?!https?:\/\/[^/])(?:https?:?)?\//i.test(text)) return false
  if (host.startsWith('[')) return true
  if (/^\d[\d.]*$/.test(host)) return text.includes('.')
  return host
    .replace(/\.$/, '')
    .split('.')
    .every((label) => /^\w(?:[\w-]*\w)?$/.test(label))
}

/** Says where the server address came from, as a sentence for an error message. */
export const sourceSentence = ({ source }: ServerChoice) =>
  source === 'the default' ? 'That is the default address.' : `That address is from ${source}.`
