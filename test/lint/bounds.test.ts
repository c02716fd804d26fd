import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readSources, withoutComments } from '../helpers/sources.ts'

const root = join(import.meta.dir, '../..')
const guide = readFileSync(join(root, 'src/docs/architecture.md'), 'utf8')
const rows = [...guide.matchAll(/^\| [^|]+ \| `(\w+)` = ([\d,]+) +\| `(src\/[\w./-]+)` +\|/gm)].map(
  ([, name = '', value = '', file = '']) => ({ name, value: Number(value.replaceAll(',', '')), file }),
)

/** Files whose maps and sets outlive a call, and why their size does not depend on what others do. */
const boundedOtherwise: Readonly<Record<string, string>> = {
  'src/auth/hash-queue.ts': 'also the settings waitingMax and waitingPerNetworkMax',
  'src/delivery/costs.ts': 'one for each provider and currency that it charges in',
  'src/delivery/delivery-service.ts': 'one for each configured provider',
  'src/delivery/dispatcher.ts': 'sends in flight, by the places of the worker and of calls',
  'src/delivery/provider-pool.ts': 'one for each configured provider',
  'src/delivery/providers/aws-receipts.ts': 'certificatesMax in that file',
  'src/delivery/text/message.ts': 'one for each language of the texts',
  'src/domain/accounts/refresh-tokens.ts': 'tokens that are exchanged or revoked now',
  'src/domain/limits/memory-rate-limit.ts': 'calls of the last minute, by the limit of each subject',
  'src/domain/model/versioned-cache.ts': 'its argument entriesMax',
  'src/domain/model/ids.ts': 'one for each prefix of ids',
  'src/domain/model/keys.ts': 'one for each version of the keys',
  'src/domain/model/numbering-plans.ts': 'one for each calling code',
  'src/domain/otp/message-attempts.ts':
    'messages in flight when the database goes away, which takes no others then',
  'src/domain/routing/region.ts': 'one for each country',
  'src/domain/routing/cell-statistics.ts': 'one for each provider, channel and region',
  'src/domain/upkeep/phone-service.ts': 'one for each developer that erases a phone now',
  'src/http/call-turns.ts': 'calls of developers in progress, by the limit of each',
  'src/http/page/countries.ts': 'one for each language of the page, and each country',
  'src/http/listener.ts': 'listeners during an exchange of certificates',
  'src/http/route-errors.ts': 'one for each route',
  'src/server/alert-observations.ts': 'one for each compared day, usualDays and two',
  'src/server/dev-lines.ts': 'development mode only',
  'src/server/messaging.ts': 'one for each configured provider',
  'src/server/tls.ts': 'challenges of a certificate that is being renewed',
  'src/store/sqlite/admission-log.ts': 'admissions of the last minute, by the limit of each application',
  'src/store/postgres/connections.ts': 'one for each statement',
  'src/store/postgres/write-turns.ts': 'writes of the last two seconds, the longest that one waits',
  'src/store/engine/query-params.ts': 'one for each shape of a filter',
  'src/store/sqlite/reader.ts': 'one for each statement',
  'src/store/sqlite/recent-lists.ts': 'recentMax of lists.ts',
  'src/store/sqlite/database.ts': 'one for each kind of background work',
  'src/store/store.ts': 'cachedMax of list-rules.ts',
  'src/webhooks/result-recorder.ts': 'deliveries in flight',
}

/** Files whose maps and sets end with a call, a transaction or a batch. */
const shortLived: ReadonlySet<string> = new Set([
  'src/domain/otp/phones.ts',
  'src/domain/upkeep/erasure.ts',
  'src/domain/upkeep/phone-expiry.ts',
  'src/domain/webhooks/headers.ts',
  'src/http/compat/twilio-verify/fields.ts',
  'src/http/errors.ts',
  'src/http/oauth.ts',
  'src/http/urls.ts',
  'src/domain/guard/subject.ts',
  'src/domain/upkeep/guard-backfills.ts',
  'src/store/engine/key-order.ts',
  'src/store/guard.ts',
  'src/store/postgres-rows.ts',
])

const servers = /^src\/(?:auth|delivery|domain|http|log|metrics|server|store|tls|webhooks)\//
/** Parts that end before the server serves, or run in a command. */
const others = /^src\/(?:store\/(?:data-dir|move)|http\/openapi)\//
const grows = /^(?: {2})?(?:const|let) \w+(?:: [^=\n]+)? = new (?:Map|Set)(?:<.*>)?\(\)/m

test('the table of bounds has at least thirty rows', () => expect(rows.length).toBeGreaterThanOrEqual(30))

test.each(rows)('$name of $file is the one of the guide, and is used', ({ name, value, file }) => {
  const text = readFileSync(join(root, file), 'utf8')
  const definition = new RegExp(`\\b${name}(?::| =) ([\\d_]+)`).exec(text)
  expect(Number(definition?.[1]?.replaceAll('_', ''))).toBe(value)
  expect(text.split(new RegExp(`\\b${name}\\b`)).length).toBeGreaterThan(2)
})

test('every map and set that grows is in the table, or has another bound', async () => {
  const named = new Set([...rows.map(({ file }) => file), ...Object.keys(boundedOtherwise), ...shortLived])
  const growing = (await readSources('src')).filter(
    ({ path, text }) => servers.test(path) && !others.test(path) && grows.test(withoutComments(text)),
  )
  expect(growing.map(({ path }) => path).filter((path) => !named.has(path))).toEqual([])
  const paths = new Set(growing.map(({ path }) => path))
  expect([...Object.keys(boundedOtherwise), ...shortLived].filter((path) => !paths.has(path))).toEqual([])
})
