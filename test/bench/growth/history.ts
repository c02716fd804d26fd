import { Database } from 'bun:sqlite'
import { createIds } from '../../../src/domain/model/ids.ts'
import { createPeople, type Owner } from './people.ts'
import { createRecords, type Ending, type Sent } from './records.ts'
import { forgetIdentities, forgetPhones, type Pseudonym } from './pseudonyms.ts'

const dayMs = 24 * 60 * 60 * 1000
const historyMs = 90 * dayMs
/** As is the default. */
const phoneMs = 30 * dayMs
/** How many others are asked before somebody has answered. */
const lag = 100
const chunk = 2000

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
  const people = createPeople(db, newId, owner, requests)
  const records = createRecords(db, newId)
  const waiting: Sent[] = []
  const endOne = () => {
    const sent = waiting.shift()
    if (sent) records.end(sent, endingOf(sent.source.isQuiet), time)
  }

  for (let first = 0; first < requests; first += chunk) {
    db.transaction(() => {
      for (let index = first; index < Math.min(first + chunk, requests); index++) {
        time = Math.floor(now - historyMs * (1 - index / requests))
        waiting.push(records.send(people.pick(), time))
        if (waiting.length > lag) endOne()
      }
      forgetPhones(db, pseudonym, time - phoneMs)
    })()
  }
  db.transaction(() => {
    time = now
    while (waiting.length > 0) endOne()
    forgetPhones(db, pseudonym, now - phoneMs)
    forgetIdentities(db, pseudonym, now - phoneMs)
    records.finish(owner.developerId, requests / 100, now)
  })()
  db.run('PRAGMA journal_mode = WAL')
  db.close()
}

/** @param isQuiet of the application whose requests all end well */
function endingOf(isQuiet: boolean): Ending {
  const share = Math.random()
  if (share < 0.72 || isQuiet) return 'verified'
  if (share < 0.98) return 'expired'
  return share < 0.99 ? 'failed' : 'canceled'
}
