import { pick } from '../../helpers/seeded-random.ts'
import { startProviderServer, type ProviderCall } from '../../helpers/provider-server.ts'

/**
 * How a vendor treats messages at the moment.
 *
 * - `fails`: it refuses every message, with a server error.
 * - `throttles`: it refuses every message because there are too many.
 * - `loses`: it takes messages that never arrive, and says so in its receipts, if its protocol knows that.
 * - `lies`: it takes messages that never arrive, and says that they did.
 * - `cuts`: it takes messages, and the responses are lost.
 */
export type VendorMode = 'works' | 'fails' | 'throttles' | 'loses' | 'lies' | 'cuts'

/** An item of a vendor's own bill: a message that it took. */
export type BillItem = {
  messageId: string
  /** E.164. */
  to: string
  code: string
  /** The caller's reference, if the protocol has one. */
  requestId: string | null
  callbackUrl: string | null
  /** In millionths. */
  price: number
  takenAt: number
  isArrived: boolean
  isResponseCut: boolean
  /** Whether a receipt said that it did not arrive. */
  isReportedLost: boolean
  /** Outcomes that otpd has reported. */
  outcomes: Set<string>
}

/** A message as the protocol of a vendor has it. */
export type TakenMessage = Pick<BillItem, 'to' | 'code' | 'requestId' | 'callbackUrl'>

/** Protocol of a vendor, from its documents. */
export type Protocol = {
  kind: string
  /** Keys of its table in the configuration. */
  settings(url: string): Record<string, string>
  modes: readonly VendorMode[]
  /** Reads a message; undefined if the call is none. */
  readMessage(call: ProviderCall): TakenMessage | undefined
  accept(item: BillItem): Response
  refuse(mode: 'fails' | 'throttles'): Response
  /** Answers any other call: reports of outcomes and look-ups of prices. */
  respond(call: ProviderCall, find: (messageId: string) => BillItem | undefined): Response
  receipt(
    item: BillItem,
    isArrived: boolean,
  ): { method: string; headers: Record<string, string>; body: string }
  /** Word for the outcome of a verified code, and for that of others; null if otpd does not report them. */
  outcomes: { verified: string; other: string | null }
}

export type Vendor = ReturnType<typeof startVendor>

/** Repeats a receipt that the server did not take, as vendors do. */
const receiptPauseMs = 250
const receiptTriesMax = 400
/** Long enough that kills hit messages that a vendor has taken and otpd does not know of yet. */
const responseMsMax = 300

/**
 * Starts a vendor that keeps its own bill. Prices drift, and its mode changes whenever `nextPhase` is called.
 *
 * @param post delivers a receipt to a node. @returns the status; 0 without a response
 */
export function startVendor(
  name: string,
  protocol: Protocol,
  random: () => number,
  post: (url: string, init: RequestInit) => Promise<number>,
) {
  const server = startProviderServer()
  const bill = new Map<string, BillItem>()
  /** Newest code by phone. */
  const arrivedCodes = new Map<string, string>()
  const receipts = new Set<Promise<void>>()
  const lostReceipts: string[] = []
  let mode: VendorMode = 'works'
  let price = 20_000 + Math.floor(random() * 60_000)
  let refused = 0
  let inFlight = 0

  server.setHandler(async (call) => {
    const taken = protocol.readMessage(call)
    if (!taken) return protocol.respond(call, (messageId) => bill.get(messageId))
    if (mode === 'fails' || mode === 'throttles') {
      refused++
      return protocol.refuse(mode)
    }
    const isArrived = mode === 'works' || mode === 'cuts'
    const item: BillItem = {
      ...taken,
      messageId: `SM${crypto.randomUUID().replaceAll('-', '')}`,
      price,
      takenAt: Date.now(),
      isArrived,
      isResponseCut: mode === 'cuts',
      isReportedLost: mode === 'loses',
      outcomes: new Set(),
    }
    bill.set(item.messageId, item)
    if (isArrived) arrivedCodes.set(item.to, item.code)
    const sending = sendReceipts(item).finally(() => receipts.delete(sending))
    receipts.add(sending)
    inFlight++
    await Bun.sleep(random() * responseMsMax)
    inFlight--
    // A response that no client can read, as behind a broken proxy.
    return item.isResponseCut ? new Response('cut', { status: 200 }) : protocol.accept(item)
  })

  async function sendReceipts(item: BillItem): Promise<void> {
    await Bun.sleep(20 + random() * 400)
    const times = random() < 0.2 ? 2 : 1
    for (let time = 0; time < times; time++) await sendReceipt(item)
  }

  async function sendReceipt(item: BillItem): Promise<void> {
    const { callbackUrl, messageId } = item
    if (callbackUrl === null) return void lostReceipts.push(`${messageId} has no callback URL`)
    for (let tries = 0; tries < receiptTriesMax; tries++) {
      const status = await post(callbackUrl, protocol.receipt(item, !item.isReportedLost))
      if (status >= 200 && status < 300) return
      await Bun.sleep(receiptPauseMs)
    }
    lostReceipts.push(`${name} could not deliver the receipt of ${messageId}`)
  }

  return {
    name,
    protocol,
    bill,
    arrivedCodes,
    lostReceipts,
    refusedCount: () => refused,
    /** Whether it answers no message at the moment. */
    isIdle: () => inFlight === 0,
    toml: () =>
      [
        '[[providers]]',
        ...Object.entries({ name, kind: protocol.kind, ...protocol.settings(server.url) }).map(
          ([key, value]) => `${key} = ${JSON.stringify(value)}`,
        ),
        'price = { default = "0.05" }',
        '',
      ].join('\n'),
    /**
     * Lets the price drift, and changes the mode; a vendor works half of the time. While nodes are killed, none cuts responses:
     * an attempt without an answer could belong to either of two messages.
     */
    nextPhase({ hasKills }: { hasKills: boolean }): void {
      price = Math.max(1_000, Math.round(price * (0.85 + 0.3 * random())))
      const next = random() < 0.5 ? 'works' : pick(protocol.modes, random)
      mode = hasKills && next === 'cuts' ? 'works' : next
    },
    recover: () => void (mode = 'works'),
    /** Resolves when every receipt has arrived. */
    settled: async () => void (await Promise.all(receipts)),
    stop: server.stop,
  }
}
