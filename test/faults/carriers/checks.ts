import { messageLeaseMs } from '../../../src/domain/model/message.ts'
import { formatPrice } from '../../../src/domain/model/price.ts'
import type { WebhookClient } from '../../helpers/webhook-client.ts'
import type { BillItem, Vendor } from './vendor.ts'

type Entry = {
  type: string
  at: string
  provider?: string
  outcome?: string
  error?: string | null
  providerMessageId?: string | null
  latencyMs?: number
  interrupted?: boolean
}

/** A request, as the API shows it after the soak. */
type Story = { id: string; status: string; resends: number; entries: Entry[] }

export type Findings = {
  violations: string[]
  figures: Record<string, number | string>
}

/**
 * Attempts in a row that one mark in a timeline explains: a code lives for three leases of its message, and the third attempt is
 * the one that has the mark.
 */
const interruptedMax = 2

/** Requests that are read at a time: an hour's run has ten thousand. */
const readAtOnce = 20

/** Compares the timelines and costs of otpd with the bills of the vendors, and with the outcomes that these have heard. */
export async function compare(
  client: WebhookClient,
  vendors: readonly Vendor[],
  requestIds: readonly string[],
): Promise<Findings> {
  const stories = new Map<string, Story>()
  for (let at = 0; at < requestIds.length; at += readAtOnce)
    for (const story of await Promise.all(
      requestIds.slice(at, at + readAtOnce).map((id) => readStory(client, id)),
    ))
      stories.set(story.id, story)
  const violations = vendors.flatMap(({ lostReceipts }) => lostReceipts)
  const entries = [...stories.values()].flatMap((story) => story.entries)
  const entriesByMessage = new Map(entries.map((entry) => [entry.providerMessageId, entry]))
  /** Taken by a vendor in an attempt that a killed node could not record. */
  const unrecorded = (item: BillItem) => !entriesByMessage.has(item.messageId) && !item.isResponseCut
  /** Taken in an attempt that ended after its lease: another one had the message by then, and its provider hears the outcome. */
  const isLate = ({ messageId }: BillItem) =>
    (entriesByMessage.get(messageId)?.latencyMs ?? 0) > messageLeaseMs
  let reports = 0
  for (const vendor of vendors) {
    for (const item of vendor.bill.values()) {
      const story = stories.get(item.requestId ?? '')
      if (!story) {
        violations.push(`${vendor.name} had a message of the unknown request ${item.requestId}`)
        continue
      }
      if (unrecorded(item) || isLate(item) || item.isReportedLost) continue
      const { verified, other } = vendor.protocol.outcomes
      const expected = story.status === 'verified' ? verified : other
      if (expected === null) continue
      reports++
      if (!item.outcomes.has(expected))
        violations.push(
          `${vendor.name} did not hear that ${story.id} is ${story.status}, about ${item.messageId}`,
        )
      if (item.outcomes.size > 1) violations.push(`${vendor.name} heard two outcomes of ${story.id}`)
    }
  }
  const items = Map.groupBy(
    vendors.flatMap(({ bill }) => [...bill.values()]),
    ({ requestId }) => requestId,
  )
  for (const story of stories.values()) violations.push(...findUnexplained(story, items.get(story.id) ?? []))
  const orphans = vendors.flatMap(({ bill }) => [...bill.values()].filter(unrecorded))
  violations.push(...(await compareBills(client, vendors, unrecorded)))
  return {
    violations,
    figures: {
      requests: stories.size,
      verified: [...stories.values()].filter(({ status }) => status === 'verified').length,
      'messages on bills': vendors.reduce((sum, { bill }) => sum + bill.size, 0),
      'failed over': vendors.reduce(
        (sum, { bill }) => sum + [...bill.values()].filter(({ isReportedLost }) => isReportedLost).length,
        0,
      ),
      'responses cut': vendors.reduce(
        (sum, { bill }) => sum + [...bill.values()].filter(({ isResponseCut }) => isResponseCut).length,
        0,
      ),
      refused: vendors.reduce((sum, { refusedCount }) => sum + refusedCount(), 0),
      'outcomes delivered': reports,
      'taken in attempts that were killed': orphans.length,
      'bills EUR': vendors
        .map(({ name, bill }) => `${name} ${formatPrice(sumPrices(bill.values()))}`)
        .join(', '),
    },
  }
}

