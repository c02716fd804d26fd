import { expect } from 'bun:test'
import * as fc from 'fast-check'
import { emptyRecord } from '../../../src/domain/model/phone-record.ts'
import { userLists } from '../../../src/store/sqlite/list-numbers.ts'
import { defineBodyModel, withShortIds } from './bodies.ts'

const empty = emptyRecord({ developerId: 'dev_p', environment: 'live', phone: '+14155552671', country: 'US' })

const phones = 10
/** Makes hashes: every third begins with the same 53 bits. */
const toHash = (n: number) => `${String(n % 3).padEnd(12, 'p')}${String(n).padStart(12, 'q')}`

type Call = { kind: 'save' | 'verify' | 'delete' | 'replace' | 'find' | 'list'; n: number }

const call: fc.Arbitrary<Call> = fc.record({
  kind: fc.constantFrom('save', 'save', 'save', 'verify', 'delete', 'replace', 'find', 'list'),
  n: fc.nat(phones - 1),
})

/** By the number of the phone: when it was saved last, and its identity. */
type State = Record<number, { lastSentAt: number; identity: string | null }>

const identityId = (number: number) => `idn_${String(number).padStart(4, '0')}`

const listIds = (state: State) =>
  Object.values(state)
    .flatMap(({ identity }) => identity ?? [])
    .toSorted()
    .toReversed()

const pageRows = 3

export const phoneModel = defineBodyModel<Call, State>({
  name: 'the record of each phone, and the list of identities, are those of the rows',
  shortRuns: 25,
  options: { phoneTailMax: 4, listLimits: { recentMax: 4, sliceRows: 2 } },
  call,
  open: async () => ({ content: await withShortIds('dev_p'), state: {} }),

  async perform(tx, { kind, n }, { number }) {
    const hash = toHash(n)
    if (kind === 'list') {
      const listed = await tx.phones.listIdentities(empty.developerId, { limit: pageRows })
      return listed.map(({ identity }) => identity?.id)
    }
    if (kind === 'find') return (await tx.phones.find(hash))?.lastSentAt
    const loaded = await tx.phones.load(hash, empty)
    const found = { lastSentAt: loaded.record.lastSentAt, isNew: loaded.isNew }
    if (kind === 'delete' || kind === 'replace') await tx.phones.delete(loaded)
    if (kind === 'delete') return found
    const { record } = kind === 'replace' ? await tx.phones.load(hash, empty) : loaded
    const verified = { id: identityId(number), verificationCount: 1, firstVerifiedAt: 1, lastVerifiedAt: 1 }
    const identity = record.identity ?? (kind === 'verify' ? { ...verified, applications: [] } : null)
    await tx.phones.save(kind === 'replace' ? { hash, row: undefined } : loaded, {
      ...record,
      identity,
      lastSentAt: number,
    })
    return found
  },

  apply(state, { kind, n }, number) {
    const before = state[n]
    if (kind === 'list') return listIds(state).slice(0, pageRows)
    if (kind === 'find') return before?.lastSentAt
    const found = { lastSentAt: before?.lastSentAt ?? 0, isNew: before === undefined }
    if (kind === 'delete') delete state[n]
    else {
      const identity = kind === 'replace' ? null : (before?.identity ?? null)
      state[n] = { lastSentAt: number, identity: identity ?? (kind === 'verify' ? identityId(number) : null) }
    }
    return found
  },

  async check({ store, database }, state) {
    for (let n = 0; n < phones; n++) {
      const record = await store.read.phones.find(toHash(n))
      const stored = record && { lastSentAt: record.lastSentAt, identity: record.identity?.id ?? null }
      expect(stored).toEqual(state[n])
    }
    const ids = []
    for (;;) {
      const page = await store.read.phones.listIdentities(empty.developerId, {
        limit: pageRows,
        before: ids.at(-1),
      })
      ids.push(...page.flatMap(({ identity }) => identity?.id ?? []))
      if (page.length < pageRows) break
    }
    expect(ids).toEqual(listIds(state))
    // The list is exact, although a reader would skip the keys of other records.
    const keys = database.sqlite?.lists.page(
      { owners: [database.shortId(empty.developerId)], lists: [userLists.live] },
      {},
      1_000,
    )
    expect(keys?.map((key) => String(key).split(':')[0])).toEqual(ids)
    expect(await store.read.phones.scan(-1, 100)).toHaveLength(Object.keys(state).length)
  },
})
