import { Database } from 'bun:sqlite'
import { createIds } from '../../../src/domain/model/ids.ts'
import { createRequestSources, type Owner } from './request-sources.ts'
import { createRecords, type Ending, type SentRequest } from './records.ts'
import { pseudonymizeIdentities, pseudonymizePhones, type PhoneForms } from './pseudonyms.ts'

const dayMs = 24 * 60 * 60 * 1000
const historyMs = 90 * dayMs
/** The default retention of phones. */
const phoneRetentionMs = 30 * dayMs
/** Maximum number of pending requests at a time. */
const pendingMax = 100
const batchSize = 2000

/**
 * Fills the database of a stopped server with OTP requests of the last 90 days. Requests are inserted oldest first and
 * updated later by their outcome, so that rows are laid out in pages as a server would have left them. Of 100 requests, 72
 * are verified, 26 expire, one fails after five attempts and one is canceled; each phone has three on average. Phones
 * older than 30 days are pseudonymized, newer ones sealed. Data kept for a day only (inbox, limits) is omitted. Users
 * are those of 0.1.0, which the next start moves.
 *
 * @param options.owner developer with 20 % of all requests; 399 others share the rest
 */
export function writeHistory(
  path: string,
  options: { requests: number; now: number; owner: Owner; phones: PhoneForms },
): void {
  const { requests, now, owner, phones } = options
  const db = new Database(path)
  for (const setting of ['journal_mode = MEMORY', 'synchronous = OFF', 'cache_size = -1000000']) {
    db.run(`PRAGMA ${setting}`)
  }
  let time = now - historyMs
  const newId = createIds({ now: () => time }, (bytes) => crypto.getRandomValues(bytes))
  const sources = createRequestSources(db, newId, owner, requests)
  const records = createRecords(db, newId, phones)
  const pending: SentRequest[] = []
  const endOldest = () => {
    const sent = pending.shift()
    if (sent) records.end(sent, randomEnding(sent.source.alwaysSucceeds), time)
  }

  for (let first = 0; first < requests; first += batchSize) {
    db.transaction(() => {
      for (let index = first; index < Math.min(first + batchSize, requests); index++) {
        time = Math.floor(now - historyMs * (1 - index / requests))
        pending.push(records.send(sources.pickRequest(), time))
        if (pending.length > pendingMax) endOldest()
      }
      pseudonymizePhones(db, phones, time - phoneRetentionMs)
    })()
  }
  db.transaction(() => {
    time = now
    while (pending.length > 0) endOldest()
    pseudonymizePhones(db, phones, now - phoneRetentionMs)
    pseudonymizeIdentities(db, phones, now - phoneRetentionMs)
    records.finish(owner.developerId, requests / 100, now)
  })()
  db.run('PRAGMA journal_mode = WAL')
  db.close()
}

/** Draws the outcome of a request. @param alwaysSucceeds true for the application without failures */
function randomEnding(alwaysSucceeds: boolean): Ending {
  const share = Math.random()
  if (share < 0.72 || alwaysSucceeds) return 'verified'
  if (share < 0.98) return 'expired'
  return share < 0.99 ? 'failed' : 'canceled'
}
