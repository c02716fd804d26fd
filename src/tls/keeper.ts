import { dayMs, hourMs, isWithin, minuteMs, secondMs } from '../shared/durations.ts'
import { generateKey, openAccountKey } from './account.ts'
import { AcmeError, openAcme, type AnswerChallenge } from './acme.ts'
import { readCertificate } from './pair.ts'
import { certificateId, renewalTime } from './renewal.ts'
import { readSaved, saveCertificate, saveFailure, type SavedCertificate, type SavedFailure } from './saved.ts'
import type { CertificateSource, SourceNeeds } from './source.ts'

type KeeperNeeds = SourceNeeds & {
  /** At least one. */
  domains: readonly string[]
  email: string | null
  directoryUrl: string
  directoryCa: string | null
  /** Folder of the account and the certificate. */
  folder: string
  version: string
  answer: AnswerChallenge
}

const lookMs = 5 * secondMs
/**
 * Waits after the first failures, since most are mended in minutes, such as a DNS record or a firewall. With the attempt
 * before them they are the five failures in an hour that Let's Encrypt allows for a name. Later waits double from an hour.
 */
const firstWaitsMs = [1, 2, 5, 15].map((minutes) => minutes * minuteMs)
const waitMaxMs = dayMs
/** RFC 9773 §4.3.2: when the authority does not say when to ask again, or says something unreasonable. */
const windowMinMs = minuteMs
const windowMaxMs = dayMs
const windowDefaultMs = 6 * hourMs
/** After so long without a first certificate, the log names the usual causes. */
const explainAfterMs = minuteMs

/** Gets a certificate by ACME, keeps it in a folder, and renews it. */
export function createKeeper(needs: KeeperNeeds): CertificateSource {
  const { domains, directoryUrl, folder, wall, log } = needs
  const stopping = new AbortController()
  let current = usable(readSaved(folder))
  /** Obtained, but not served yet: authorities issue only a few certificates for the same names in a week. */
  let unserved: SavedCertificate | undefined
  let failures = 0
  /** When the last attempt failed, and when the next one is due. */
  let retry = { since: 0, until: 0 }
  let lastError = ''
  /** When the current certificate is renewed, and from when until when that time holds. */
  let renewal = { at: 0, since: 0, until: 0 }
  const startedAt = wall.now()
  let isExplained = false

  /**
   * Returns the saved certificate if it is of this directory, for some of these names, and has not ended. A name that was added
   * may not be ready, and must not take HTTPS from the others.
   */
  function usable(saved: SavedCertificate | undefined): SavedCertificate | undefined {
    const isWanted =
      saved?.directoryUrl === directoryUrl && domains.some((name) => saved.facts.names.includes(name))
    return isWanted && saved.facts.notAfter > wall.now() ? saved : undefined
  }

  const hasAllNames = ({ facts }: SavedCertificate) => domains.every((name) => facts.names.includes(name))

  const open = async () => openAcme(await openAccountKey(folder), { ...needs, signal: stopping.signal })

  async function obtain(): Promise<SavedCertificate> {
    const acme = await open()
    await acme.register(needs.email)
    const key = await generateKey()
    const replaces = current && hasAllNames(current) ? certificateId(current.pair.certificate) : undefined
    const certificate = await acme.obtain({ names: domains, key, answer: needs.answer, replaces })
    const pair = { certificate, key: await exportPem(key.privateKey) }
    return { pair, facts: readCertificate(certificate), directoryUrl }
  }

  /** Returns when the certificate is to be renewed, and asks the authority again from time to time. */
  async function renewalAt({ pair, facts }: SavedCertificate): Promise<number> {
    const now = wall.now()
    if (isWithin(renewal, now)) return renewal.at
    const id = certificateId(pair.certificate)
    // The authority's advice is optional: a third of the lifetime holds without it.
    const window =
      id === undefined
        ? undefined
        : await open()
            .then((acme) => acme.renewalWindow(id))
            .catch(() => undefined)
    const againMs = Math.min(Math.max(window?.retryAfterMs || windowDefaultMs, windowMinMs), windowMaxMs)
    renewal = { at: renewalTime(facts, window, Math.random()), since: now, until: now + againMs }
    return renewal.at
  }

  function explainDelay(now: number) {
    if (current || isExplained || now - startedAt < explainAfterMs) return
    isExplained = true
    log.warn(
      'there is no certificate yet, so HTTPS is not served: its authority must reach this machine at port 80 of each name; check DNS, firewall and port forwarding',
      { domains, lastError },
    )
  }

  function keepFailure(failure: SavedFailure | null) {
    try {
      saveFailure(folder, failure)
    } catch {
      // It is for the doctor only, and in the log too.
    }
  }

  async function renew() {
    if (!current) log.info('obtaining a certificate', { domains, from: new URL(directoryUrl).host })
    try {
      const renewed = (unserved = usable(unserved) ?? (await obtain()))
      saveCertificate(folder, renewed)
      needs.onPair(renewed)
      const msg = current ? 'certificate renewed' : 'certificate obtained'
      current = renewed
      unserved = undefined
      failures = 0
      keepFailure(null)
      renewal = { at: 0, since: 0, until: 0 }
      log.info(msg, { domains, until: new Date(renewed.facts.notAfter) })
      needs.onOutcome('renewed')
    } catch (error) {
      if (stopping.signal.aborted) return
      needs.onOutcome('failed')
      lastError = error instanceof Error ? error.message : String(error)
      const now = wall.now()
      retry = { since: now, until: now + Math.max(nextWaitMs(failures++), askedWaitMs(error)) }
      keepFailure({ error: lastError, nextTry: retry.until })
      const nextTry = new Date(retry.until)
      const what = unserved ? 'serving the new certificate' : 'obtaining a certificate'
      log.error(`${what} failed; SIGHUP tries again at once`, {
        domains,
        error: lastError,
        nextTry,
      })
    }
  }

  return {
    first: current,
    intervalMs: lookMs,
    async look(isAsked) {
      const now = wall.now()
      explainDelay(now)
      if (isWithin(retry, now) && !isAsked) return
      if (!current || !hasAllNames(current) || now >= (await renewalAt(current))) await renew()
    },
    stop: () => stopping.abort(),
  }
}

/** @param failures in a row, before the one that was just seen */
const nextWaitMs = (failures: number): number =>
  firstWaitsMs[failures] ?? Math.min(hourMs * 2 ** (failures - firstWaitsMs.length), waitMaxMs)

/** How long the authority wants to be left alone; an hour if it only says that its limit is reached. */
function askedWaitMs(error: unknown): number {
  if (!(error instanceof AcmeError)) return 0
  return error.retryAfterMs || (error.type === 'rateLimited' ? hourMs : 0)
}

async function exportPem(key: CryptoKey): Promise<string> {
  const base64 = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64')
  return `-----BEGIN PRIVATE KEY-----\n${base64.replace(/.{64}(?!$)/g, '$&\n')}\n-----END PRIVATE KEY-----\n`
}
