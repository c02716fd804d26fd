import type { Receipt as DomainReceipt } from '../domain/model/delivery.ts'
import type { Charge, MessageCost, Price } from '../domain/model/price.ts'
import type { OutgoingMessage, Receipt, SendOutcome } from './kit/provider.ts'
import type { ProviderHandle } from './provider-pool.ts'
import { measureSms } from './text/sms-segments.ts'

export type Costs = ReturnType<typeof createCosts>

/**
 * Tells what messages cost, in the one currency of the installation. A price in another currency is never converted or
 * added: the estimate stays, and a line in the log says so once per provider.
 */
export function createCosts(report: (level: 'warn', text: string, fields: Record<string, unknown>) => void) {
  let currency: string | undefined
  const reported = new Set<string>()

  /** Returns the amount of a charge; null if it is in another currency, or no costs are counted. */
  function toPrice(provider: string, charge: Charge | undefined): Price | null {
    if (!charge || currency === undefined) return null
    if (charge.currency === currency) return charge.amount
    const key = `${provider} ${charge.currency}`
    if (!reported.has(key)) {
      const fields = { provider, currency: charge.currency, expected: currency }
      report(
        'warn',
        'a provider charges in another currency; its messages keep their estimated prices',
        fields,
      )
      reported.add(key)
    }
    return null
  }

  return {
    /** Sets the currency; undefined counts no costs. */
    configure(next: string | undefined): void {
      currency = next
      reported.clear()
    },

    /** Tells what a message costs that a provider has, or may have; undefined if no costs are counted. */
    costOf(
      { name, kind, findPrice }: ProviderHandle,
      { channel, to, country, text }: OutgoingMessage,
      outcome: SendOutcome,
    ): MessageCost | undefined {
      if (currency === undefined) return undefined
      const price = findPrice(to, country)
      const hasOwnText = kind.textByProvider?.includes(channel) === true
      const parts = channel === 'sms' && !hasOwnText ? countParts(text) : 1
      return {
        estimatedPrice: price === null ? null : price * parts,
        chargedPrice: outcome.kind === 'accepted' ? toPrice(name, outcome.charge) : null,
      }
    },

    /** Currency of all prices; undefined if costs are not counted. */
    currency: () => currency,

    toPrice,

    /** Keeps the charge of a receipt if it is in the currency of the installation. */
    withPrice(provider: string, { charge, ...receipt }: Receipt): DomainReceipt {
      const price = toPrice(provider, charge)
      return price === null ? receipt : { ...receipt, charge: price }
    },
  }
}

/** 70 characters fit into one SMS in any language. */
const countParts = (text: string) => (text.length <= 70 ? 1 : measureSms(text).parts)