async function readStory(client: WebhookClient, id: string): Promise<Story> {
  const { status } = await client.call<{ status: string }>('GET', `/v1/otp/${id}`)
  const entries = await client.call<Entry[]>('GET', `/v1/otp/${id}/events`)
  return { id, status, resends: entries.filter(({ type }) => type === 'otp.sent').length - 1, entries }
}

/**
 * Finds codes that were sent again without a reason in the timeline: a resend, a receipt that it did not arrive, an attempt that
 * was interrupted.
 */
function findUnexplained({ id, status, resends, entries }: Story, items: readonly BillItem[]): string[] {
  const attempts = entries.filter(({ type }) => type === 'delivery.attempted')
  const handed = attempts.filter(({ outcome }) => outcome !== 'refused')
  const lost = handed.filter(({ error }) => error && error !== 'uncertain').length
  const interrupted = new Set(attempts.filter((entry) => entry.interrupted).map(({ at }) => at)).size
  const found: string[] = []
  // The attempt that followed a resend or such a receipt may have been killed, and the code may have ended before another one.
  const expected = 1 + Math.max(0, resends) + lost
  if (items.length > Math.max(expected, handed.length + interruptedMax * interrupted))
    found.push(
      `${id} (${status}) was sent ${items.length} times: ${items.map(describeItem).join(', ')}; its timeline has ${entries.map(describeEntry).join(', ')}`,
    )
  if (handed.length > expected + interrupted)
    found.push(`${id} was handed over ${handed.length} times, with ${resends} resends and ${lost} failovers`)
  return found
}

const describeItem = ({ messageId, isArrived, isReportedLost }: BillItem) =>
  [messageId.slice(0, 6), isArrived && 'arrived', isReportedLost && 'reported lost'].filter(Boolean).join(' ')

const describeEntry = ({ type, provider, outcome, interrupted, providerMessageId }: Entry) =>
  [type, provider, outcome, providerMessageId?.slice(0, 6), interrupted && 'interrupted']
    .filter(Boolean)
    .join(' ')

/** Compares the cost report with the bills, without the messages of attempts that were killed. */
async function compareBills(
  client: WebhookClient,
  vendors: readonly Vendor[],
  isLeftOut: (item: BillItem) => boolean,
): Promise<string[]> {
  const rows = await client.call<
    Array<{ key: string; provider: string; cost: string; estimatedCost: string; sent: number }>
  >('GET', '/v1/analytics/costs?range=7d')
  return vendors.flatMap(({ name, bill }) => {
    const items = [...bill.values()].filter((item) => !isLeftOut(item))
    const own = rows.filter(({ provider }) => provider === name)
    const sum = (field: 'cost' | 'estimatedCost') =>
      own.reduce((total, row) => total + Math.round(Number(row[field]) * 1e6), 0)
    const messages = own.reduce((total, { sent }) => total + sent, 0)
    const billed = sumPrices(items)
    return [
      ...(sum('cost') === billed
        ? []
        : [`${name} bills ${formatPrice(billed)}, otpd reports ${formatPrice(sum('cost'))}`]),
      ...(sum('estimatedCost') === 0
        ? []
        : [`${formatPrice(sum('estimatedCost'))} of ${name} are estimated`]),
      ...(messages === items.length
        ? []
        : [`${name} bills ${items.length} messages, otpd counts ${messages}`]),
    ]
  })
}

const sumPrices = (items: Iterable<BillItem>) => [...items].reduce((sum, { price }) => sum + price, 0)
