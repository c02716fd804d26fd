import { Database } from 'bun:sqlite'
import { createIds } from '../../../src/domain/model/ids.ts'
import { createRequestSources, type Owner } from './request-sources.ts'
import { createRecords, type Ending, type SentRequest } from './records.ts'
import { pseudonymizeIdentities, pseudonymizePhones, type Pseudonym } from './pseudonyms.ts'

const dayMs = 24 * 60 * 60 * 1000
const historyMs = 90 * dayMs
/** As is the default. */
const phoneRetentionMs = 30 * dayMs
/** How many others are asked before somebody has answered. */
const pendingMax = 100
const batchSize = 2000

/**
 * Fills a database, whose server is stopped, with OTP requests of the last 90 days, oldest first, each changed by
 * what became of it, so that rows lie in their pages as a server would have left them. 72 of 100 are verified, 26 expire,
 * one fails after five attempts and one is canceled; a phone is asked three times on average. Numbers older than 30 days
 * have made way for pseudonyms. What serves for a day only (inbox, limits) is left out.
 *
 * @param options.owner whose 20 % of all requests are; 399 others share the rest
 */
export function writeHistory(
  path: string,
  options: { requests: number; now: number; owner: Owner; pseudonym: Pseudonym },
): void {
  const { requests, now, owner, pseudonym } = options
  const db = new Database(path)
  for (const setting of ['journal_mode = MEMORY', 'synchronous = OFF', 'cache_size = -1000000']) {
    db.run(`PRAGMA ${setting}`)
  }
  let time = now - historyMs
  const newId = createIds({ now: () => time }, (bytes) => crypto.getRandomValues(bytes))
  const sources = createRequestSources(db, newId, owner, requests)
  const records = createRecords(db, newId)
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
      pseudonymizePhones(db, pseudonym, time - phoneRetentionMs)
    })()
  }
  db.transaction(() => {
    time = now
    while (pending.length > 0) endOldest()
    pseudonymizePhones(db, pseudonym, now - phoneRetentionMs)
    pseudonymizeIdentities(db, pseudonym, now - phoneRetentionMs)
    records.finish(owner.developerId, requests / 100, now)
  })()
  db.run('PRAGMA journal_mode = WAL')
  db.close()
}

/** @param alwaysSucceeds of the application whose requests all end well */
function randomEnding(alwaysSucceeds: boolean): Ending {
  const share = Math.random()
  if (share < 0.72 || alwaysSucceeds) return 'verified'
  if (share < 0.98) return 'expired'
  return share < 0.99 ? 'failed' : 'canceled'
}
